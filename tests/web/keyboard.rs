//! The keyboard of a slot, taken by clients that show pictures: one has it, everybody sees who, and keys of others are refused.

use super::answers::{Events, daemon};
use super::client::{Answer, Web};
use crate::support::daemon::Daemon;
use crate::support::until;
use serde_json::{Value, json};

/// A client with an id of its own.
struct Client<'a> {
    web: &'a Web,
    token: &'a str,
    id: &'static str,
}

impl Client<'_> {
    fn keyboard(&self, action: &str) -> Answer {
        let params = json!({ "slot": "echo", "id": self.id, "action": action });
        self.web
            .post("keyboard", Some(self.token), &params.to_string())
    }

    fn types(&self, text: &str) -> Answer {
        let params = json!({ "slot": "echo", "bytes": text.as_bytes(), "keyboard": self.id });
        self.web
            .post("write", Some(self.token), &params.to_string())
    }
}

fn holder(daemon: &Daemon) -> Value {
    daemon.status("echo")["keyboard"]["via"].clone()
}

fn screen(daemon: &Daemon) -> String {
    daemon.cmd(&["screen", "echo"]).expect(0).stdout
}

#[test]
fn one_client_has_it_and_everybody_sees_who() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let client = |id| Client {
        web: &web,
        token: &token,
        id,
    };
    let (desk, phone) = (client("desk"), client("phone"));
    let untaken = desk.types("early");
    assert_eq!(untaken.status, 409, "{untaken:?}");
    let why = "nobody has the keyboard of echo: it was given back, or lost; nothing was written";
    assert_eq!(untaken.message(), why);

    let mut events = Events::open(&web, &token, "/api/events");
    events.next("live");
    let taken = desk.keyboard("take");
    assert_eq!(taken.status, 200, "{taken:?}");
    assert_eq!(taken.json()["keyboard"]["via"], "web");
    assert_eq!(holder(&daemon), "web");
    let table = daemon.cmd(&["status", "echo"]).expect(0).stdout;
    assert!(table.contains("web has the keyboard"), "{table}");
    assert_eq!(desk.types("one ").status, 200);
    assert_eq!(phone.types("two").status, 409);

    assert_eq!(phone.keyboard("take").status, 200);
    let late = desk.types("three");
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.message().contains("has had the keyboard"), "{late:?}");
    assert_eq!(desk.keyboard("keep").status, 409);
    // What is given back by one who has it no more stays with the other.
    assert_eq!(desk.keyboard("release").status, 200);
    assert_eq!(phone.keyboard("keep").status, 200);
    assert_eq!(phone.types("four").status, 200);
    assert_eq!(phone.keyboard("release").status, 200);
    assert_eq!(holder(&daemon), Value::Null);

    let told: Vec<Value> = std::iter::repeat_with(|| events.next("event")["event"].clone())
        .filter(|event| {
            event
                .as_str()
                .is_some_and(|name| name.starts_with("keyboard"))
        })
        .take(4)
        .collect();
    let [taken, lost] = ["keyboard_taken", "keyboard_lost"];
    assert_eq!(told, [taken, lost, taken, lost]);
    until("the echo", || {
        screen(&daemon).contains("one four").then_some(())
    });
    let shown = screen(&daemon);
    for other in ["early", "two", "three"] {
        assert!(!shown.contains(other), "{shown}");
    }
    let log = daemon.log("echo");
    assert!(log.contains("web has taken it"), "{log}");
    assert!(
        log.contains("web has it no more: it was given back"),
        "{log}"
    );
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains("begins to type"), "{audit}");
}

#[test]
fn a_client_that_says_nothing_loses_it() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let tab = Client {
        web: &web,
        token: &token,
        id: "closed",
    };
    assert_eq!(tab.keyboard("take").status, 200);
    until("the keyboard to be free", || {
        holder(&daemon).is_null().then_some(())
    });
    let log = daemon.log("echo");
    assert!(log.contains("has not said anything for 30 s"), "{log}");
    assert_eq!(tab.types("late").status, 409);
}

#[test]
fn it_needs_the_scope_keys_and_an_end_of_the_program_takes_it() {
    let daemon = daemon();
    let keys = Web::start(&daemon, "keys");
    let token = keys.token();
    for scope in ["view", "answer", "steer"] {
        let web = Web::start(&daemon, scope);
        let token = web.token();
        let small = Client {
            web: &web,
            token: &token,
            id: "small",
        };
        for answer in [
            small.keyboard("take"),
            small.keyboard("release"),
            small.types("x"),
        ] {
            assert_eq!(answer.status, 403, "{scope}: {answer:?}");
        }
    }
    let client = Client {
        web: &keys,
        token: &token,
        id: "one",
    };
    let long = json!({ "slot": "echo", "id": "x".repeat(65), "action": "take" });
    assert_eq!(
        keys.post("keyboard", Some(&token), &long.to_string())
            .status,
        400
    );
    assert_eq!(client.keyboard("take").status, 200);
    daemon.cmd(&["stop", "echo"]).expect(0);
    assert_eq!(holder(&daemon), Value::Null);
    assert_eq!(client.keyboard("take").status, 409);
}
