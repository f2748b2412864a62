//! The machine's refusals and failures, by name. `tests/machine` has a scenario for each.

use crate::core::model::{Fault, RpcError};

/// The names, and the kind of error of each.
macro_rules! refusals {
    ($($(#[$why:meta])* $kind:ident $name:literal $fault:ident,)*) => {
        /// Why a request was not done. The code that refuses writes the sentence for a person.
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
    /// Too many messages are already waiting.
    QueueFull "queue_full" Refused,
    /// The slot failed too often, or in a way that another start does not fix.
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
    /// The text is still in the input box after Enter.
    EnterNotTaken "enter_not_taken" Failed,
    /// The turn ended with an error, an interrupt or a no.
    TurnFailed "turn_failed" Failed,
    /// A person began to type between the paste and its Enter.
    PersonCame "person_came" Refused,
    NotStarted "not_started" Failed,
    /// The program ended, or is being ended, during the request.
    CutOff "cut_off" Failed,
    /// The program ended, or the slot went down, while the message waited.
    Dropped "dropped" Failed,
    /// An earlier message is in the input box and could not be cleared.
    OwnDraft "own_draft" Refused,
    /// Somebody else's text is in the input box.
    ForeignDraft "foreign_draft" Refused,
    NoDialog "no_dialog" Refused,
    /// A call waits for a person, and the screen does not show its dialog.
    HiddenDialog "hidden_dialog" Refused,
    /// The current dialog is not the one that was answered.
    OtherDialog "other_dialog" Refused,
    /// Keys are being pressed for somebody else.
    KeysUnderWay "keys_under_way" Refused,
    /// The screen was not recognised.
    UnknownScreen "unknown_screen" Refused,
    /// The witnesses differ about what is on the screen.
    Doubtful "doubtful" Refused,
    /// A rule now denies the call, and the answer allows it.
    AgainstRule "against_rule" Refused,
    /// The answer matches no option of the dialog, or several.
    NoSuchOption "no_such_option" Refused,
    /// The key was pressed, and the dialog is still up.
    StillUp "still_up" Failed,
    /// The dialog did not settle in time.
    Restless "restless" Refused,
    /// The dialog went away or changed before the key.
    DialogChanged "dialog_changed" Refused,
    /// The marked row does not follow the arrow keys.
    MenuStuck "menu_stuck" Refused,
    /// No row is marked, so the effect of an arrow key is unknown.
    NoRowMarked "no_row_marked" Refused,
    /// The dialog became doubtful before the key.
    DoubtfulNow "doubtful_now" Refused,
    /// A person began to type before the key.
    PersonTypes "person_types" Refused,
    /// The key could not be pressed safely.
    NotPressed "not_pressed" Refused,
    /// Somebody interrupted the current keys.
    Interrupted "interrupted" Failed,
    /// Esc was pressed, and the turn continues.
    EscNotTaken "esc_not_taken" Failed,
    /// Keys that are written now would answer a dialog.
    WouldAnswer "would_answer" Refused,
}

impl Refusal {
    /// The error for the caller.
    pub fn says(self, text: impl Into<String>) -> RpcError {
        RpcError {
            refusal: Some(self.name()),
            ..RpcError::new(self.fault(), text)
        }
    }
}
