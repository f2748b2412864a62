//! Counters and gauges in the text format of Prometheus. Pure.

use super::tally::{EDGES, Histogram};
use super::{Activity, Tally, in_seconds};
use crate::core::claude::reading::State;
use crate::core::model::SlotStatus;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A metric: its name, its type and what it says.
type Family = (&'static str, &'static str, &'static str);

const INFO: Family = ("missiond_info", "gauge", "The version of the daemon.");
const SLOT_STATE: Family = (
    "missiond_slot_state",
    "gauge",
    "1 for the state that a slot is in, 0 for the others.",
);
const STATE_SECONDS: Family = (
    "missiond_state_seconds_total",
    "counter",
    "Seconds that a slot worked, waited for a person, was idle or down since the daemon began.",
);
const ASKS_OPEN: Family = (
    "missiond_asks_open",
    "gauge",
    "Dialogs that wait for a person.",
);
const ASK_OLDEST: Family = (
    "missiond_ask_oldest_seconds",
    "gauge",
    "How long the oldest dialog has waited for a person; 0 if none waits.",
);
const WAITING: Family = (
    "missiond_waiting_for_person_seconds",
    "histogram",
    "How long dialogs have waited for a person.",
);
const VERDICTS: Family = (
    "missiond_verdicts_total",
    "counter",
    "Verdicts of the rules on tool calls.",
);
const ANSWERS: Family = (
    "missiond_answers_total",
    "counter",
    "Answers of people to dialogs.",
);
const RESTARTS: Family = (
    "missiond_restarts_total",
    "counter",
    "Automatic restarts after a failure.",
);
const COST: Family = (
    "missiond_cost_dollars_total",
    "counter",
    "US dollars since the daemon began, in slots with a max_cost.",
);

/// All metrics that there are.
pub const FAMILIES: [Family; 10] = [
    INFO,
    SLOT_STATE,
    STATE_SECONDS,
    ASKS_OPEN,
    ASK_OLDEST,
    WAITING,
    VERDICTS,
    ANSWERS,
    RESTARTS,
    COST,
];

/// The page for a monitor: what these slots are and what was counted of them. Sessions are not shown.
pub fn exposition(
    version: &str,
    slots: &[SlotStatus],
    tally: &Tally,
    now: DateTime<Utc>,
) -> String {
    let slots: Vec<&SlotStatus> = slots.iter().filter(|slot| slot.session.is_none()).collect();
    let mut page = MetricsPage::default();
    page.family(INFO);
    page.sample(&[("version", version)], 1.0);
    states(&mut page, &slots, tally, now);
    asks(&mut page, &slots, tally, now);
    verdicts(&mut page, &slots, tally);
    page.family(RESTARTS);
    for slot in &slots {
        page.sample(&[("slot", &slot.slot)], f64::from(slot.restarts));
    }
    page.family(COST);
    for slot in slots.iter().filter(|slot| slot.cost.is_some()) {
        let dollars = tally.of(&slot.slot).map_or(0.0, |tally| tally.dollars());
        page.sample(&[("slot", &slot.slot)], dollars);
    }
    page.text
}

fn states(page: &mut MetricsPage, slots: &[&SlotStatus], tally: &Tally, now: DateTime<Utc>) {
    page.family(SLOT_STATE);
    for slot in slots {
        for state in State::ALL {
            let labels = [
                ("slot", slot.slot.as_str()),
                ("role", &slot.role),
                ("state", state.name()),
            ];
            page.sample(&labels, f64::from(u8::from(slot.state == state)));
        }
    }
    page.family(STATE_SECONDS);
    for slot in slots {
        let known = Activity::ALL.into_iter();
        for activity in known.filter(|activity| *activity != Activity::Unknown) {
            let counted = tally.of(&slot.slot);
            let seconds = counted.map_or(0.0, |tally| tally.seconds_of(activity, now));
            let labels = [("slot", slot.slot.as_str()), ("activity", activity.name())];
            page.sample(&labels, seconds);
        }
    }
}

fn asks(page: &mut MetricsPage, slots: &[&SlotStatus], tally: &Tally, now: DateTime<Utc>) {
    page.family(ASKS_OPEN);
    for slot in slots {
        let open = u8::from(slot.dialog.is_some());
        page.sample(&[("slot", &slot.slot)], f64::from(open));
    }
    let open = slots.iter().filter(|slot| slot.dialog.is_some());
    let since = |slot: &&&SlotStatus| {
        let counted = tally.of(&slot.slot).and_then(|tally| tally.waits_since());
        counted.unwrap_or(slot.since)
    };
    let oldest = open.map(|slot| since(&slot)).min();
    let oldest = oldest.map_or(0.0, |since| in_seconds(now - since).max(0.0));
    page.family(ASK_OLDEST);
    page.sample(&[], oldest);
    let mut waits = BTreeMap::<(&str, &str), Histogram>::new();
    for slot in slots {
        let counted = tally.of(&slot.slot).into_iter();
        for (tool, histogram) in counted.flat_map(|tally| tally.waits()) {
            waits.entry((&slot.role, tool)).or_default().plus(histogram);
        }
    }
    page.family(WAITING);
    for ((role, tool), histogram) in waits {
        page.histogram(&[("role", role), ("tool", tool)], &histogram);
    }
}

fn verdicts(page: &mut MetricsPage, slots: &[&SlotStatus], tally: &Tally) {
    let mut verdicts = BTreeMap::<(&str, &str, &str), u64>::new();
    let mut answers = BTreeMap::<(&str, &str), u64>::new();
    for slot in slots {
        let Some(counted) = tally.of(&slot.slot) else {
            continue;
        };
        for ((answer, rule), count) in counted.verdicts() {
            *verdicts.entry((&slot.role, answer, rule)).or_default() += count;
        }
        for (answer, count) in counted.answers() {
            *answers.entry((&slot.role, answer)).or_default() += count;
        }
    }
    page.family(VERDICTS);
    for ((role, answer, rule), count) in verdicts {
        let labels = [("role", role), ("answer", answer), ("rule", rule)];
        page.sample(&labels, count as f64);
    }
    page.family(ANSWERS);
    for ((role, answer), count) in answers {
        page.sample(&[("role", role), ("answer", answer)], count as f64);
    }
}

#[derive(Default)]
struct MetricsPage {
    text: String,
    name: &'static str,
}

impl MetricsPage {
    fn family(&mut self, (name, kind, help): Family) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let edges = EDGES.iter().map(ToString::to_string);
        let within = histogram.within.iter().copied().chain([histogram.count]);
        for (edge, count) in edges.chain(["+Inf".to_owned()]).zip(within) {
            let labels = [labels, &[("le", edge.as_str())]].concat();
            self.line("_bucket", &labels, count as f64);
        }
        self.line("_sum", labels, histogram.sum);
        self.line("_count", labels, histogram.count as f64);
    }

    fn line(&mut self, part: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let labels = match labels.is_empty() {
            true => labels,
            false => format!("{{{labels}}}"),
        };
        let _ = writeln!(self.text, "{}{part}{labels} {value}", self.name);
    }
}

