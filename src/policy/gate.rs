//! What the gate answers Claude Code: the policy's verdict, and where a silent one can't be left to Claude Code.

use super::{Decision, Verdict};

/// What the running program obeys beside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    /// Whether Claude Code asks a person about what its own rules don't allow. Only its manual mode does.
    pub manual: bool,
    /// Whether it has read the settings of the project, which may allow anything.
    pub project_settings: bool,
}

impl Circumstances {
    /// Those of a slot that runs as it is configured. `mode` is in Claude Code's newest words.
    pub fn configured(mode: &str, project_settings: bool) -> Circumstances {
        Circumstances {
            manual: mode == "manual",
            project_settings,
        }
    }
}

impl Default for Circumstances {
    /// How a slot is started where its config says nothing else.
    fn default() -> Circumstances {
        Circumstances {
            manual: true,
            project_settings: false,
        }
    }
}

/// The verdict that the gate answers with. A silent one stays silent in manual mode, if the project's settings do not
/// count or the call only reads the project; a person is asked about every other.
///
/// The daemon and `missiond policy explain` both answer by this function.
pub fn answer(
    verdict: Verdict,
    circumstances: Circumstances,
    only_reads_the_project: impl FnOnce() -> bool,
) -> Verdict {
    if verdict.decision != Decision::Silent {
        return verdict;
    }
    let why_not = match circumstances {
        Circumstances { manual: false, .. } => {
            Some("outside manual mode Claude Code might not ask by itself")
        }
        Circumstances {
            project_settings: true,
            ..
        } if !only_reads_the_project() => Some("the project's own settings might allow it"),
        _ => None,
    };
    match why_not {
        Some(why_not) => Verdict {
            decision: Decision::Ask,
            why: format!("{}; {why_not}", verdict.why),
            ..verdict
        },
        None => Verdict {
            why: format!("{}; Claude Code's own rules decide", verdict.why),
            ..verdict
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(decision: Decision, manual: bool, settings: bool, reads: bool) -> Decision {
        let verdict = Verdict {
            decision,
            rule: None,
            why: "why".to_owned(),
        };
        let circumstances = Circumstances {
            manual,
            project_settings: settings,
        };
        answer(verdict, circumstances, || reads).decision
    }

    #[test]
    fn only_silence_depends_on_the_circumstances() {
        let flags = [false, true];
        for (manual, settings, reads) in flags
            .into_iter()
            .flat_map(|manual| flags.map(|settings| (manual, settings)))
            .flat_map(|(manual, settings)| flags.map(|reads| (manual, settings, reads)))
        {
            for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
                let answered = answered(decision, manual, settings, reads);
                assert_eq!(answered, decision, "{manual} {settings} {reads}");
            }
            let expected = match manual && (!settings || reads) {
                true => Decision::Silent,
                false => Decision::Ask,
            };
            let answered = answered(Decision::Silent, manual, settings, reads);
            assert_eq!(answered, expected, "{manual} {settings} {reads}");
        }
    }
}
