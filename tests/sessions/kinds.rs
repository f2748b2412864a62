//! Which verbs are for slots and which for sessions, asked of the real daemon.

use super::stage::*;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::control::kinds::Accepts;
use missiond::control::requests::requests;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

/// A verb, what it may be used on, and a word of the command that it names at the other kind.
struct Verb {
    words: &'static [&'static str],
    slots: bool,
    sessions: bool,
    instead: &'static str,
}

const fn verb(
    words: &'static [&'static str],
    (slots, sessions): (bool, bool),
    instead: &'static str,
) -> Verb {
    Verb {
        words,
        slots,
        sessions,
        instead,
    }
}

const BOTH: (bool, bool) = (true, true);
const SESSIONS: (bool, bool) = (false, true);
const SLOTS: (bool, bool) = (true, false);

/// `@` stands for the name. Those that end something come last.
const VERBS: &[Verb] = &[
    verb(&["status", "@"], BOTH, ""),
    verb(&["screen", "@"], BOTH, ""),
    verb(&["search", "@", "x"], BOTH, ""),
    verb(&["wait", "@", "--quiet", "1ms"], BOTH, ""),
    verb(&["pending", "@"], BOTH, ""),
    verb(&["write", "@", "x"], BOTH, ""),
    verb(&["keys", "@", "y"], BOTH, ""),
    verb(&["logs", "@"], BOTH, ""),
    verb(&["info", "@"], SESSIONS, "missiond status"),
    verb(&["type", "@", "1"], SESSIONS, "missiond write"),
    verb(
        &["type", "@", "1", "--quiet", "1ms"],
        SESSIONS,
        "missiond write",
    ),
    verb(&["output", "@"], SESSIONS, "missiond screen"),
    verb(&["clear", "@"], SESSIONS, "missiond screen"),
    verb(&["resize", "@", "90", "30"], SESSIONS, "missiond restart"),
    verb(&["signal", "@", "WINCH"], SESSIONS, "missiond stop"),
    verb(&["send", "@", "x"], (false, false), "missiond"),
    verb(&["confirm", "@", "yes"], (false, false), "missiond"),
    verb(&["submit", "@", "x"], (false, false), "missiond"),
    verb(&["interrupt", "@"], SLOTS, "missiond keys"),
    verb(&["history", "@"], SLOTS, "missiond session output"),
    verb(&["why", "@"], SLOTS, "missiond session info"),
    verb(&["start", "@"], SLOTS, "missiond session spawn"),
    verb(&["restart", "@"], SLOTS, "missiond session close"),
    verb(&["stop", "@"], SLOTS, "missiond session close"),
    verb(&["close", "@"], SESSIONS, "missiond stop"),
];

fn stage() -> Daemon {
    let setup = Setup::new().slot_with("shell", "kind = \"shell\"");
    let daemon = Daemon::start_with(&setup, &["/bin/cat".to_owned()]);
    daemon.wait_state("shell", "idle");
    spawn(&daemon, &["--id", "build", "--", "cat"]);
    daemon
}

#[test]
fn every_verb_says_what_it_is_for() {
    let daemon = stage();
    for verb in VERBS {
        for (name, taken) in [("shell", verb.slots), ("build", verb.sessions)] {
            let words: Vec<&str> = verb
                .words
                .iter()
                .map(|word| if *word == "@" { name } else { word })
                .collect();
            let output = daemon.cmd(&words);
            if taken {
                assert_eq!(output.code, 0, "{words:?}: {output}");
                continue;
            }
            assert_eq!(output.code, 4, "{words:?}: {output}");
            let says = output.stderr.contains(verb.instead);
            assert!(says, "{words:?} names no command: {output}");
        }
    }
}

/// The same over the socket, for every method there is: a client of its own has no other way around.
#[test]
fn every_method_of_the_socket_refuses_the_other_kind() {
    let daemon = stage();
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut refused = 0;
    for request in requests() {
        let method = request.name;
        let other = match request.names {
            Accepts::Either => continue,
            Accepts::Sessions { .. } => "shell",
            Accepts::Slots(_) => "build",
        };
        for params in [
            json!({"slot": other}),
            json!({"slots": [other]}),
            json!({"session_id": other}),
        ] {
            let answer = raw(&socket, method, &params);
            let error = &answer["error"]["data"];
            assert_eq!(error["fault"], "refused", "{method} {params}: {answer}");
            assert!(error["next"].is_string(), "{method} {params}: {answer}");
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
    // Nothing was done by any of them.
    assert_eq!(daemon.status("shell")["state"], "idle");
    assert_eq!(info(&daemon, "build")["is_alive"], true);
    assert_eq!(output(&daemon, "build"), "");
}

/// The table, the schema and the dispatch have the same methods: each is known, and refuses what is not its params.
#[test]
fn every_method_of_the_table_is_answered() {
    let daemon = stage();
    let socket = daemon.root().join("run/missiond/missiond.sock");
    for method in requests().map(|request| request.name) {
        let answer = raw(&socket, method, &json!("no params"));
        // A hook speaks from inside its slot, and is refused before it is read.
        let code = if method == "hook" { -32000 } else { -32602 };
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    let answer = raw(&socket, "fly", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

/// Roles are those of the slots; a session has none.
#[test]
fn roles_show_how_their_slots_stand() {
    let daemon = stage();
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let role = &daemon.status("shell")["role"];
    let expected = json!([{
        "role": role,
        "slots": ["shell"],
        "idle": 1,
        "confirming": 0,
        "policy_waits": false,
    }]);
    assert_eq!(raw(&socket, "roles", &json!({}))["result"], expected);
    assert_eq!(daemon.cmd(&["stop", "shell"]).code, 0);
    let roles = raw(&socket, "roles", &json!({}));
    assert_eq!(roles["result"][0]["idle"], 0, "{roles}");
}

fn raw(socket: &std::path::Path, method: &str, params: &Value) -> Value {
    let mut stream = UnixStream::connect(socket).expect("the daemon listens");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    writeln!(stream, "{request}").expect("it is taken");
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}
