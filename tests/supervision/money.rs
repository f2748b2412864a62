//! What a conversation may cost, by the count of the real Claude Code.

use super::scripts::{QUICK, log_when, status_when};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use missiond::rehearsal::Step;
use std::fs;

/// Nobody's status line is lost to ours: it stands on the screen as before.
const OWN_LINE: &str = r#"{"statusLine": {"type": "command",
    "command": "sed 's/.*\"version\":\"\\([^\"]*\\)\".*/my own line, \\1/' # and a remark"}}"#;

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
    daemon.crash();
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
