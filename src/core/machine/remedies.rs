//! What each refusal and each cause means for a person, and what to do about it. docs/troubleshooting.md is made from it.

use super::{Cause, Refusal};

/// Words for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    pub meaning: &'static str,
    pub fix: &'static str,
}

const fn remedy(meaning: &'static str, fix: &'static str) -> Remedy {
    Remedy { meaning, fix }
}

/// What a command was refused for, or how it failed.
pub const REFUSALS: &[(Refusal, Remedy)] = &[
    (
        Refusal::QueueFull,
        remedy(
            "Too many messages already wait for the slot.",
            "Wait for some of them (`missiond status SLOT`), or give the work to whoever is free: `missiond task submit --role ROLE TEXT`.",
        ),
    ),
    (
        Refusal::GivenUp,
        remedy(
            "The slot failed too often, or in a way that another start does not cure.",
            "`missiond logs SLOT -n 20` says why. Put that right, then `missiond start SLOT`.",
        ),
    ),
    (
        Refusal::NotRunning,
        remedy("The slot's program does not run.", "`missiond start SLOT`."),
    ),
    (
        Refusal::Stopping,
        remedy(
            "The slot is being stopped.",
            "Wait until it is down, then `missiond start SLOT`.",
        ),
    ),
    (
        Refusal::AtDialog,
        remedy(
            "A dialog is open, and a message can't be typed over it.",
            "`missiond pending SLOT` shows it and how to answer it.",
        ),
    ),
    (
        Refusal::NotSentInTime,
        remedy(
            "`--timeout` was over before the message was typed; it was not sent.",
            "Send it again with a longer `--timeout`, or with `--no-wait`.",
        ),
    ),
    (
        Refusal::NotAnsweredInTime,
        remedy(
            "`--timeout` was over before the answer came; the turn goes on.",
            "`missiond wait SLOT --for idle`, then `missiond history SLOT -n 1`.",
        ),
    ),
    (
        Refusal::NotDrawnInTime,
        remedy(
            "The screen was not drawn again in time, so no key was pressed.",
            "Look at it with `missiond attach SLOT`, and answer again.",
        ),
    ),
    (
        Refusal::DialogCame,
        remedy(
            "A dialog came up just before the message was entered.",
            "Answer it (`missiond pending SLOT`), and send the message again.",
        ),
    ),
    (
        Refusal::PasteNotSeen,
        remedy(
            "The text never showed in the input box.",
            "`missiond screen SLOT` shows what is there. Send it again, or attach.",
        ),
    ),
    (
        Refusal::EnterNotTaken,
        remedy(
            "The text is still in the input box after Enter.",
            "`missiond attach SLOT`: press Enter or clear it.",
        ),
    ),
    (
        Refusal::TurnFailed,
        remedy(
            "The turn ended with an error, an interrupt or a no.",
            "`missiond status SLOT` has the last error; send the message again when that is put right.",
        ),
    ),
    (
        Refusal::PersonCame,
        remedy(
            "Somebody typed in the slot's terminal just then.",
            "Send it again when they are done.",
        ),
    ),
    (
        Refusal::NotStarted,
        remedy(
            "The program did not start.",
            "`missiond logs SLOT -n 20` says why; `missiond doctor` looks for the usual reasons.",
        ),
    ),
    (
        Refusal::CutOff,
        remedy(
            "The program ended during the request.",
            "`missiond logs SLOT -n 20` has the cause. A restarted slot goes on with its conversation.",
        ),
    ),
    (
        Refusal::Dropped,
        remedy(
            "The program ended while the message waited; it was not sent.",
            "Send it again when the slot is up: `missiond wait SLOT --for idle`.",
        ),
    ),
    (
        Refusal::OwnDraft,
        remedy(
            "An earlier message stands in the input box and can't be cleared.",
            "`missiond attach SLOT`: send it or clear it.",
        ),
    ),
    (
        Refusal::ForeignDraft,
        remedy(
            "Somebody else's text stands in the input box, and is not sent for them.",
            "`missiond attach SLOT`: send it or clear it.",
        ),
    ),
    (
        Refusal::NoDialog,
        remedy(
            "No dialog is open.",
            "`missiond status SLOT`: it may have been answered already, by a person or a rule.",
        ),
    ),
    (
        Refusal::HiddenDialog,
        remedy(
            "A call waits for you, and the screen does not show its dialog.",
            "`missiond confirm SLOT no` has it drawn again; `missiond why SLOT` says who says what.",
        ),
    ),
    (
        Refusal::OtherDialog,
        remedy(
            "Another dialog is up than the one that you answered.",
            "`missiond pending SLOT`, and answer that one with its `--dialog`.",
        ),
    ),
    (
        Refusal::KeysUnderWay,
        remedy(
            "Keys are being pressed for somebody else.",
            "Try again in a second.",
        ),
    ),
    (
        Refusal::UnknownScreen,
        remedy(
            "missiond does not know what the screen shows.",
            "`missiond attach SLOT`. If a new Claude Code draws it so: `missiond doctor --rehearse`.",
        ),
    ),
    (
        Refusal::Doubtful,
        remedy(
            "The screen says something else than the other witnesses.",
            "`missiond why SLOT`, then look with `missiond attach SLOT`. `--anyway` insists.",
        ),
    ),
    (
        Refusal::AgainstRule,
        remedy(
            "A rule denies the call by now.",
            "Say no, change the rule and `missiond reload`, or insist with `--against-rule`.",
        ),
    ),
    (
        Refusal::NoSuchOption,
        remedy(
            "The answer is the label of no option, or of several.",
            "`missiond pending SLOT` has the labels; own words go with `--text`.",
        ),
    ),
    (
        Refusal::StillUp,
        remedy(
            "The key was pressed, and the dialog is still up.",
            "`missiond attach SLOT` shows why.",
        ),
    ),
    (
        Refusal::Restless,
        remedy(
            "The dialog does not stand still.",
            "Answer again in a moment, or attach.",
        ),
    ),
    (
        Refusal::DialogChanged,
        remedy(
            "The dialog changed just before the key, so none was pressed.",
            "`missiond pending SLOT`, and answer what is there now.",
        ),
    ),
    (
        Refusal::MenuStuck,
        remedy(
            "The marked row does not follow the arrow keys.",
            "`missiond attach SLOT`, and answer there.",
        ),
    ),
    (
        Refusal::NoRowMarked,
        remedy(
            "No row is marked, so what an arrow key does is not known.",
            "`missiond attach SLOT`, and answer there.",
        ),
    ),
    (
        Refusal::DoubtfulNow,
        remedy(
            "The slot became doubtful just before the key, so none was pressed.",
            "`missiond why SLOT`.",
        ),
    ),
    (
        Refusal::PersonTypes,
        remedy(
            "Somebody types in the slot's terminal.",
            "They can answer there; else try again when they are done.",
        ),
    ),
    (
        Refusal::NotPressed,
        remedy(
            "The key could not be pressed safely, so it was not.",
            "`missiond pending SLOT`, and answer again.",
        ),
    ),
    (
        Refusal::Interrupted,
        remedy(
            "Somebody interrupted it.",
            "`missiond status SLOT`, then do it again if it is still wanted.",
        ),
    ),
    (
        Refusal::EscNotTaken,
        remedy(
            "Esc was pressed, and the turn goes on.",
            "`missiond interrupt SLOT` again; `missiond restart SLOT` ends it and keeps the conversation.",
        ),
    ),
    (
        Refusal::WouldAnswer,
        remedy(
            "Keys that are written now would answer a dialog.",
            "Answer it with `missiond confirm`; `--into-dialog` writes them all the same.",
        ),
    ),
];

