//! Listeners that end their subscription and go on with the connection.

use super::stage::*;
use crate::support::PATIENCE;
use crate::support::daemon::Daemon;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

struct Connection {
    lines: BufReader<UnixStream>,
}

impl Connection {
    fn new(daemon: &Daemon) -> Connection {
        let socket = daemon.root().join("run/missiond/missiond.sock");
        let stream = UnixStream::connect(socket).expect("the daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        Connection {
            lines: BufReader::new(stream),
        }
    }

    fn ask(&mut self, id: &Value, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.lines.get_mut(), "{request}").expect("it is taken");
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line in time");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The answer to a request, and the notifications that came before it.
    fn answer(&mut self, id: &Value) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let line = self.line();
            if line.get("id") == Some(id) {
                return (line, before);
            }
            before.push(line);
        }
    }

    fn call(&mut self, id: &Value, method: &str, params: &Value) -> Value {
        self.ask(id, method, params);
        self.answer(id).0
    }

    /// Until the snapshot is over.
    fn live(&mut self) {
        while self.line()["method"] != "live" {}
    }
}

/// A program that writes without end.
fn chatter(daemon: &Daemon, id: &str) {
    let line = "while :; do echo chatter; sleep 0.01; done";
    spawn(daemon, &["--id", id, "--", "sh", "-c", line]);
}

#[test]
fn a_subscription_ends_and_the_connection_goes_on() {
    let daemon = daemon();
    chatter(&daemon, "one");
    chatter(&daemon, "two");
    let mut connection = Connection::new(&daemon);
    let (one, two) = (json!(1), json!("the second"));
    for (id, session) in [(&one, "one"), (&two, "two")] {
        let params = json!({"slots": [session], "data": true});
        let answer = connection.call(id, "events", &params);
        assert_eq!(answer["result"], json!({}), "{answer}");
        connection.live();
    }
    // An id is one subscription.
    let again = connection.call(&one, "events", &json!({}));
    assert_eq!(again["error"]["data"]["fault"], "usage", "{again}");
    let answer = connection.call(&json!(3), "unsubscribe", &json!({"id": 1}));
    assert_eq!(answer["result"], json!({}), "{answer}");
    // The other one goes on, and of this one nothing comes any more, whatever its program writes.
    for _ in 0..50 {
        let line = connection.line();
        assert_eq!(line["params"]["slot"], "two", "{line}");
    }
    let ended = connection.call(&json!(4), "unsubscribe", &json!({"id": 1}));
    let error = &ended["error"]["data"];
    assert_eq!(error["fault"], "usage", "{ended}");
    let next = error["next"].as_str().expect("a next step");
    assert!(next.contains("\"the second\""), "{ended}");
    let answer = connection.call(&json!(5), "unsubscribe", &json!({"id": "the second"}));
    assert_eq!(answer["result"], json!({}), "{answer}");
    // The connection is as good as new: requests are answered, with nothing between, and an id can be used again.
    for id in 6..26 {
        connection.ask(&json!(id), "ping", &json!({}));
        let (pong, before) = connection.answer(&json!(id));
        assert!(pong["result"]["pid"].is_u64(), "{pong}");
        assert!(before.is_empty(), "{before:?}");
    }
    let answer = connection.call(&one, "events", &json!({"slots": ["one"], "data": true}));
    assert_eq!(answer["result"], json!({}), "{answer}");
    connection.live();
    assert_eq!(connection.line()["params"]["slot"], "one");
}
