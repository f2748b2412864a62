//! Each case is a log in a few words, and what was made of it. A line of a log begins with its second.

use super::*;
use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use serde_json::json;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap()
}

fn window(since: i64, until: i64) -> Window {
    Window {
        since: at(since),
        until: at(until),
        known: at(until),
    }
}

/// `10 state idle`, `20 ask CALL`, `21 dialog ID CALL`, `30 person allow CALL`, `31 gone ID`, `40 exit 35`.
fn event(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let call = |from: usize| words[from..].join(" ");
    let verdict = |by: &str, decision: &str, from: usize, rule: bool| {
        let rule = rule.then(|| json!({"text": "Bash(x *)", "file": "/p/coder.toml", "line": 7}));
        json!({"event": "verdict", "tool": "Bash", "target": call(from), "verdict": decision,
               "rule": rule, "why": "so it is", "by": by})
    };
    let dialog = |kind: &str, tool: Option<&str>| {
        json!({"event": "dialog", "dialog": {"id": words[2], "kind": kind, "tool": tool,
               "input": {"command": call(3)}, "text": "", "options": [], "selected": null, "complete": true}})
    };
    let what = match words[1] {
        "state" => json!({"event": "state", "from": "idle", "to": words[2]}),
        "rule" => verdict("policy", "ask", 2, true),
        "ask" => verdict("policy", "ask", 2, false),
        "silent" => verdict("policy", "none", 2, false),
        "allow" => verdict("policy", "allow", 2, true),
        "deny" => verdict("policy", "deny", 2, true),
        "person" => verdict("person", words[2], 3, false),
        "dialog" => dialog("permission", Some("Bash")),
        "question" => dialog("question", Some("AskUserQuestion")),
        "trust" => dialog("trust", None),
        "gone" => json!({"event": "dialog_gone", "id": words[2]}),
        "exit" => {
            let ended = words.get(2).map(|second| at(second.parse().unwrap()));
            json!({"event": "exit", "code": 0, "signal": null, "cause": "x", "ended_at": ended})
        }
        "trouble" => json!({"event": "trouble", "cause": call(2), "text": ""}),
        other => panic!("{other}"),
    };
    let mut value = json!({"seq": 1, "time": at(words[0].parse().unwrap()), "slot": "a"});
    value
        .as_object_mut()
        .unwrap()
        .extend(what.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn history(log: &str, window: Window) -> SlotHistory {
    let lines = log.split(';').map(str::trim);
    let events: Vec<Event> = lines.filter(|line| !line.is_empty()).map(event).collect();
    SlotHistory::of("a", &events, window)
}

fn seconds(from: DateTime<Utc>) -> i64 {
    (from - at(0)).num_seconds()
}

fn spans(history: &SlotHistory) -> String {
    let shown = history.spans.iter().map(|span| {
        let (begin, end) = (seconds(span.begin), seconds(span.end));
        format!("{} {begin}-{end}", span.activity.name())
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn waits(history: &SlotHistory) -> String {
    let shown = history.waits.iter().map(|wait| {
        let reason = match &wait.reason.rule {
            Some(rule) => format!("{}:{}", rule.text, rule.line),
            None => wait.reason.why.clone(),
        };
        let answer = wait.answer.map_or("-", Decision::word);
        let open = if wait.open { " open" } else { "" };
        let (begin, end) = (seconds(wait.begin), seconds(wait.end));
        format!("{begin}-{end} {reason} {answer}{open}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Log, spans, waits; the window is from second 0 to 100.
const CASES: &[(&str, &str, &str)] = &[
    ("", "unknown 0-100", ""),
    (
        "10 state idle; 30 state thinking; 60 state exited",
        "unknown 0-10, idle 10-30, works 30-60, down 60-100",
        "",
    ),
    // What was before the window says how it begins.
    (
        "-50 state idle; 50 state thinking",
        "idle 0-50, works 50-100",
        "",
    ),
    // Kinds of work are one.
    (
        "-1 state thinking; 5 state tool_running; 9 state responding",
        "works 0-100",
        "",
    ),
    // A rule asks, and a person says yes.
    (
        "-1 state thinking; 10 rule rm y; 11 dialog d rm y; 11 state confirming; 41 person allow rm y; 41 gone d; 41 state thinking",
        "works 0-11, waits 11-41, works 41-100",
        "11-41 Bash(x *):7 allow",
    ),
    // The verdict on another call is not the reason.
    (
        "-1 state thinking; 10 ask ls; 11 rule rm y; 12 dialog d ls; 20 gone d; 20 state idle",
        "works 0-12, waits 12-20, idle 20-100",
        "12-20 so it is -",
    ),
    // The gate left it to Claude Code, which asks.
    (
        "-1 state thinking; 10 silent ls; 12 dialog d ls; 20 person deny ls; 20 gone d",
        "works 0-12, waits 12-20, works 20-100",
        "12-20 Claude Code's own rules deny",
    ),
    // By the screen the rules are asked after the dialog is up: their yes waits for nobody.
    (
        "-1 state thinking; 12 dialog d ls; 12 state confirming; 13 allow ls; 14 gone d; 14 state thinking",
        "works 0-12, waits 12-13, works 13-100",
        "",
    ),
    (
        "-1 state thinking; 12 dialog d ls; 13 rule ls; 20 gone d",
        "works 0-12, waits 12-20, works 20-100",
        "12-20 Bash(x *):7 -",
    ),
    // A rule about the call of an agent does not answer a question.
    (
        "-1 state thinking; 12 question q Why; 13 allow ls; 20 person allow Why; 20 gone q",
        "works 0-12, waits 12-20, works 20-100",
        "12-20 a question allow",
    ),
    (
        "0 state starting; 5 trust t x; 25 gone t; 30 state idle",
        "works 0-5, waits 5-25, works 25-30, idle 30-100",
        "5-25 trust in a folder -",
    ),
    // One that began before the window, and one that is not over.
    (
        "-30 state thinking; -20 rule a b; -20 dialog d a b; -20 state confirming; 10 gone d; 10 state idle; 80 dialog e z",
        "waits 0-10, idle 10-80, waits 80-100",
        "0-10 Bash(x *):7 -, 80-100 no verdict is known - open",
    ),
    // An end of the program ends the dialog; one that no daemon saw is dated back.
    (
        "-1 state idle; 10 dialog d x; 20 exit",
        "idle 0-10, waits 10-20, down 20-100",
        "10-20 no verdict is known -",
    ),
    (
        "-1 state thinking; 60 state exited; 60 exit 40",
        "works 0-40, down 40-100",
        "",
    ),
    (
        "-1 state idle; 10 dialog d x; 60 state exited; 60 exit 40",
        "idle 0-10, waits 10-40, down 40-100",
        "10-40 no verdict is known -",
    ),
    // A clock that was set back does not make time run backwards.
    (
        "-1 state idle; 50 state thinking; 20 state idle; 70 state thinking",
        "idle 0-70, works 70-100",
        "",
    ),
];

#[test]
fn a_log_becomes_spans_and_waits() {
    for (log, expected_spans, expected_waits) in CASES {
        let history = history(log, window(0, 100));
        assert_eq!(spans(&history), *expected_spans, "{log}");
        assert_eq!(waits(&history), *expected_waits, "{log}");
        let whole: TimeDelta = Activity::ALL.map(|it| history.total(it)).iter().sum();
        assert_eq!(whole, TimeDelta::seconds(100), "{log}");
    }
}

#[test]
fn without_a_daemon_nothing_is_known_but_an_end() {
    let known = Window {
        known: at(60),
        ..window(0, 100)
    };
    let works = history("-1 state thinking", known);
    assert_eq!(spans(&works), "works 0-60, unknown 60-100");
    let ended = history("-1 state exited", known);
    assert_eq!(spans(&ended), "down 0-100");
}

#[test]
fn a_band_shows_what_took_most_time_and_waiting_sooner() {
    let log = "0 state thinking; 10 dialog d x; 12 gone d; 20 dialog e x; 21 gone e; 30 state idle; 36 state thinking; 90 state exited";
    let band = history(log, window(0, 100)).band(window(0, 100), 10);
    let shown: String = band.iter().map(|it| &it.name()[..1]).collect();
    assert_eq!(shown, "wwwiwwwwwd");
    assert_eq!(
        (band[0], band[1], band[2]),
        (Activity::Works, Activity::Waits, Activity::Works)
    );
    // Cells that are shorter than a millisecond, and none at all.
    assert_eq!(
        history(log, window(0, 1)).band(window(0, 1), 5000).len(),
        5000
    );
    assert_eq!(history(log, window(0, 1)).band(window(0, 1), 0).len(), 1);
}

#[test]
fn what_asks_have_cost_is_summed_up_by_rule_and_by_words() {
    let window = window(0, 1000);
    let mut log = String::from("-1 state thinking;");
    for (number, length) in [10, 20, 30, 40, 200].into_iter().enumerate() {
        let (begin, word) = (number * 200, if number == 0 { "ask" } else { "rule" });
        let answer = if number == 1 { "deny" } else { "allow" };
        let end = begin + length;
        log += &format!(
            "{begin} {word} x; {begin} dialog d{number} x; {end} person {answer} x; {end} gone d{number};"
        );
    }
    let report = TimelineReport::of(vec![history(&log, window)], window);
    let waiting = &report.waiting;
    let in_seconds = [waiting.total, waiting.p50, waiting.p95].map(|it| it.num_seconds());
    assert_eq!(in_seconds, [300, 30, 200]);
    let costs = waiting.by_reason.iter().map(|cost| {
        let rule = cost.reason.rule.as_ref().map_or("-", |rule| &rule.text);
        (
            rule,
            cost.asks,
            cost.allowed,
            cost.denied,
            cost.total.num_seconds(),
        )
    });
    let expected = [("Bash(x *)", 4, 3, 1, 290), ("-", 1, 1, 0, 10)];
    assert_eq!(costs.collect::<Vec<_>>(), expected);
    let longest = waiting.longest.as_ref().unwrap();
    assert_eq!(longest.begin, at(800));
    assert_eq!(
        TimelineReport::of(Vec::new(), window).waiting.p95,
        TimeDelta::zero()
    );
}

#[test]
fn what_rules_decided_and_what_was_wrong_counts_inside_the_window_only() {
    let log = "-5 state idle; -4 allow a; -3 trouble old; 1 allow b; 2 deny c; 3 ask d; 4 trouble usage limit";
    let history = history(log, window(0, 100));
    assert_eq!((history.by_rule, history.denied), (2, 1));
    assert_eq!(history.trouble, Some((at(4), "usage limit".to_owned())));
}

#[test]
fn only_what_is_needed_is_kept_of_an_event() {
    let mut dialog = Dialog::new("d", DialogKind::Permission);
    dialog.text = format!("\n first\n{}", "more\n".repeat(1000));
    let kept = needed(Event::sample(EventKind::Dialog { dialog }));
    let Some(EventKind::Dialog { dialog }) = kept.map(|event| event.what) else {
        panic!("a dialog is needed");
    };
    assert_eq!(dialog.text, " first");
    let text = EventKind::Message {
        text: String::new(),
    };
    assert_eq!(needed(Event::sample(text)), None);
}

#[test]
fn reading_goes_back_to_a_state_well_before_the_window() {
    let window = window(100, 200);
    for (line, is_enough) in [
        ("30 state idle", true),
        ("50 state idle", false),
        ("30 state confirming", false),
        ("30 gone d", false),
        ("150 state idle", false),
    ] {
        assert_eq!(window.begins_after(&event(line)), is_enough, "{line}");
    }
}