/// Why a program ended or did not start.
pub const CAUSES: &[(Cause, Remedy)] = &[
    (
        Cause::CleanExit,
        remedy(
            "It ended by itself, without an error.",
            "With `restart = \"always\"` it is started again; else `missiond start SLOT`.",
        ),
    ),
    (
        Cause::MissingProgram,
        remedy(
            "The command of the slot is not there or can't be run.",
            "Install Claude Code, or set `command` to its path. The daemon's PATH counts: `missiond setup` writes yours into the unit.",
        ),
    ),
    (
        Cause::WrongVersion,
        remedy(
            "This Claude Code is none that missiond works with.",
            "Install another version, or set `command` to one.",
        ),
    ),
    (
        Cause::BadSettings,
        remedy(
            "Claude Code refused its settings or an option.",
            "The log has its words. Correct `args`, or the settings file that it names.",
        ),
    ),
    (
        Cause::NotLoggedIn,
        remedy(
            "Claude Code has no valid login.",
            "Run `claude` and log in as the user of the daemon, then `missiond start SLOT`.",
        ),
    ),
    (
        Cause::TrustRefused,
        remedy(
            "The folder was not trusted.",
            "`missiond up --trust`, or answer Claude Code's question with yes.",
        ),
    ),
    (
        Cause::UsageLimit,
        remedy(
            "The account is at its usage limit.",
            "Wait for the time that the log names; `on_limit` says what missiond does meanwhile.",
        ),
    ),
    (
        Cause::OutOfMemory,
        remedy(
            "There was not enough memory.",
            "Give the machine or the control group more, or run fewer slots; `max_memory` limits each.",
        ),
    ),
    (
        Cause::Crash,
        remedy(
            "It ended with a signal that only a fault in it causes.",
            "It is started again. If it comes back: another version of Claude Code.",
        ),
    ),
    (
        Cause::Killed,
        remedy(
            "Another process ended it with a signal.",
            "Look for who did (`journalctl`, other people). It is started again.",
        ),
    ),
    (
        Cause::UnknownConversation,
        remedy(
            "Claude Code does not know the conversation that was to go on.",
            "It begins a new one. `claude --resume` in its folder lists those that are there, and `missiond adopt SLOT ID` takes one.",
        ),
    ),
    (
        Cause::SessionInUse,
        remedy(
            "Another Claude Code has this conversation open.",
            "End that one, or `missiond adopt SLOT ID` another one; then `missiond start SLOT`.",
        ),
    ),
    (
        Cause::NoConnection,
        remedy(
            "Claude Code could not reach its service.",
            "Check the network and proxy variables (`env` of the slot). It is tried again.",
        ),
    ),
    (
        Cause::ShimLost,
        remedy(
            "The process that owns the slot's terminal was killed.",
            "It is started again and goes on with its conversation. Look for who killed it.",
        ),
    ),
    (
        Cause::TooMuchMemory,
        remedy(
            "It used more than `max_memory`.",
            "Raise `max_memory`, or let it do less at once. It is started again.",
        ),
    ),
    (
        Cause::Stalled,
        remedy(
            "It did nothing for longer than `stall_after` allows.",
            "`missiond link SLOT` shows what it did. It is started again.",
        ),
    ),
    (
        Cause::Failed,
        remedy(
            "It ended with an error that missiond does not know.",
            "The log has its last words.",
        ),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_and_every_cause_has_its_fix() {
        let kinds: Vec<Refusal> = REFUSALS.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, Refusal::ALL);
        let kinds: Vec<Cause> = CAUSES.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, Cause::ALL);
    }
}
