//! The settings that the running program was started with. The slot's settings may have changed since; they apply to the next
//! start.

use super::*;

/// The settings of a running program.
#[derive(Debug, Clone)]
pub struct Runs {
    settings: Arc<SlotConfig>,
    /// Whether they are known to be those of its start.
    known: bool,
}

impl Runs {
    /// It was started with these settings.
    pub fn with(settings: Arc<SlotConfig>) -> Runs {
        Runs {
            settings,
            known: true,
        }
    }

    /// The settings of its start are unknown; these only describe it.
    pub fn unknown(settings: Arc<SlotConfig>) -> Runs {
        Runs {
            settings,
            known: false,
        }
    }

    pub fn is_known(&self) -> bool {
        self.known
    }

    pub fn settings(&self) -> &Arc<SlotConfig> {
        &self.settings
    }
}

impl Machine {
    /// The settings of the running program's start; if none runs, those for the next start.
    pub fn running(&self) -> &SlotConfig {
        self.up()
            .map_or(&self.config, |up| &up.origin.runs.settings)
    }

    /// If it is unknown where the program runs, a person decides on everything: a rule can't know what it may touch.
    pub(super) fn known_only(&self, verdict: Verdict) -> Verdict {
        let unknown = self.up().is_none_or(|up| !up.origin.runs.known);
        match verdict.decision {
            Decision::Allow | Decision::Silent if unknown => {
                let why = format!(
                    "nobody knows which settings this program was started with, so a person is asked until \
                     `missiond restart {}`",
                    self.config.name
                );
                Verdict::without_rule(Decision::Ask, why)
            }
            _ => verdict,
        }
    }
}
