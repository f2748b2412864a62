//! Several people answer the same request at once, each by another way.

use super::client::Web;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;

/// Answers on the control socket. `Err` has the refusal.
fn by_socket(daemon: &Daemon, dialog: &str, answer: &str) -> Result<(), String> {
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut stream = UnixStream::connect(socket).expect("the daemon listens");
    let params = json!({"slot": "coder", "answer": answer, "dialog": dialog});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "confirm", "params": params});
    writeln!(stream, "{request}").expect("the daemon reads");
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line);
    assert!(read.expect("an answer") > 0);
    let told: Value = serde_json::from_str(&line).expect("JSON");
    match told["error"]["message"].as_str() {
        Some(why) => Err(why.to_owned()),
        None => Ok(()),
    }
}

fn by_http(web: &Web, token: &str, dialog: &str, answer: &str) -> Result<(), String> {
    let params = json!({"slot": "coder", "answer": answer, "dialog": dialog});
    let told = web.post("confirm", Some(token), &params.to_string());
    match told.status {
        200 => Ok(()),
        409 => Err(told.message()),
        _ => panic!("{told:?}"),
    }
}

fn by_command(daemon: &Daemon, dialog: &str, answer: &str) -> Result<(), String> {
    let told = daemon.cmd(&["confirm", "coder", answer, "--dialog", dialog]);
    match told.code {
        0 => Ok(()),
        _ => Err(told.expect(4).stderr),
    }
}

#[test]
fn the_first_answer_wins_and_the_others_are_told_whose_it_was() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let call = Step::tool("Bash", json!({"command": "echo ran >> made"}));
    daemon
        .endpoint
        .on("make it", vec![call, Step::text("Done.")]);
    daemon.cmd(&["send", "coder", "make it"]).expect(5);
    let dialog = daemon.wait_dialog("coder");
    let dialog = dialog["id"].as_str().expect("an id");
    let web = Web::start(&daemon, "answer");
    let token = web.token();
    let together = Barrier::new(6);
    let at_once = |answer: &dyn Fn() -> Result<(), String>| {
        together.wait();
        answer()
    };
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let (daemon, web, token, at_once) = (&daemon, &web, &token, &at_once);
        let racers: Vec<_> = ["yes", "no"]
            .into_iter()
            .flat_map(|answer| {
                [
                    scope.spawn(move || at_once(&|| by_command(daemon, dialog, answer))),
                    scope.spawn(move || at_once(&|| by_http(web, token, dialog, answer))),
                    scope.spawn(move || at_once(&|| by_socket(daemon, dialog, answer))),
                ]
            })
            .collect();
        let ended = racers.into_iter().map(|racer| racer.join());
        ended.map(|outcome| outcome.expect("an answer")).collect()
    });
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(won, 1, "{outcomes:?}");
    for told in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(told.contains("coder was answered before, at "), "{told}");
        assert!(told.contains(": a person chose "), "{told}");
    }
    daemon.wait_state("coder", "idle");
    let audit = daemon.cmd(&["audit", "grep", "--by", "person", "--json"]);
    let entries = audit.expect(0).json_lines();
    let count = |what: &str| entries.iter().filter(|entry| entry["what"] == what).count();
    let keys = "one verdict and one key, beside the message";
    let verdicts: Vec<&Value> = entries.iter().filter(|e| e["what"] == "verdict").collect();
    assert_eq!(verdicts.len(), 1, "{keys}: {entries:?}");
    let chosen = |entry: &&Value| entry["why"] == verdicts[0]["why"] && entry["what"] == "key";
    assert_eq!(
        entries.iter().filter(chosen).count(),
        1,
        "{keys}: {entries:?}"
    );
    assert!(count("no_effect") == 0, "{entries:?}");
    let made = daemon.cwd("coder").join("made");
    match verdicts[0]["verdict"] == "allow" {
        true => until("the call to run once", || {
            (fs::read_to_string(&made).ok()? == "ran\n").then_some(())
        }),
        false => assert!(!made.exists()),
    }
}

/// That a call has run, and how, is an event: an answer can be followed to its effect.
#[test]
fn the_log_tells_how_a_call_has_run() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    for (command, ends) in [
        ("touch fine", "Bash: touch fine\n"),
        (
            "touch bad; exit 3",
            "Bash: touch bad; exit 3 — failed: Exit code 3\n",
        ),
    ] {
        let call = Step::tool("Bash", json!({ "command": command }));
        daemon.endpoint.on(command, vec![call, Step::text("Done.")]);
        daemon.cmd(&["send", "coder", command]).expect(5);
        daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
        until("the call to have run", || {
            let log = daemon.log("coder");
            let mut ran = log
                .split_inclusive('\n')
                .filter(|line| line.contains(" ran "));
            ran.next_back()?.ends_with(ends).then_some(())
        });
        daemon.wait_state("coder", "idle");
    }
}
