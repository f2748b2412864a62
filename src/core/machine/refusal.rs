//! What the machine refuses or fails at, by name. `tests/machine` has a scenario for each.

use crate::core::model::{Fault, RpcError};

/// The names, and whose fault each one is.
macro_rules! refusals {
    ($($(#[$why:meta])* $kind:ident $name:literal $fault:ident,)*) => {
        /// Why a request was not done. The sentence for a person is made where the request is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$why])* $kind,)*
        }

        impl Refusal {
            pub const ALL: &[Refusal] = &[$(Refusal::$kind,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Refusal::$kind => $name,)*
                }
            }

            fn fault(self) -> Fault {
                match self {
                    $(Refusal::$kind => Fault::$fault,)*
                }
            }
        }
    };
}

refusals! {
    /// Too many messages wait already.
    QueueFull "queue_full" Refused,
    /// The slot failed too often, or in a way that another start does not cure.
    GivenUp "given_up" Refused,
    NotRunning "not_running" Refused,
    Stopping "stopping" Refused,
    /// A message can't be typed while a dialog is up.
    AtDialog "at_dialog" Refused,
    /// The sender's time was over before the message was typed.
    NotSentInTime "not_sent_in_time" TimedOut,
    /// The sender's time was over before the answer came.
    NotAnsweredInTime "not_answered_in_time" TimedOut,
    /// The time of a person's answer was over while the screen was drawn.
    NotDrawnInTime "not_drawn_in_time" TimedOut,
    /// A dialog came up between the paste and its Enter.
    DialogCame "dialog_came" Refused,
    /// The pasted text was never seen in the input box.
    PasteNotSeen "paste_not_seen" Failed,
    /// The text stands in the input box after Enter.
    EnterNotTaken "enter_not_taken" Failed,
    /// The turn ended with an error, an interrupt or a no.
    TurnFailed "turn_failed" Failed,
    /// A person began to type between the paste and its Enter.
    PersonCame "person_came" Refused,
    NotStarted "not_started" Failed,
    /// The program ended, or is being ended, with the request under way.
    CutOff "cut_off" Failed,
    /// The program ended, or the slot went down, while the message waited.
    Dropped "dropped" Failed,
    /// An earlier message stands in the input box and could not be cleared.
    OwnDraft "own_draft" Refused,
    /// Somebody else's text stands in the input box.
    ForeignDraft "foreign_draft" Refused,
    NoDialog "no_dialog" Refused,
    /// A call waits for a person, and the screen does not show its dialog.
    HiddenDialog "hidden_dialog" Refused,
    /// Another dialog is up than the one that was answered.
    OtherDialog "other_dialog" Refused,
    /// Keys are pressed for somebody else at the moment.
    KeysUnderWay "keys_under_way" Refused,
    /// The screen could not be named.
    UnknownScreen "unknown_screen" Refused,
    /// The witnesses differ about what is on the screen.
    Doubtful "doubtful" Refused,
    /// The answer means no option of the dialog, or several.
    NoSuchOption "no_such_option" Refused,
    /// The key was pressed, and the dialog stays.
    StillUp "still_up" Failed,
    /// The dialog never stood still for long enough.
    Restless "restless" Refused,
    /// The dialog went away or became another one before the key.
    DialogChanged "dialog_changed" Refused,
    /// The marked row does not follow the arrow keys.
    MenuStuck "menu_stuck" Refused,
    /// No row is marked, so that nobody knows where an arrow key leads.
    NoRowMarked "no_row_marked" Refused,
    /// The dialog became doubtful before the key.
    DoubtfulNow "doubtful_now" Refused,
    /// A person began to type before the key.
    PersonTypes "person_types" Refused,
    /// The key could not be pressed in the way that it must be.
    NotPressed "not_pressed" Refused,
    /// Somebody interrupted what was under way.
    Interrupted "interrupted" Failed,
    /// Esc was pressed, and the turn goes on.
    EscNotTaken "esc_not_taken" Failed,
    /// Keys that are written now would answer a dialog.
    WouldAnswer "would_answer" Refused,
}

impl Refusal {
    /// The error that whoever asked gets.
    pub fn says(self, text: impl Into<String>) -> RpcError {
        RpcError {
            refusal: Some(self.name()),
            ..RpcError::new(self.fault(), text)
        }
    }
}
