//! The state of the machine without its data, by name. `tests/machine` has a scenario for each.

use super::up::Hands;
use super::*;

/// The phases, and a list of all of them.
macro_rules! phases {
    ($($(#[$what:meta])* $phase:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Phase {
            $($(#[$what])* $phase,)*
        }

        impl Phase {
            pub const ALL: &[Phase] = &[$(Phase::$phase,)*];
        }
    };
}

phases! {
    /// Nothing runs, and nothing is in progress.
    Down,
    /// The program will be restarted at a known time.
    Waiting,
    /// The program runs in a shim that does not answer.
    Unreached,
    /// The program is being started.
    Launching,
    /// The program runs, and no key sequence is in progress.
    HandsFree,
    /// A person types at the program's terminal.
    ByHand,
    /// A message was pasted, and its Enter is not pressed yet.
    Pasting,
    /// The Enter of a message was pressed.
    Submitting,
    /// An option of a dialog is being chosen.
    Choosing,
    /// missiond's own draft is being cleared.
    Clearing,
    /// Esc was pressed to end the turn.
    Interrupting,
    /// The program is being ended.
    Stopping,
}

impl Machine {
    pub fn phase(&self) -> Phase {
        match &self.life {
            Life::Down { .. } => Phase::Down,
            Life::Waiting { .. } => Phase::Waiting,
            Life::Unreached { .. } => Phase::Unreached,
            Life::Launching { .. } => Phase::Launching,
            Life::Up(up) => match up.hands {
                Hands::Free if up.typing.is_some() => Phase::ByHand,
                Hands::Free => Phase::HandsFree,
                Hands::Pasting { .. } => Phase::Pasting,
                Hands::Submitting { .. } => Phase::Submitting,
                Hands::Choosing(_) => Phase::Choosing,
                Hands::Clearing { .. } => Phase::Clearing,
                Hands::Interrupting { .. } => Phase::Interrupting,
            },
            Life::Stopping { .. } => Phase::Stopping,
        }
    }
}
