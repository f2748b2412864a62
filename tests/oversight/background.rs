//! An agent of Claude Code that goes on in the background when the turn is over, and then asks.

use super::inside::audit;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::json;

const POLICY: &str = "ask = [\"Bash(mkfifo *)\"]\nallow = [\"Agent\"]\n";

/// Claude Code writes the agent's name behind the title of the dialog; and no hook tells that a call was declined.
#[test]
fn a_file_of_an_agent_is_asked_about_by_its_path_and_declined_for_good() {
    let policy = "ask = [\"Write\"]\nallow = [\"Agent\"]\n";
    let setup = Setup::new().slot("coder").policy("coder", policy);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    for (message, file) in [("have one made", "one.txt"), ("have two made", "two.txt")] {
        let words = format!("make {file}");
        let agent = Step::tool(
            "Agent",
            json!({"description": "make it", "prompt": words, "subagent_type": "general-purpose"}),
        );
        let path = daemon.cwd("coder").join(file);
        let write = Step::tool("Write", json!({"file_path": path, "content": "text"}));
        daemon.endpoint.on(&words, vec![write, Step::text("Made.")]);
        daemon
            .endpoint
            .on(message, vec![agent, Step::gate(file), Step::text("Done.")]);
        daemon.cmd(&["send", "coder", message]).expect(5);
        let waiting = until("the agent to ask", || {
            let waiting = daemon.json(&["pending"]).get_mut(0)?.take();
            waiting["why"].is_string().then_some(waiting)
        });
        assert_eq!(waiting["doubtful"], json!(null), "{waiting}");
        let dialog = &waiting["dialog"];
        assert_eq!(dialog["input"]["file_path"], json!(path), "{dialog}");
        let why = waiting["why"].as_str().unwrap_or_default();
        assert!(!why.contains("calls wait at once"), "{why}");
        daemon.cmd(&["confirm", "coder", "no"]).expect(0);
        // The turn ends only now: an answer before the agent asks would end the `send`.
        daemon.endpoint.open(file);
        daemon.wait_state("coder", "idle");
        assert!(!path.exists());
    }
}

#[test]
fn an_agent_that_asks_after_the_turn_is_known_to_the_gate() {
    let setup = Setup::new().slot("coder").policy("coder", POLICY);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let agent = Step::tool(
        "Agent",
        json!({"description": "make a pipe", "prompt": "the agent's own words",
            "subagent_type": "general-purpose", "run_in_background": true}),
    );
    let pipe = Step::tool("Bash", json!({"command": "mkfifo pipe"}));
    let steps = vec![Step::gate("turn is over"), pipe, Step::text("Made.")];
    daemon.endpoint.on("the agent's own words", steps);
    let steps = vec![agent, Step::text("It is at work.")];
    daemon.endpoint.on("have it made", steps);
    let answer = daemon.cmd(&["send", "coder", "have it made"]).expect(0);
    assert_eq!(answer.text(), "It is at work.");
    until("an agent behind an idle slot", || {
        let status = daemon.status("coder");
        (status["state"] == "idle" && status["background"] == 1).then_some(())
    });

    daemon.endpoint.open("turn is over");
    let waiting = until("the agent to ask", || {
        let waiting = daemon.json(&["pending"]).get_mut(0)?.take();
        waiting["why"].is_string().then_some(waiting)
    });
    assert_eq!(waiting["doubtful"], json!(null), "{waiting}");
    let dialog = &waiting["dialog"];
    assert!(dialog["request"].is_string(), "{dialog}");
    assert_eq!(dialog["input"]["command"], "mkfifo pipe", "{dialog}");
    let why = daemon.cmd(&["why", "coder"]).expect(0);
    assert!(
        why.stdout.contains("the call was left to a person"),
        "{why}"
    );

    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    until("the pipe", || {
        daemon.cwd("coder").join("pipe").exists().then_some(())
    });
    let judged = audit(&daemon)
        .into_iter()
        .find(|entry| entry["tool"] == "Bash" && entry["agent"].is_string());
    assert!(judged.is_some(), "the agent is named in the audit");
    let log = daemon.log("coder");
    assert!(
        !log.contains("DOUBTFUL") && !log.contains("tampered"),
        "{log}"
    );
}
