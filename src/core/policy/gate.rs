//! The gate's answer to Claude Code: the policy's verdict, or *ask* if a silent verdict can't be left to Claude Code.

use super::{Decision, Verdict};

/// When Claude Code asks a person, by permission mode; the safest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asking {
    /// Manual mode: Claude Code asks by itself about calls that its own rules don't allow.
    ByItself,
    /// It asks if the gate answers *ask*.
    IfTold,
    /// bypassPermissions and every unknown mode: it may run a call although the gate answers *ask*.
    NotEvenIfTold,
}

impl Asking {
    pub fn in_mode(mode: &str) -> Asking {
        match mode.to_lowercase().as_str() {
            // Older versions, and the hooks of all versions, call manual mode `default`.
            "manual" | "default" => Asking::ByItself,
            "acceptedits" | "plan" | "auto" | "dontask" => Asking::IfTold,
            _ => Asking::NotEvenIfTold,
        }
    }
}

/// The settings of the running program that matter beside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    pub asking: Asking,
    /// Whether it has read the project's settings, which may allow anything.
    pub project_settings: bool,
}

impl Circumstances {
    /// The circumstances of a slot that runs as it is configured.
    pub fn configured(mode: &str, project_settings: bool) -> Circumstances {
        Circumstances {
            asking: Asking::in_mode(mode),
            project_settings,
        }
    }
}

impl Default for Circumstances {
    /// The circumstances of a slot whose configuration sets neither.
    fn default() -> Circumstances {
        Circumstances::configured("manual", false)
    }
}

/// The verdict that the gate sends. A silent verdict stays silent in two cases: the call only reads the project, which Claude
/// Code allows without asking in every mode; or the slot is in manual mode and the project's settings do not apply. Otherwise
/// silent becomes *ask*, or *deny* in a mode in which Claude Code may not ask.
///
/// The daemon, `missiond policy explain` and `missiond policy test` all use this function.
pub fn answer(
    verdict: Verdict,
    circumstances: Circumstances,
    only_reads_the_project: impl FnOnce() -> bool,
) -> Verdict {
    if verdict.decision != Decision::Silent {
        return denied_if_not_asked(verdict, circumstances.asking);
    }
    let why_not = match (circumstances.asking, circumstances.project_settings) {
        (Asking::ByItself, false) => None,
        _ if only_reads_the_project() => None,
        (Asking::ByItself, true) => Some("the project's own settings might allow it"),
        (Asking::IfTold | Asking::NotEvenIfTold, _) => {
            Some("outside manual mode Claude Code might not ask by itself")
        }
    };
    let (decision, what_follows) = match why_not {
        Some(why_not) => (Decision::Ask, why_not),
        None => (Decision::Silent, "Claude Code's own rules decide"),
    };
    let answered = Verdict {
        decision,
        why: format!("{}; {what_follows}", verdict.why),
        ..verdict
    };
    denied_if_not_asked(answered, circumstances.asking)
}

/// Turns *ask* into *deny* if Claude Code may not obey *ask*. Other verdicts stay as they are.
pub fn denied_if_not_asked(verdict: Verdict, asking: Asking) -> Verdict {
    match (verdict.decision, asking) {
        (Decision::Ask, Asking::NotEvenIfTold) => Verdict {
            decision: Decision::Deny,
            why: format!("{}; {NOT_ASKED}", verdict.why),
            ..verdict
        },
        _ => verdict,
    }
}

/// Why a call that needs a person is denied.
const NOT_ASKED: &str = "in bypassPermissions, or a mode that missiond does not know, Claude Code may run a call \
                             although a hook says ask, so what needs a person is denied: use another mode";

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{Allow, Ask, Deny, Silent};

    fn answered(decision: Decision, mode: &str, settings: bool, reads: bool) -> Verdict {
        let verdict = Verdict::without_rule(decision, "why");
        answer(verdict, Circumstances::configured(mode, settings), || reads)
    }

    /// The gate's answer in each mode to allow, silent, ask and deny, and to silent if the project's settings apply. A call that
    /// only reads the project stays silent everywhere.
    #[test]
    fn what_each_verdict_becomes_in_each_mode() {
        let told = [Allow, Ask, Ask, Ask, Deny];
        let not_asked = [Allow, Deny, Deny, Deny, Deny];
        for (mode, expected) in [
            ("manual", [Allow, Silent, Ask, Ask, Deny]),
            ("default", [Allow, Silent, Ask, Ask, Deny]),
            ("acceptEdits", told),
            ("plan", told),
            ("auto", told),
            ("dontAsk", told),
            ("bypassPermissions", not_asked),
            ("BYPASSPERMISSIONS", not_asked),
            ("of-a-later-version", not_asked),
        ] {
            let [allow, silent, silent_with_settings, ask, deny] = expected;
            for (verdict, settings, otherwise) in [
                (Allow, false, allow),
                (Allow, true, allow),
                (Silent, false, silent),
                (Silent, true, silent_with_settings),
                (Ask, false, ask),
                (Ask, true, ask),
                (Deny, false, deny),
                (Deny, true, deny),
            ] {
                for reads in [false, true] {
                    let expected = match (verdict, reads) {
                        (Silent, true) => Silent,
                        _ => otherwise,
                    };
                    let answered = answered(verdict, mode, settings, reads);
                    let case = format!("{verdict:?} in {mode}, {settings} {reads}: {answered:?}");
                    assert_eq!(answered.decision, expected, "{case}");
                    let says_why = answered.why.contains("bypassPermissions");
                    let was_changed = expected == Deny && verdict != Deny;
                    assert_eq!(says_why, was_changed, "{case}");
                }
            }
        }
    }

    /// Every mode that a slot can have is listed here: only bypassPermissions denies calls that need a person.
    #[test]
    fn every_mode_of_the_config_is_known() {
        for mode in crate::core::settings::mode_words() {
            let is_asked = Asking::in_mode(mode) != Asking::NotEvenIfTold;
            assert_eq!(is_asked, mode != "bypassPermissions", "{mode}");
        }
    }
}
