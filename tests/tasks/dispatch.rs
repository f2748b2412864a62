//! From a role to a slot, and back with the answer.

use super::words::{asked, gated, once, submit, task, times_asked, two_coders};
use crate::support::daemon::Daemon;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::json;

#[test]
fn a_role_shares_its_tasks() {
    let Some(daemon) = two_coders() else { return };
    three_for_two(&daemon);
    ask_prints_the_answer(&daemon);
    a_person_is_asked_in_between(&daemon);
    cancelled(&daemon);
    named_and_in_time(&daemon);
}

/// A task with a name of the caller's own and a time of its own.
fn named_and_in_time(daemon: &Daemon) {
    let hangs = "work all night";
    gated(daemon, hangs);
    let words = [
        "submit",
        "b",
        "--id",
        "nightly-17",
        "--timeout",
        "3s",
        hangs,
    ];
    assert_eq!(daemon.cmd(&words).expect(0).text(), "nightly-17");
    assert_eq!(daemon.cmd(&words).expect(0).text(), "nightly-17");
    let failed = once(daemon, "nightly-17", "failed");
    let why = failed["error"].as_str().expect("a reason");
    assert!(why.contains("not done within 3s"), "{failed}");
    assert_eq!(times_asked(daemon, hangs), 1);
    daemon.wait_state("b", "idle");
    let taken = ["submit", "b", "--id", "nightly-17", "something else"];
    daemon.cmd(&taken).expect(4);
    daemon
        .cmd(&["submit", "b", "--id", "Not a name", "x"])
        .expect(2);
    daemon
        .cmd(&["submit", "b", "--timeout", "0s", "x"])
        .expect(2);
    assert_eq!(
        daemon.cmd(&["ask", "b", "are you there?"]).expect(0).text(),
        "You said: are you there?"
    );
}

fn three_for_two(daemon: &Daemon) {
    let prompts = ["first", "second", "third"];
    for prompt in prompts {
        gated(daemon, prompt);
    }
    let ids = prompts.map(|prompt| submit(daemon, &["--role", "coder", prompt]));
    asked(daemon, "first");
    asked(daemon, "second");
    let first = once(daemon, &ids[0], "running");
    assert_eq!(first["slot"], "a", "{first}");
    assert_eq!(daemon.status("a")["task_id"], ids[0].as_str());
    assert_eq!(daemon.status("b")["task_id"], ids[1].as_str());
    assert_eq!(task(daemon, &ids[2])["state"], "queued");
    let table = daemon.cmd(&["tasks"]).expect(0);
    assert_eq!(table.text().lines().count(), 4, "{table}");

    daemon.endpoint.open("second");
    asked(daemon, "third");
    let second = once(daemon, &ids[1], "done");
    assert_eq!(second["answer"], "second done", "{second}");
    assert_eq!(second["session_id"], daemon.status("b")["session_id"]);
    assert!(second["duration_ms"].as_u64().is_some_and(|ms| ms > 0));
    assert_eq!(task(daemon, &ids[2])["slot"], "b");
    daemon.endpoint.open("first");
    daemon.endpoint.open("third");
    for (id, prompt) in ids.iter().zip(prompts) {
        let done = daemon
            .cmd(&["task", id, "--wait", "--timeout", "50s"])
            .expect(0);
        assert!(done.stdout.contains(&format!("{prompt} done")), "{done}");
        assert_eq!(times_asked(daemon, prompt), 1);
    }
    assert!(daemon.status("a")["task_id"].is_null());
}

fn ask_prints_the_answer(daemon: &Daemon) {
    let asked = daemon
        .cmd(&["ask", "@coder", "how", "are", "you?"])
        .expect(0);
    assert_eq!(asked.text(), "You said: how are you?");
    let late = daemon.cmd(&["ask", "b", "--timeout", "100ms", "JSON:[{\"hang\":1}]"]);
    assert_eq!(late.code, 124, "{late}");
    let all = daemon.json(&["tasks"]);
    let id = all[0]["id"].as_str().expect("it goes on").to_owned();
    once(daemon, &id, "done");
}

/// The task is not lost when a person has to answer something: it ends with the turn.
fn a_person_is_asked_in_between(daemon: &Daemon) {
    let pipe = daemon.cwd("a").join("pipe");
    let call = json!({"command": format!("mkfifo {}", pipe.display()), "description": "x"});
    let steps = vec![Step::tool("Bash", call), Step::text("It is made.")];
    daemon.endpoint.on("make it", steps);
    let asked = daemon.cmd(&["ask", "a", "make it"]).expect(5);
    assert!(asked.stderr.contains("mkfifo"), "{asked}");
    let tasks = daemon.json(&["tasks"]);
    assert_eq!(tasks[0]["state"], "needs_person", "{tasks}");
    let id = tasks[0]["id"].as_str().expect("an id").to_owned();
    daemon.cmd(&["confirm", "a", "yes"]).expect(0);
    until("the task to go on", || {
        (task(daemon, &id)["state"] != "needs_person").then_some(())
    });
    let done = daemon
        .cmd(&["task", &id, "--wait", "--json"])
        .expect(0)
        .json();
    assert_eq!(done["answer"], "It is made.", "{done}");
    assert!(pipe.exists());
}

fn cancelled(daemon: &Daemon) {
    gated(daemon, "endless");
    let running = submit(daemon, &["a", "endless"]);
    let waiting = submit(daemon, &["a", "never"]);
    asked(daemon, "endless");
    daemon.cmd(&["cancel", &waiting, &running]).expect(0);
    assert_eq!(task(daemon, &running)["state"], "cancelled");
    assert_eq!(task(daemon, &waiting)["state"], "cancelled");
    daemon.wait_state("a", "idle");
    assert_eq!(times_asked(daemon, "never"), 0);
    daemon.cmd(&["cancel", &running]).expect(4);
    let again = daemon.cmd(&["ask", "a", "still there?"]).expect(0);
    assert_eq!(again.text(), "You said: still there?");
}
