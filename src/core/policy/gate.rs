//! What the gate answers Claude Code: the policy's verdict, and where a silent one can't be left to Claude Code.

use super::{Decision, Verdict};

/// What makes Claude Code ask a person in a permission mode, from the safest mode to the least safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asking {
    /// Claude Code asks by itself about what its own rules don't allow: manual mode.
    ByItself,
    /// It asks about what the gate says to ask about.
    IfTold,
    /// It may run a call although the gate says ask: bypassPermissions, and any mode that is not known here.
    NotEvenIfTold,
}

impl Asking {
    pub fn in_mode(mode: &str) -> Asking {
        match mode.to_lowercase().as_str() {
            // Older versions, and the hooks of all, call manual mode `default`.
            "manual" | "default" => Asking::ByItself,
            "acceptedits" | "plan" | "auto" | "dontask" => Asking::IfTold,
            _ => Asking::NotEvenIfTold,
        }
    }
}

/// What the running program obeys beside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    pub asking: Asking,
    /// Whether it has read the settings of the project, which may allow anything.
    pub project_settings: bool,
}

impl Circumstances {
    /// Those of a slot that runs as it is configured.
    pub fn configured(mode: &str, project_settings: bool) -> Circumstances {
        Circumstances {
            asking: Asking::in_mode(mode),
            project_settings,
        }
    }
}

impl Default for Circumstances {
    /// How a slot is started where its config says nothing else.
    fn default() -> Circumstances {
        Circumstances::configured("manual", false)
    }
}

/// The verdict that the gate answers with. A silent one stays silent for a call that only reads the project, which
/// Claude Code does not ask about in any mode; and for others in manual mode, if the project's settings do not count.
/// A person is asked about the rest, in a mode in which Claude Code asks.
///
/// The daemon, `missiond policy explain` and `missiond policy test` all answer by this function.
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

/// Makes *ask* a *deny* if Claude Code may not obey it; every other verdict stays as it is.
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

/// Why what needs a person is denied.
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

    /// What the gate answers in each mode to allow, silence, ask and deny; silence counts with the project's settings
    /// too. A call that only reads the project stays silent wherever it was.
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

    /// Each mode that a slot can have is known here: only in bypassPermissions is what needs a person denied.
    #[test]
    fn every_mode_of_the_config_is_known() {
        for mode in crate::core::settings::mode_words() {
            let is_asked = Asking::in_mode(mode) != Asking::NotEvenIfTold;
            assert_eq!(is_asked, mode != "bypassPermissions", "{mode}");
        }
    }
}
