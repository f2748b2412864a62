//! Why a program ended or did not start, from its exit and its last words. Pure; the texts are those of Claude Code, as
//! `docs/claude-code.md` lists them.

use crate::core::model::ExitReport;
use crate::core::settings::Restart;

/// The names appear in `status` and in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    CleanExit,
    MissingProgram,
    WrongVersion,
    BadSettings,
    NotLoggedIn,
    TrustRefused,
    UsageLimit,
    OutOfMemory,
    /// It ended with a signal that only a bug causes, such as SIGSEGV.
    Crash,
    /// Another process ended it with a signal.
    Killed,
    UnknownConversation,
    SessionInUse,
    NoConnection,
    ShimLost,
    /// It used more than `max_memory`.
    TooMuchMemory,
    Stalled,
    /// An exit code without a known text.
    Failed,
}

impl Cause {
    pub const ALL: &[Cause] = &[
        Cause::CleanExit,
        Cause::MissingProgram,
        Cause::WrongVersion,
        Cause::BadSettings,
        Cause::NotLoggedIn,
        Cause::TrustRefused,
        Cause::UsageLimit,
        Cause::OutOfMemory,
        Cause::Crash,
        Cause::Killed,
        Cause::UnknownConversation,
        Cause::SessionInUse,
        Cause::NoConnection,
        Cause::ShimLost,
        Cause::TooMuchMemory,
        Cause::Stalled,
        Cause::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Cause::CleanExit => "clean exit",
            Cause::MissingProgram => "missing program",
            Cause::WrongVersion => "wrong version",
            Cause::BadSettings => "bad settings",
            Cause::NotLoggedIn => "not logged in",
            Cause::TrustRefused => "trust refused",
            Cause::UsageLimit => "usage limit",
            Cause::OutOfMemory => "out of memory",
            Cause::Crash => "crash",
            Cause::Killed => "killed by a signal",
            Cause::UnknownConversation => "unknown conversation",
            Cause::SessionInUse => "session id in use",
            Cause::NoConnection => "no connection",
            Cause::ShimLost => "shim lost",
            Cause::TooMuchMemory => "over max_memory",
            Cause::Stalled => "stalled",
            Cause::Failed => "failed",
        }
    }

    /// Whether another start may succeed; otherwise only a person can help.
    pub fn is_curable(self) -> bool {
        !matches!(
            self,
            Cause::MissingProgram
                | Cause::WrongVersion
                | Cause::BadSettings
                | Cause::NotLoggedIn
                | Cause::TrustRefused
                | Cause::SessionInUse
        )
    }

    /// Whether the slot's `restart` setting asks for another start after this.
    pub fn wants_restart(self, restart: Restart) -> bool {
        match restart {
            Restart::Never => false,
            Restart::OnFailure => self != Cause::CleanExit,
            Restart::Always => true,
        }
    }
}

/// What is known about an exit.
#[derive(Debug, Clone, Copy)]
pub struct Remains<'a> {
    pub report: &'a ExitReport,
    /// The last text on the screen of a program that never became idle, and the kernel's message.
    pub said: Option<&'a str>,
    /// The last screen was the question whether to trust the folder, and the program never got past it.
    pub at_trust: bool,
}

/// missiond's own message if the kernel's count of out-of-memory kills has grown while the program ran.
pub const KERNEL_KILLED: &str = "the kernel killed a process for want of memory";

/// Texts that identify a cause, in the order of the search.
const WORDS: &[(&str, Cause)] = &[
    (
        "No conversation found with session ID",
        Cause::UnknownConversation,
    ),
    ("is already in use", Cause::SessionInUse),
    ("out of memory", Cause::OutOfMemory),
    ("Out of memory", Cause::OutOfMemory),
    ("Cannot allocate memory", Cause::OutOfMemory),
    ("Bun has crashed", Cause::Crash),
    ("Not logged in", Cause::NotLoggedIn),
    ("Please run /login", Cause::NotLoggedIn),
    ("Invalid API key", Cause::NotLoggedIn),
    // It is missiond's own file, which each start writes: somebody has removed it in between.
    ("Settings file not found", Cause::Failed),
    ("Settings Error", Cause::BadSettings),
    ("error: unknown option", Cause::BadSettings),
    ("error: option '", Cause::BadSettings),
    ("disabled organization", Cause::NotLoggedIn),
    ("limit reached", Cause::UsageLimit),
    ("You've hit your", Cause::UsageLimit),
    ("reached your specified", Cause::UsageLimit),
    ("Credit balance", Cause::UsageLimit),
    ("Unable to connect to Anthropic", Cause::NoConnection),
];

/// ILL, TRAP, ABRT, BUS, FPE, SEGV and SYS.
const CRASH_SIGNALS: &[i32] = &[4, 5, 6, 7, 8, 11, 31];
const SIGKILL: i32 = 9;
/// A program that handles a signal, or a wrapper around it, exits with 128 plus the signal.
const BY_SIGNAL: i32 = 128;
const MOST_SIGNAL: i32 = 64;

pub fn classify(remains: Remains<'_>) -> Cause {
    let ExitReport { code, signal } = *remains.report;
    let signal = signal.or_else(|| signal_in(code?));
    let said = remains.said.unwrap_or_default();
    match signal {
        Some(SIGKILL) if said.contains(KERNEL_KILLED) => return Cause::OutOfMemory,
        Some(signal) if CRASH_SIGNALS.contains(&signal) => {
            return by_words(said)
                .filter(|cause| *cause == Cause::OutOfMemory)
                .unwrap_or(Cause::Crash);
        }
        Some(_) => return Cause::Killed,
        None => {}
    }
    match code {
        None => Cause::ShimLost,
        Some(_) if remains.at_trust => Cause::TrustRefused,
        Some(0) => Cause::CleanExit,
        Some(_) => by_words(said).unwrap_or(Cause::Failed),
    }
}

