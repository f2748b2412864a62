//! Which slots wait for a person, and what was told of them.

use super::{Alert, AlertState};
use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use crate::core::policy::Decision;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a slot may need a person for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A dialog that nobody has answered yet.
    Answer,
    /// Witnesses that differ. Mostly they agree again by themselves, once the screen was drawn anew.
    Look,
    /// It was given up.
    Start,
    /// A stall, a limit, an alarm, by its name.
    Trouble(String),
}

impl Need {
    /// Whether it is told at once: it does not go away by itself.
    fn is_urgent(&self) -> bool {
        matches!(self, Need::Start | Need::Trouble(_))
    }
}

#[derive(Debug)]
struct WaitingAlert {
    alert: Alert,
    /// Of the dialog, if it is one.
    dialog: Option<String>,
    since: Instant,
    told: bool,
    /// A person's answer, on its way to the dialog.
    answer: Option<AlertState>,
}

/// Who waits. There is at most one entry for each slot and need.
#[derive(Debug, Default)]
pub struct AlertDesk {
    waiting: BTreeMap<(String, Need), WaitingAlert>,
}

impl AlertDesk {
    /// Takes an event in. What was told before and needs nobody any more is told as such.
    pub fn hear(&mut self, event: &Event, now: Instant) -> Vec<Alert> {
        let Some(slot) = &event.slot else {
            return Vec::new();
        };
        // What has no id of its own is told apart by its place among the events.
        let nth = event.seq.to_string();
        let alert = |event: &str, text: &str| Alert::new(slot, event, &nth, text);
        match &event.what {
            EventKind::Dialog { dialog } => return self.asks(slot, dialog, now),
            EventKind::DialogGone { id } => return self.dialog_gone(slot, id),
            EventKind::Verdict {
                verdict, via, by, ..
            } if by == "person" => self.answered(slot, *verdict, via.as_deref()),
            EventKind::Doubtful { why } => self.wait(slot, Need::Look, alert("doubtful", why), now),
            EventKind::DoubtGone => return self.settled(slot, |need| *need == Need::Look),
            EventKind::Exit { .. } => return self.settled(slot, |need| *need != Need::Start),
            EventKind::Spawned { .. } => return self.settled(slot, |_| true),
            EventKind::GaveUp { reason } => {
                self.wait(slot, Need::Start, alert("gave_up", reason), now);
            }
            EventKind::Trouble { cause, text } => {
                let need = Need::Trouble(cause.clone());
                self.wait(slot, need, alert(cause, text), now);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Looks at all slots, each with the dialog that is up, after events were missed.
    pub fn compare(
        &mut self,
        slots: impl Iterator<Item = (String, Option<Dialog>)>,
        now: Instant,
    ) -> Vec<Alert> {
        let slots: BTreeMap<String, Option<Dialog>> = slots.collect();
        let waiting = self.waiting.keys();
        let mut waiting: Vec<String> = waiting.map(|(slot, _)| slot.clone()).collect();
        waiting.dedup();
        let mut over = Vec::new();
        for slot in waiting {
            match slots.get(&slot) {
                Some(Some(_)) => {}
                Some(None) => over.extend(self.settled(&slot, |need| *need == Need::Answer)),
                None => over.extend(self.settled(&slot, |_| true)),
            }
        }
        for (slot, dialog) in &slots {
            over.extend(
                dialog
                    .iter()
                    .flat_map(|dialog| self.asks(slot, dialog, now)),
            );
        }
        over
    }

    /// The dialog is asked about once, however often it is told of.
    fn asks(&mut self, slot: &str, dialog: &Dialog, now: Instant) -> Vec<Alert> {
        let key = (slot.to_owned(), Need::Answer);
        let known = self.waiting.get(&key);
        if known.is_some_and(|known| known.dialog.as_ref() == Some(&dialog.id)) {
            return Vec::new();
        }
        let before = self.settled(slot, |need| *need == Need::Answer);
        self.wait(slot, Need::Answer, Alert::of_dialog(slot, dialog), now);
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.dialog = Some(dialog.id.clone());
        }
        before
    }

    fn wait(&mut self, slot: &str, need: Need, alert: Alert, since: Instant) {
        let waiting = WaitingAlert {
            alert,
            dialog: None,
            since,
            told: false,
            answer: None,
        };
        self.waiting.insert((slot.to_owned(), need), waiting);
    }

    fn answered(&mut self, slot: &str, verdict: Decision, via: Option<&str>) {
        let waiting = self.waiting.get_mut(&(slot.to_owned(), Need::Answer));
        if let Some(waiting) = waiting {
            let answer = match verdict {
                Decision::Allow => Some("yes"),
                Decision::Deny => Some("no"),
                // The key was withheld.
                _ => None,
            };
            waiting.answer = answer.map(|answer| AlertState::Answered {
                answer,
                via: via.unwrap_or("a person").to_owned(),
            });
        }
    }

    fn dialog_gone(&mut self, slot: &str, id: &str) -> Vec<Alert> {
        let key = (slot.to_owned(), Need::Answer);
        let waiting = self.waiting.get(&key);
        match waiting.is_some_and(|waiting| waiting.dialog.as_deref() == Some(id)) {
            true => self.settled(slot, |need| *need == Need::Answer),
            false => Vec::new(),
        }
    }

    /// Removes needs of a slot. What was told of them is told to be over.
    fn settled(&mut self, slot: &str, which: impl Fn(&Need) -> bool) -> Vec<Alert> {
        let over = self
            .waiting
            .extract_if(.., |(of, need), _| of == slot && which(need));
        over.filter(|(_, waiting)| waiting.told)
            .map(|(_, waiting)| Alert {
                state: waiting.answer.unwrap_or(AlertState::Gone),
                ..waiting.alert
            })
            .collect()
    }

    /// When the next one has waited for long enough.
    pub fn due(&self, after: Option<Duration>) -> Option<Instant> {
        let untold = self.waiting.iter().filter(|(_, waiting)| !waiting.told);
        let due = untold.filter_map(|((_, need), waiting)| waiting.due(need, after));
        due.min()
    }

    /// Those that have waited for long enough, each once.
    pub fn take_due(&mut self, after: Option<Duration>, now: Instant) -> Vec<Alert> {
        let mut told = Vec::new();
        self.waiting.retain(|(_, need), waiting| {
            let is_due = waiting.due(need, after).is_some_and(|due| due <= now);
            if !waiting.told && is_due {
                waiting.told = true;
                told.push(waiting.alert.clone());
            }
            // A trouble has no end that could be told.
            !(waiting.told && matches!(need, Need::Trouble(_)))
        });
        told
    }
}

impl WaitingAlert {
    fn due(&self, need: &Need, after: Option<Duration>) -> Option<Instant> {
        match need.is_urgent() {
            true => Some(self.since),
            false => Some(self.since + after?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::DialogKind;

    const AFTER: Option<Duration> = Some(Duration::from_secs(60));

    fn question(id: &str) -> Dialog {
        Dialog {
            text: "Which one?".into(),
            ..Dialog::new(id, DialogKind::Question)
        }
    }

    fn dialog(id: &str) -> EventKind {
        EventKind::Dialog {
            dialog: question(id),
        }
    }

    fn gone(id: &str) -> EventKind {
        EventKind::DialogGone { id: id.into() }
    }

    fn verdict(by: &str, verdict: Decision) -> EventKind {
        EventKind::Verdict {
            tool: "Bash".into(),
            target: "ls".into(),
            verdict,
            rule: None,
            why: String::new(),
            by: by.into(),
            via: Some("cli confirm".into()),
            answer: None,
            agent: None,
        }
    }

    struct Bench {
        desk: AlertDesk,
        start: Instant,
    }

    impl Bench {
        fn new() -> Bench {
            Bench {
                desk: AlertDesk::default(),
                start: Instant::now(),
            }
        }

        fn hear(&mut self, what: EventKind) -> Vec<Alert> {
            self.desk.hear(&Event::sample(what), self.start)
        }

        fn after(&mut self, seconds: u64) -> Vec<Alert> {
            let now = self.start + Duration::from_secs(seconds);
            self.desk.take_due(AFTER, now)
        }
    }

    #[test]
    fn a_dialog_is_told_of_once_and_only_when_it_has_waited() {
        let mut bench = Bench::new();
        assert_eq!(bench.hear(dialog("d1")), []);
        assert_eq!(
            bench.desk.due(AFTER),
            Some(bench.start + Duration::from_secs(60))
        );
        assert_eq!(bench.after(59), []);
        let told = bench.after(60);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].event.as_str(), told[0].text.as_str()),
            ("waits", "Which one?")
        );
        assert_eq!(bench.hear(dialog("d1")), [], "the same one");
        assert_eq!(bench.after(600), []);
        assert_eq!(bench.desk.due(AFTER), None);
    }

    #[test]
    fn one_that_was_answered_in_time_is_not_told_of_at_all() {
        let mut bench = Bench::new();
        bench.hear(dialog("d1"));
        assert_eq!(bench.hear(gone("d0")), []);
        assert!(bench.desk.due(AFTER).is_some(), "another one went");
        bench.hear(verdict("person", Decision::Allow));
        assert_eq!(bench.hear(gone("d1")), []);
        assert_eq!(bench.desk.due(AFTER), None);
        bench.hear(dialog("d2"));
        assert_eq!(bench.desk.due(None), None, "switched off");
    }

    #[test]
    fn the_end_of_one_that_was_told_is_told_with_the_answer_and_the_same_id() {
        let mut bench = Bench::new();
        bench.hear(dialog("d1"));
        let told = bench.after(60);
        // A rule has decided on another call meanwhile.
        bench.hear(verdict("policy", Decision::Allow));
        bench.hear(verdict("person", Decision::Deny));
        let end = bench.hear(gone("d1"));
        assert_eq!(end.len(), 1);
        assert_eq!(end[0].id, told[0].id);
        let answered = AlertState::Answered {
            answer: "no",
            via: "cli confirm".into(),
        };
        assert_eq!(end[0].state, answered);
        assert_eq!(bench.hear(gone("d1")), [], "once");
        bench.hear(dialog("d2"));
        bench.after(60);
        let end = bench.hear(dialog("d3"));
        assert_eq!(end[0].state, AlertState::Gone, "{end:?}");
    }

    #[test]
    fn what_was_missed_is_taken_from_the_slots_themselves() {
        let mut bench = Bench::new();
        bench.hear(dialog("d1"));
        bench.after(60);
        let mut compare = |up: &[(&str, Option<Dialog>)]| {
            let up = up.iter().map(|(slot, up)| (slot.to_string(), up.clone()));
            bench.desk.compare(up, bench.start)
        };
        assert_eq!(
            compare(&[("a", Some(question("d1")))]),
            [],
            "it still waits"
        );
        let over = compare(&[("a", None), ("b", Some(question("d2")))]);
        assert_eq!(over.len(), 1, "{over:?}");
        assert_eq!(over[0].state, AlertState::Gone);
        let told = bench.after(60);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].slot, "b");
        let over = bench.desk.compare(std::iter::empty(), bench.start);
        assert_eq!(over.len(), 1, "the slot is gone: {over:?}");
    }

