//! Witnesses that differ. For a moment they always do, since one is written after the other; for longer it is
//! a doubt, and a person is told.

use super::*;
use crate::control::protocol::{Fault, WaitingCall};

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

    /// Why the witnesses differ, where they have done so for more than a moment.
    fn doubt(&self) -> Option<&str> {
        let dispute = self.up().and_then(|up| up.dispute.as_ref());
        dispute
            .filter(|dispute| dispute.told)
            .map(|dispute| dispute.why.as_str())
    }

    /// What the gate knows of the call that the dialog on the screen is about. `None` where there is no such dialog, or
    /// the gate can't tell.
    pub fn gate_knows_dialog(&self) -> Option<Known> {
        let up = self.up().filter(|up| up.gated)?;
        up.calls.knows(up.shown.as_ref()?, &self.config.cwd)
    }

    /// The calls that have come to the gate and have not run.
    pub fn waiting_calls(&self) -> Vec<WaitingCall> {
        let calls = self.up().map(|up| up.calls.waiting()).unwrap_or_default();
        let call = |open: &calls::OpenAsk| WaitingCall {
            tool: open.tool.clone(),
            input: open.input.clone(),
        };
        calls.into_iter().map(call).collect()
    }

    /// Why what the screen shows is not to be trusted, so that no plain answer is pressed. The gate hears of a call before
    /// its dialog is drawn, so no moment is given to that.
    pub fn distrust(&self) -> Option<String> {
        let unknown = || "the dialog on the screen is not about a call that has come to the gate";
        let by_gate = (self.gate_knows_dialog() == Some(Known::Not)).then(|| unknown().to_owned());
        self.doubt().map(str::to_owned).or(by_gate)
    }

    pub(super) fn doubtful_dialog(&self, why: &str) -> RpcError {
        let name = &self.config.name;
        let text = format!("{name} is doubtful, so nothing is pressed: {why}");
        RpcError::new(Fault::Refused, text).next(format!(
            "see what each says: missiond why {name}; decline it: missiond confirm {name} no; if you are sure: \
             missiond confirm {name} … --anyway"
        ))
    }
}
