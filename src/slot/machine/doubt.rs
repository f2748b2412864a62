//! Witnesses that differ. For a moment they always do, since one is written after the other; for longer it is
//! a doubt, and a person is told.

use super::*;

/// Screen, title and record of one change come within 0.2 s of each other; a loaded machine gets this long.
pub(super) const MOMENT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Dispute {
    pub why: String,
    pub since: Instant,
    /// It has lasted for more than a moment, and was told.
    pub told: bool,
}

impl Machine {
    /// Why the witnesses differ; `None` where they agree.
    pub(super) fn witnessed(&mut self, why: Option<String>, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        match (why, up.dispute.take()) {
            (Some(why), before) => {
                let (since, told) = before.map_or((now, false), |d| (d.since, d.told));
                up.dispute = Some(Dispute { why, since, told });
            }
            (None, Some(Dispute { told: true, .. })) => self.tell(What::DoubtGone),
            (None, _) => {}
        }
    }

    pub(super) fn progress_doubt(&mut self, now: Instant) {
        let dispute = self.up_mut().and_then(|up| up.dispute.as_mut());
        let lasting = dispute.filter(|dispute| !dispute.told && now >= dispute.since + MOMENT);
        if let Some(dispute) = lasting {
            dispute.told = true;
            let why = dispute.why.clone();
            self.tell(What::Doubtful { why });
            self.effects.push(Effect::Repaint);
        }
    }

    /// Why what the screen shows is not to be trusted.
    pub fn doubt(&self) -> Option<&str> {
        let dispute = self.up().and_then(|up| up.dispute.as_ref());
        dispute
            .filter(|dispute| dispute.told)
            .map(|dispute| dispute.why.as_str())
    }
}