/// As the format demands; other control characters, which it would allow, become a mark.
fn escaped(value: &str) -> String {
    let mut shown = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '"' => shown.push_str("\\\""),
            '\n' => shown.push_str("\\n"),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::Event;
    use regex::Regex;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap()
    }

    fn event(slot: &str, second: i64, what: &Value) -> Event {
        let mut event = json!({"seq": 1, "time": at(second), "slot": slot});
        let fields = event.as_object_mut().unwrap();
        fields.extend(what.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn status(slot: &str, role: &str, state: State) -> SlotStatus {
        serde_json::from_value(json!({
            "slot": slot, "role": role, "kind": "claude", "state": state, "since": at(0),
            "started_at": null, "pid": null, "restarts": 2, "session_id": null, "task_id": null,
            "cwd": "/src", "dialog": null, "gate": "hook", "mode": null, "last_error": null,
            "owner": "missiond", "log": "/l", "doing": null, "background": 0, "queued": 0,
            "changed": false, "cost": 0.5
        }))
        .unwrap()
    }

    fn dialog(id: &str, tool: &str) -> Value {
        json!({"event": "dialog", "dialog": {"id": id, "kind": "permission", "tool": tool,
            "input": {"command": "x"}, "text": "", "options": [], "selected": null, "complete": true}})
    }

    fn verdict(tool: &str, by: &str, decision: &str, rule: Option<&str>) -> Value {
        let rule = rule.map(|text| json!({"text": text, "file": "/p/coder.toml", "line": 7}));
        json!({"event": "verdict", "tool": tool, "target": "x", "verdict": decision, "rule": rule,
            "why": "", "by": by})
    }

    fn counted(events: &[(&str, i64, Value)]) -> Tally {
        let mut tally = Tally::default();
        for (slot, second, what) in events {
            tally.take(&event(slot, *second, what));
        }
        tally
    }

    #[test]
    fn a_page_has_what_slots_did() {
        let state = |to: &str| json!({"event": "state", "from": "idle", "to": to});
        let tally = counted(&[
            ("a", 0, state("thinking")),
            ("a", 10, verdict("Bash", "policy", "ask", Some("Bash(x *)"))),
            ("a", 10, dialog("d1", "Bash")),
            ("a", 52, verdict("Bash", "person", "allow", None)),
            ("a", 52, json!({"event": "dialog_gone", "id": "d1"})),
            ("a", 60, state("idle")),
            (
                "a",
                61,
                json!({"event": "cost", "dollars": 0.25, "total": 0.5}),
            ),
            ("b", 20, state("idle")),
            ("b", 30, dialog("d2", "Bash")),
            ("session", 1, state("idle")),
        ]);
        let mut waits = status("b", "coder", State::Confirming);
        waits.dialog = serde_json::from_value(dialog("d2", "Bash")["dialog"].clone()).unwrap();
        let slots = [status("a", "coder", State::Idle), waits];
        insta::assert_snapshot!(exposition("9.9.9", &slots, &tally, at(100)));
    }

    /// Names come from models and files; a line is a line whatever they are, and there are not too many.
    #[test]
    fn hostile_names_are_escaped_and_bounded() {
        let evil = "x\"} 1\nmissiond_info{version=\"evil\\\u{1b}[2J\r";
        let mut events = vec![(
            "a",
            0,
            json!({"event": "state", "from": "idle", "to": "thinking"}),
        )];
        for number in 0..2_000 {
            let (tool, rule) = (format!("{evil}{number}"), format!("Bash({evil}{number})"));
            events.push(("a", 1, verdict(&tool, "policy", "allow", Some(&rule))));
            events.push(("a", 2, dialog(&number.to_string(), &tool)));
        }
        let secret = "Bash(curl -H 'Authorization: Bearer abcdefgh12345')";
        events.insert(1, ("a", 1, verdict("Bash", "policy", "ask", Some(secret))));
        let long = "y".repeat(100_000);
        events.push(("a", 3, verdict("Bash", "policy", "deny", Some(&long))));
        let tally = counted(&events);
        let page = exposition(evil, &[status("a", evil, State::Idle)], &tally, at(10));
        assert!(page.len() < 1_000_000, "{} bytes", page.len());
        let line =
            r#"^[a-z_]+(\{[a-z]+="([^"\\]|\\["\\n])*"(,[a-z]+="([^"\\]|\\["\\n])*")*\})? [0-9.]+$"#;
        let line = Regex::new(line).unwrap();
        for found in page.lines().filter(|line| !line.starts_with("# ")) {
            assert!(line.is_match(found), "{found:?}");
            assert!(!found.contains(char::is_control), "{found:?}");
        }
        assert!(page.contains("rule=\"Bash(curl") && !page.contains("abcdefgh12345"));
        assert!(page.contains("rule=\"other\"") && page.contains("tool=\"other\""));
        assert_eq!(page.matches("\nmissiond_info{").count(), 1);
        let many = (0..10_000).map(|number| {
            let state = json!({"event": "state", "from": "idle", "to": "idle"});
            event(&format!("slot{number}"), 0, &state)
        });
        let mut tally = Tally::default();
        many.for_each(|event| tally.take(&event));
        assert!(tally.of("slot0").is_some() && tally.of("slot9999").is_none());
    }

    #[test]
    fn a_session_that_is_closed_is_forgotten() {
        let begin = json!({"event": "state", "from": "idle", "to": "idle"});
        let end = json!({"event": "closed", "why": "x"});
        assert!(counted(&[("s", 0, begin.clone())]).of("s").is_some());
        assert!(counted(&[("s", 0, begin), ("s", 1, end)]).of("s").is_none());
    }

    /// The dashboard asks for nothing that there is not, and shows everything that there is but the version.
    #[test]
    fn the_dashboard_has_the_names_of_the_metrics() {
        let dashboard = include_str!("../../../dist/grafana.json");
        assert!(serde_json::from_str::<Value>(dashboard).is_ok());
        let names = Regex::new("missiond_[a-z_]+").unwrap();
        let asked = names.find_iter(dashboard).map(|found| found.as_str());
        let asked: BTreeSet<&str> = asked
            .map(|name| name.trim_end_matches("_bucket").trim_end_matches("_sum"))
            .collect();
        let all = FAMILIES.iter().map(|(name, _, _)| *name);
        let all: BTreeSet<&str> = all.filter(|name| *name != INFO.0).collect();
        assert_eq!(asked, all);
    }
}