    #[test]
    fn a_doubt_is_told_of_beside_a_dialog_unless_it_goes_in_time() {
        let mut bench = Bench::new();
        let doubt = || EventKind::Doubtful { why: "why".into() };
        bench.hear(doubt());
        bench.hear(EventKind::DoubtGone);
        assert_eq!(bench.desk.due(AFTER), None, "it went");
        bench.hear(doubt());
        bench.hear(dialog("d1"));
        bench.hear(gone("d1"));
        let told = bench.after(60);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            (told[0].event.as_str(), told[0].text.as_str()),
            ("doubtful", "why")
        );
        assert_eq!(bench.after(60), [], "once");
    }

    #[test]
    fn what_does_not_go_by_itself_is_told_at_once_unless_it_was_over_before() {
        let mut bench = Bench::new();
        let reason = || EventKind::GaveUp {
            reason: "exit 3".into(),
        };
        bench.hear(reason());
        // Quiet hours: nobody has taken it yet, and a person has started the slot again.
        let spawned = || EventKind::Spawned {
            pid: 1,
            session_id: None,
            resumed: false,
        };
        assert_eq!(bench.hear(spawned()), []);
        assert_eq!(bench.after(0), []);
        bench.hear(reason());
        assert_eq!(bench.after(0)[0].event, "gave_up");
        assert_eq!(bench.hear(spawned())[0].state, AlertState::Gone);
        bench.hear(EventKind::Trouble {
            cause: "stalled".into(),
            text: "it stalled".into(),
        });
        assert_eq!(bench.after(0)[0].event, "stalled");
        assert_eq!(bench.hear(spawned()), []);
    }
}
