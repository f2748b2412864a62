//! New rules, for what waits as well as for what comes.

use super::*;
use crate::control::protocol::Always;

impl Machine {
    /// Takes new rules, and judges again what waits for a person. That changes what is shown, never what was told to
    /// Claude Code: in a slot whose gate is heard a dialog that is up is answered by a person. Elsewhere the dialog goes
    /// the ordinary way of one that has just settled.
    pub(super) fn take_rules(&mut self, judge: Arc<dyn Judge>) {
        self.judge = judge;
        self.judge_open_calls();
        if let Some(up) = self.up_mut() {
            up.always = None;
            if up.for_person.as_ref().is_some_and(|waits| waits.by_rules) {
                up.for_person = None;
            }
        }
        self.judge_always();
    }

    fn judge_open_calls(&mut self) {
        let circumstances = self.circumstances();
        let (judge, cwd) = (self.judge.clone(), self.config.cwd.clone());
        let Some(up) = self.up_mut() else { return };
        up.calls.judge_again(|open| {
            let ask = Ask {
                tool: open.tool.clone(),
                input: open.input.clone(),
                cwd: cwd.clone(),
                at: open.at.clone(),
                complete: true,
            };
            let Verdict { decision, why, .. } = judge.at_the_gate(&ask, circumstances);
            match decision {
                Decision::Allow => {
                    format!("{why} by now, but it was asked before: it waits for you")
                }
                Decision::Deny => {
                    format!("{why} by now, but it was asked before: it waits for you")
                }
                Decision::Silent | Decision::Ask => why,
            }
        });
    }

    /// Finds out what `always` would do with the dialog that is up, unless that is known.
    pub(super) fn judge_always(&mut self) {
        let Some(dialog) = self.dialog() else {
            return;
        };
        let ask = self.ask_of(dialog);
        let is_call = dialog.kind == DialogKind::Permission;
        let known = self.up().and_then(|up| up.always.as_ref());
        if known.is_some_and(|(known, _)| *known == ask) {
            return;
        }
        let found = match is_call {
            true => self.judge.rule_for_always(&ask),
            false => Err("no rule speaks about a dialog that is no tool call".to_owned()),
        };
        if let Some(up) = self.up_mut() {
            up.always = Some((ask, Always::from(found)));
        }
    }

    /// What `always` would do with the dialog that is up.
    pub fn always(&self) -> Option<Always> {
        let up = self.up().filter(|up| up.dialog().is_some())?;
        up.always.as_ref().map(|(_, always)| always.clone())
    }
}
