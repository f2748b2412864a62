//! Disagreement between witnesses. Short disagreements are normal, since one is written after the other; a longer one is a doubt,
//! and a person gets an alert.

use super::*;
use crate::core::claude::keys;
use crate::core::model::WaitingCall;

/// The screen, the title and the record of one change come within 0.2 s of each other; this leaves time for a loaded machine.
const MOMENT: Duration = Duration::from_secs(3);

/// How long a doubt lasts after the witnesses agree again. The program draws over what was painted, and whoever paints can paint
/// again within 2 s: an answer in between would go to a screen that can't be trusted.
pub(super) const LINGERS: Duration = Duration::from_secs(3);

/// The longest time between two redraws of a doubtful dialog.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Dispute {
    pub why: String,
    pub since: Instant,
    /// It has lasted for more than a moment, and was reported.
    pub told: bool,
    /// When it is reported, or the program redraws its screen.
    pub due: Option<Instant>,
    /// Since when the witnesses agree again.
    pub agreed: Option<Instant>,
}

impl Dispute {
    /// The next instant at which something changes by itself.
    pub fn next(&self) -> Option<Instant> {
        match self.agreed {
            Some(since) => Some(since + LINGERS),
            None => self.due,
        }
    }

    /// Whether it may end soon, so that rules wait for that, and no person is alerted.
    pub fn may_pass(&self) -> bool {
        !self.told || self.agreed.is_some()
    }
}

impl Up {
    /// Takes the reason why the witnesses differ; `None` if they agree.
    pub fn witnessed(&mut self, why: Option<String>, now: Instant) {
        match (why, self.dispute.take()) {
            (Some(why), Some(before)) => {
                self.dispute = Some(Dispute {
                    why,
                    agreed: None,
                    ..before
                });
            }
            (Some(why), None) => {
                self.dispute = Some(Dispute {
                    why,
                    since: now,
                    told: false,
                    due: Some(now + MOMENT),
                    agreed: None,
                });
            }
            // A short difference that painting does not explain ends at once.
            (None, Some(before)) if before.told || self.asks.drawings.is_painted() => {
                self.dispute = Some(Dispute {
                    agreed: before.agreed.or(Some(now)),
                    ..before
                });
            }
            (None, _) => {}
        }
    }
}

impl Machine {
    /// Reports a doubt that has lasted, and makes the program redraw its screen. Painted text stays until then, so this is
    /// repeated after longer and longer pauses.
    pub(super) fn progress_doubt(&mut self, now: Instant) {
        let unsure = self.strange_dialog().is_some() || self.is_dialog_hidden();
        let Some(up) = self.up_mut() else { return };
        if let Some(agreed) = up.dispute.as_mut().and_then(|d| d.agreed.as_mut()) {
            // The witnesses are read after the screen.
            *agreed = if unsure { now } else { *agreed };
        }
        let is_due = |dispute: &&mut Dispute| dispute.next().is_some_and(|next| now >= next);
        let Some(dispute) = up.dispute.as_mut().filter(is_due) else {
            return;
        };
        if dispute.agreed.is_some() {
            let told = dispute.told;
            up.dispute = None;
            if told {
                self.tell(EventKind::DoubtGone);
            }
            return;
        }
        let pause = now
            .duration_since(dispute.since)
            .clamp(MOMENT, LONGEST_PAUSE);
        dispute.due = Some(now + pause);
        let why = (!dispute.told).then(|| dispute.why.clone());
        dispute.told = true;
        self.effects.push(Effect::Repaint);
        if let Some(why) = why {
            self.tell(EventKind::Doubtful { why });
        }
    }

    /// Why the witnesses differ, if they have differed for more than a moment, or did until a moment ago.
    fn doubt(&self) -> Option<String> {
        let dispute = self.up().and_then(|up| up.dispute.as_ref())?;
        match dispute.agreed {
            Some(_) => Some(format!("until a moment ago: {}", dispute.why)),
            None => dispute.told.then(|| dispute.why.clone()),
        }
    }

    /// What the gate knows about the call of the dialog on the screen. `None` if there is no such dialog, or the gate can't know.
    pub fn gate_knows_dialog(&self) -> Option<Known> {
        let up = self.up().filter(|up| up.gate.heard)?;
        up.gate
            .calls
            .knows(up.asks.shown.as_ref()?, &self.running().cwd)
    }

    /// The calls that the gate has seen and that have not run.
    pub fn waiting_calls(&self) -> Vec<WaitingCall> {
        let calls = self
            .up()
            .map(|up| up.gate.calls.waiting())
            .unwrap_or_default();
        calls.into_iter().map(gate::call_of).collect()
    }

    /// What is wrong with the dialog on the screen by itself. The gate knows the call of a permission dialog, but not its labels.
    pub fn strange_options(&self) -> Option<String> {
        let dialog = self.dialog()?;
        let has_begun = self.up().is_some_and(|up| up.gate.heard);
        let of_start = matches!(dialog.kind, DialogKind::Trust | DialogKind::ApiKey);
        match () {
            () if !keys::in_known_order(dialog) => Some(
                "the options on the screen are not those of Claude Code, or not in their order"
                    .to_owned(),
            ),
            () if of_start && has_begun => Some(
                "Claude Code asks this before its session begins, and its session has begun"
                    .to_owned(),
            ),
            () => None,
        }
    }

    /// Why the screen is not to be trusted, so that no plain answer is pressed. The gate gets a call before its dialog is drawn,
    /// and a frame has all options, so neither gets a grace period.
    pub fn distrust(&self) -> Option<String> {
        self.doubt().or_else(|| self.strange_dialog())
    }

    /// Whether a dialog is known to be up while the screen is not recognised.
    fn is_dialog_hidden(&self) -> bool {
        let is_known = |dialog: &Dialog| dialog.kind != DialogKind::Other;
        self.dialog().is_some_and(is_known) && !self.up().is_some_and(Up::is_certain)
    }

    /// Why the dialog on the screen can't be one that Claude Code has drawn.
    fn strange_dialog(&self) -> Option<String> {
        let unknown = match self.dialog()?.kind {
            DialogKind::Question => {
                "the screen shows another question than has come to the gate, or other options, or another order"
            }
            DialogKind::Plan => "the screen shows another plan than has come to the gate",
            _ => "the dialog on the screen is not about a call that has come to the gate",
        };
        let by_gate = (self.gate_knows_dialog() == Some(Known::Not)).then(|| unknown.to_owned());
        by_gate.or_else(|| self.strange_options())
    }

    pub(super) fn doubtful_input_box(&self, why: &str) -> RpcError {
        let name = &self.config.name;
        let text = format!("{name} is doubtful, so nothing was typed: {why}");
        Refusal::Doubtful.says(text).next(format!(
            "see what each says: missiond why {name}; look at it: missiond attach {name}"
        ))
    }

    pub(super) fn doubtful_dialog(&self, why: &str) -> RpcError {
        let name = &self.config.name;
        let text = format!("{name} is doubtful, so nothing is pressed: {why}");
        Refusal::Doubtful.says(text).next(format!(
            "see what each says: missiond why {name}; decline it: missiond confirm {name} no; if you are sure: \
             missiond confirm {name} … --anyway"
        ))
    }
}
