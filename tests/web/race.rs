//! Several people answer the same request at once, each by another way.

use super::client::Web;
use super::mcp_client::Client;
use super::person::Person;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::Duration;

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

fn by_model(client: &mut Client, dialog: &str, answer: &str) -> Result<(), String> {
    let params = json!({"slot": "coder", "answer": answer, "dialog": dialog});
    match client.call("confirm", params) {
        (_, false) => Ok(()),
        (why, true) => Err(why),
    }
}

/// What the dashboard shows of the answer that was typed there, or of the one that was given elsewhere.
fn by_dashboard(person: &Person) -> Result<(), String> {
    let told = || {
        let rows = person.screen();
        let is_told =
            |row: &&String| row.contains("coder yes: ") || row.contains("was answered by");
        rows.iter().find(is_told).cloned()
    };
    let line = until("the dashboard to tell", || {
        told().filter(|line| !line.contains("coder yes: sent"))
    });
    match line.contains("coder yes: decided") {
        true => Ok(()),
        false => Err(line),
    }
}

/// A person needs longer than this to read an ask, and so the dashboard takes no answer before.
const READING: Duration = Duration::from_secs(2);

/// By the command, the control socket, HTTP, a model's server and the dashboard; twice by the first three.
fn race(daemon: &Daemon, person: &Person, dialog: &str) -> Vec<Result<(), String>> {
    let web = Web::start(daemon, "answer");
    let token = web.token();
    let mut model = Client::start(daemon.root(), &["--allow-confirm"]);
    person.sees("coder asks");
    std::thread::sleep(READING);
    let together = Barrier::new(8);
    let at_once = |answer: &mut dyn FnMut() -> Result<(), String>| {
        together.wait();
        answer()
    };
    std::thread::scope(|scope| {
        let (web, token, at_once) = (&web, &token, &at_once);
        let mut racers: Vec<_> = ["yes", "no"]
            .into_iter()
            .flat_map(|answer| {
                [
                    scope.spawn(move || at_once(&mut || by_command(daemon, dialog, answer))),
                    scope.spawn(move || at_once(&mut || by_http(web, token, dialog, answer))),
                    scope.spawn(move || at_once(&mut || by_socket(daemon, dialog, answer))),
                ]
            })
            .collect();
        let model = &mut model;
        racers.push(scope.spawn(move || at_once(&mut || by_model(model, dialog, "no"))));
        let by_dashboard = at_once(&mut || {
            person.types("y");
            by_dashboard(person)
        });
        let ended = racers.into_iter().map(|racer| racer.join());
        let ended = ended.map(|outcome| outcome.expect("an answer"));
        ended.chain([by_dashboard]).collect()
    })
}

#[test]
fn the_first_answer_wins_and_the_others_are_told_whose_it_was() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    for round in 0..3 {
        let made = format!("made-{round}");
        let call = Step::tool("Bash", json!({"command": format!("echo ran >> {made}")}));
        let words = format!("make {made}");
        daemon.endpoint.on(&words, vec![call, Step::text("Done.")]);
        daemon.cmd(&["send", "coder", &words]).expect(5);
        let dialog = daemon.wait_dialog("coder");
        let dialog = dialog["id"].as_str().expect("an id");
        let before = by_persons(&daemon).len();
        let person = Person::run(&daemon, &["top"], (120, 30));
        let outcomes = race(&daemon, &person, dialog);
        let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(won, 1, "{outcomes:?}");
        for told in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            let by = told.contains("coder was answered before, at ")
                || told.contains("coder was answered by ");
            assert!(by && told.contains(": a person chose "), "{told}");
        }
        daemon.wait_state("coder", "idle");
        let entries = by_persons(&daemon).split_off(before);
        is_one_answer(&entries);
        let made = daemon.cwd("coder").join(made);
        match entries.iter().any(|entry| entry["verdict"] == "allow") {
            true => until("the call to run once", || {
                (fs::read_to_string(&made).ok()? == "ran\n").then_some(())
            }),
            false => assert!(!made.exists()),
        }
    }
}

/// What people did, as the audit has it.
fn by_persons(daemon: &Daemon) -> Vec<Value> {
    let audit = daemon.cmd(&["audit", "grep", "--by", "person", "--json"]);
    audit.expect(0).json_lines()
}

/// One verdict, and one key for it.
#[track_caller]
fn is_one_answer(entries: &[Value]) {
    let verdicts: Vec<&Value> = entries.iter().filter(|e| e["what"] == "verdict").collect();
    assert_eq!(verdicts.len(), 1, "{entries:?}");
    let chosen = |entry: &&Value| entry["why"] == verdicts[0]["why"] && entry["what"] == "key";
    assert_eq!(entries.iter().filter(chosen).count(), 1, "{entries:?}");
    let withheld = entries.iter().filter(|entry| entry["what"] == "no_effect");
    assert_eq!(withheld.count(), 0, "{entries:?}");
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
