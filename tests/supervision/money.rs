//! What a conversation may cost, by the count of the real Claude Code.

use super::scripts::{QUICK, log_when, status_when};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use chrono::Datelike;
use missiond::lab::rehearsal::Step;
use std::fs;

/// Nobody's status line is lost to ours: it stands on the screen as before. What it reads ends when ours has passed the
/// figure on, or has given up; then it writes down whose line it was.
const OWN_LINE: &str = r#"{"statusLine": {"type": "command",
    "command": "sed 's/.*\"version\":\"\\([^\"]*\\)\".*/my own line, \\1/'; echo $PPID >> ~/shown # and a remark"}}"#;

fn cost(daemon: &Daemon) -> f64 {
    daemon.status("coder")["cost"].as_f64().expect("a cost")
}

#[test]
fn the_cost_is_counted_across_restarts_and_ends_the_slot_at_its_limit() {
    let keys = format!("{QUICK}max_cost = 1\nautostart = false\n");
    let Some(mut daemon) = Daemon::start(&Setup::new().slot_with("coder", &keys)) else {
        return;
    };
    let own = daemon.home().join(".claude");
    fs::create_dir_all(&own).expect("it can be made");
    fs::write(own.join("settings.json"), OWN_LINE).expect("it can be written");
    let dear = |tokens| vec![Step::Tokens { tokens }, Step::text("That was dear.")];
    daemon.endpoint.on("spend a little", dear(10_000));
    daemon.endpoint.on("spend a lot", dear(200_000));
    daemon.cmd(&["start", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let wait = ["wait", "coder", "--output", "my own line, 2.", "--timeout"];
    daemon.cmd(&[&wait[..], &["50s"]].concat()).expect(0);
    assert_eq!(cost(&daemon), 0.0);

    daemon.cmd(&["send", "coder", "spend a little"]).expect(0);
    let first = until("a figure", || {
        Some(cost(&daemon)).filter(|cost| *cost > 0.0)
    });
    let pid = daemon.status("coder")["pid"].as_i64().expect("a pid");
    processes::kill(pid as i32);
    status_when(&daemon, "coder", "started again", |status| {
        status["restarts"] == 1 && status["state"] == "idle"
    });
    let pid = daemon.status("coder")["pid"].to_string();
    daemon.crash();
    // Nobody hears the first figure of this run, unless it came before the crash.
    until("a status line of the new run", || {
        let shown = fs::read_to_string(daemon.home().join("shown")).unwrap_or_default();
        shown.lines().any(|line| line == pid).then_some(())
    });
    daemon.again();
    daemon.wait_state("coder", "idle");
    assert_eq!(cost(&daemon), first, "it is remembered");
    assert!(daemon.log("coder").matches("resumed session").count() == 1);

    // Its answer may be there before the figure is.
    daemon.cmd(&["send", "coder", "spend a lot"]);
    let status = status_when(&daemon, "coder", "its end", |status| {
        status["state"] == "exited" && status["last_error"].is_string()
    });
    let why = status["last_error"].as_str().unwrap_or_default();
    assert!(why.starts_with("max_cost: $"), "{status}");
    assert!(status["cost"].as_f64() > Some(first + 1.0), "{status}");
    log_when(&daemon, "coder", "TROUBLE   max_cost: $");
    let refused = daemon.cmd(&["send", "coder", "hello"]).expect(4);
    assert!(refused.stderr.contains("missiond start coder"), "{refused}");
}

/// The turn that goes beyond it ends by itself; the next message waits for another day.
#[test]
fn the_cost_of_a_day_holds_messages_and_is_told_by_cost() {
    let keys = format!("{QUICK}max_cost_per_day = 0.01\n");
    let Some(daemon) = Daemon::start(&Setup::new().slot_with("coder", &keys)) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let dear = vec![
        Step::Tokens { tokens: 10_000 },
        Step::text("That was dear."),
    ];
    daemon.endpoint.on("spend a little", dear);
    daemon.cmd(&["send", "coder", "spend a little"]).expect(0);
    log_when(&daemon, "coder", "TROUBLE   max_cost_per_day: $");
    let later = ["send", "coder", "--no-wait", "--id", "later", "hello"];
    daemon.cmd(&later).expect(0);
    status_when(&daemon, "coder", "a message that waits", |status| {
        let doing = status["doing"].as_str().unwrap_or_default();
        status["queued"] == 1 && doing.contains("until max_cost_per_day counts anew")
    });
    assert_eq!(daemon.status("coder")["state"], "idle");

    let cost = daemon.json(&["cost"]);
    let row = &cost["rows"][0];
    assert_eq!(
        (&row["slot"], &cost["rows"][1]),
        (&"coder".into(), &serde_json::Value::Null)
    );
    assert!(row["tokens"]["output"].as_u64() >= Some(10_000), "{cost}");
    let shown = daemon.status("coder")["cost"].clone();
    assert!(row["dollars"].as_f64() > Some(0.01), "{cost}");
    assert_eq!(row["dollars"], shown, "{cost}");
}

/// What one slot of a role has cost holds the messages of another one, and a person is told once.
#[test]
fn the_cost_of_a_role_holds_the_messages_of_all_its_slots() {
    let setup = Setup::new()
        .slot_with("coder", &format!("{QUICK}max_role_cost_per_day = 0.01\n"))
        .slot_with("helper", &format!("{QUICK}max_role_cost_per_day = 0.01\n"))
        .slot_with("writer", &format!("{QUICK}max_role_cost_per_day = 0.01\n"));
    let Some(mut daemon) = Daemon::start(&in_one_role(setup, "coder", &["coder", "helper"])) else {
        return;
    };
    for slot in ["coder", "helper", "writer"] {
        daemon.wait_state(slot, "idle");
    }
    let dear = vec![
        Step::Tokens { tokens: 10_000 },
        Step::text("That was dear."),
    ];
    daemon.endpoint.on("spend a little", dear);
    daemon.cmd(&["send", "coder", "spend a little"]).expect(0);
    let told = |daemon: &Daemon| {
        let logs = ["coder", "helper"].map(|slot| daemon.log(slot));
        let cause = "TROUBLE   max_role_cost_per_day: $";
        logs.iter()
            .map(|log| log.matches(cause).count())
            .sum::<usize>()
    };
    until("a person to be told", || (told(&daemon) > 0).then_some(()));
    let held = |daemon: &Daemon, slot: &str| {
        let hello = ["send", slot, "--no-wait", "--id", slot, "hello"];
        daemon.cmd(&hello).expect(0);
        status_when(daemon, slot, "a message that waits", |status| {
            let doing = status["doing"].as_str().unwrap_or_default();
            status["queued"] == 1 && doing.contains("until max_role_cost_per_day counts anew")
        });
    };
    held(&daemon, "helper");
    // Another role has its own count.
    daemon.cmd(&["send", "writer", "hello"]).expect(0);
    // The next daemon knows what each slot has cost.
    daemon.crash();
    daemon.again();
    daemon.wait_state("coder", "idle");
    held(&daemon, "coder");
    assert_eq!(told(&daemon), 1, "once");
    let by_role = daemon.json(&["cost", "--by", "role"]);
    let of_coder = by_role["rows"].as_array().expect("rows").iter();
    let of_coder: Vec<_> = of_coder.filter(|row| row["role"] == "coder").collect();
    assert_eq!(of_coder.len(), 1, "{by_role}");
    assert!(of_coder[0]["dollars"].as_f64() > Some(0.01), "{by_role}");
}

fn in_one_role(mut setup: Setup, role: &str, names: &[&str]) -> Setup {
    for slot in setup.slots.iter_mut() {
        if names.contains(&slot.name.as_str()) {
            slot.role = role.to_owned();
        }
    }
    setup
}

/// The limits of an account can't be reached without one; those of an API key can.
#[test]
fn what_the_api_refuses_to_pay_for_is_the_last_error() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let refusal = |message: &str| vec![Step::error(400, "invalid_request_error", message)];
    let broke = "Your credit balance is too low to access the Anthropic API.";
    daemon.endpoint.on("spend it", refusal(broke));
    let year = chrono::Utc::now().date_naive().year() + 1;
    let limit = format!(
        "You have reached your specified API usage limits. You will regain access on {year}-12-01 at 00:00 UTC."
    );
    daemon.endpoint.on("spend more", refusal(&limit));

    // The screen has other words for it than the transcript.
    let refused = daemon.cmd(&["send", "coder", "spend it"]).expect(1);
    assert!(refused.stderr.contains("Credit balance"), "{refused}");
    let status = daemon.status("coder");
    assert_eq!(status["state"], "idle", "{status}");
    let why = status["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("Credit balance"), "{status}");
    log_when(&daemon, "coder", "TROUBLE   usage limit: Credit balance");

    // Where it is told when it is over, messages wait until then.
    let refused = daemon.cmd(&["send", "coder", "spend more"]).expect(1);
    assert!(refused.stderr.contains("usage limits"), "{refused}");
    log_when(
        &daemon,
        "coder",
        "TROUBLE   usage limit: API Error: 400 You",
    );
    let later = daemon.spawn(&["send", "coder", "hello"]);
    until("the message to wait", || {
        let doing = daemon.status("coder")["doing"].clone();
        let held = doing.as_str()?.contains("until the usage limit is reset");
        held.then_some(())
    });
    drop(later);

    // A person who has raised the limit starts it anew.
    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "hello"]).expect(0);
}