fn signal_in(code: i32) -> Option<i32> {
    let signal = code - BY_SIGNAL;
    (1..=MOST_SIGNAL).contains(&signal).then_some(signal)
}

fn by_words(said: &str) -> Option<Cause> {
    WORDS
        .iter()
        .find(|(words, _)| said.contains(words))
        .map(|(_, cause)| *cause)
}

/// What an error above a working input box means for the slot.
pub fn of_error(text: &str) -> Option<Cause> {
    by_words(text).filter(|cause| matches!(cause, Cause::NotLoggedIn | Cause::UsageLimit))
}

/// How it ended, for a person: the name of the cause, and further details.
pub fn in_words(cause: Cause, report: &ExitReport, said: Option<&str>) -> String {
    let said = said.filter(|_| report.code != Some(0));
    let parts = [
        Some(cause.name().to_owned()),
        how(report),
        said.map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// The same for a program that missiond has ended, so that nobody searches for the sender of the signal.
pub fn ended_by_us(report: &ExitReport) -> String {
    let parts = [Some("ended by missiond".to_owned()), how(report)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

fn how(report: &ExitReport) -> Option<String> {
    match (report.code, report.signal) {
        (_, Some(signal)) => Some(format!("signal {signal}")),
        (Some(0), _) | (None, None) => None,
        (Some(code), _) => Some(format!("exit {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn exit(code: i32) -> (Option<i32>, Option<i32>) {
        (Some(code), None)
    }

    const fn signal(signal: i32) -> (Option<i32>, Option<i32>) {
        (None, Some(signal))
    }

    /// (exit, at the trust dialog, last text, cause). The exits in `docs/claude-code.md` were observed; those by memory, a lost
    /// login or a usage limit were constructed from the program's texts.
    type Row = ((Option<i32>, Option<i32>), bool, &'static str, Cause);

    const TABLE: &[Row] = &[
        (exit(0), false, "", Cause::CleanExit),
        (
            exit(0),
            false,
            "Press Ctrl-C again to exit",
            Cause::CleanExit,
        ),
        (exit(0), true, "", Cause::TrustRefused),
        (exit(1), true, "", Cause::TrustRefused),
        (signal(9), true, "", Cause::Killed),
        (
            exit(1),
            false,
            "No conversation found with session ID: 97e63649-32e0-4b1a-8ae8-eeb46ed1e99f",
            Cause::UnknownConversation,
        ),
        (
            exit(1),
            false,
            "Error: Session ID 7ef276d4-6779-4d27-8438-d492a58f41d2 is already in use.",
            Cause::SessionInUse,
        ),
        (
            exit(1),
            false,
            "Error: Settings file not found: /nope/x.json",
            Cause::Failed,
        ),
        (
            exit(1),
            false,
            "error: unknown option '--nope' / (Did you mean --name?)",
            Cause::BadSettings,
        ),
        (
            exit(1),
            false,
            "error: option '--permission-mode <mode>' argument 'nope' is invalid.",
            Cause::BadSettings,
        ),
        (
            exit(1),
            false,
            "Unable to connect to Anthropic services / Failed to connect to api.anthropic.com",
            Cause::NoConnection,
        ),
        (
            exit(1),
            false,
            "Not logged in · Please run /login",
            Cause::NotLoggedIn,
        ),
        (
            exit(1),
            false,
            "You've hit your session limit · resets 3pm",
            Cause::UsageLimit,
        ),
        (exit(1), false, "", Cause::Failed),
        (exit(3), false, "something of its own", Cause::Failed),
        (exit(143), false, "", Cause::Killed),
        (exit(129), false, "", Cause::Killed),
        (exit(137), false, KERNEL_KILLED, Cause::OutOfMemory),
        (exit(139), false, "", Cause::Crash),
        (signal(9), false, "", Cause::Killed),
        (signal(9), false, KERNEL_KILLED, Cause::OutOfMemory),
        (signal(15), false, KERNEL_KILLED, Cause::Killed),
        (
            signal(6),
            false,
            "JavaScript heap out of memory",
            Cause::OutOfMemory,
        ),
        (signal(6), false, "", Cause::Crash),
        (signal(11), false, "oh no: Bun has crashed.", Cause::Crash),
        ((None, None), false, "", Cause::ShimLost),
    ];

    #[test]
    fn every_known_end_has_its_cause() {
        for ((code, signal), at_trust, said, cause) in TABLE {
            let report = ExitReport {
                code: *code,
                signal: *signal,
            };
            let found = classify(Remains {
                report: &report,
                said: Some(said).filter(|said| !said.is_empty()).copied(),
                at_trust: *at_trust,
            });
            assert_eq!(found, *cause, "{report:?} {said:?}");
        }
    }

    #[test]
    fn the_words_for_a_person_begin_with_the_cause() {
        let report = |code, signal| ExitReport { code, signal };
        let killed = in_words(Cause::Killed, &report(None, Some(9)), None);
        assert_eq!(killed, "killed by a signal: signal 9");
        let failed = in_words(Cause::Failed, &report(Some(3), None), Some("no key"));
        assert_eq!(failed, "failed: exit 3: no key");
        let clean = in_words(Cause::CleanExit, &report(Some(0), None), Some("bye"));
        assert_eq!(clean, "clean exit");
        let ours = ended_by_us(&report(Some(143), None));
        assert_eq!(ours, "ended by missiond: exit 143");
    }
}
