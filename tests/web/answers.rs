//! What the API answers: the same as the control socket, described by its own document.

use super::client::Web;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};

pub fn daemon() -> Daemon {
    let setup = Setup::new().slot_with("echo", "kind = \"shell\"");
    let daemon = Daemon::start_with(&setup, &["/bin/cat".to_owned()]);
    daemon.wait_state("echo", "idle");
    daemon
}

#[test]
fn a_code_gives_a_token_and_the_token_the_answers_of_the_socket() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let status = web.post("status", Some(&token), r#"{"slots":["echo"]}"#);
    assert_eq!(status.status, 200, "{status:?}");
    let (ours, theirs) = (status.json(), daemon.json(&["status", "echo"]));
    for key in ["slot", "role", "kind", "state", "pid"] {
        assert_eq!(ours[0][key], theirs[0][key], "{key}");
    }
    // Without a body there are no parameters.
    let all = web.post("status", Some(&token), "");
    assert_eq!(all.json().as_array().map(Vec::len), Some(1), "{all:?}");
    // What is typed arrives.
    let keys = json!({ "slot": "echo", "bytes": "hello by HTTP".as_bytes() });
    let typed = web.post("write", Some(&token), &keys.to_string());
    assert_eq!(typed.status, 200, "{typed:?}");
    until("the echo", || {
        let screen = daemon.cmd(&["screen", "echo"]).expect(0).stdout;
        screen.contains("hello by HTTP").then_some(())
    });
}

#[test]
fn errors_have_the_words_of_the_socket_and_a_status() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let cases = [
        (
            "status",
            r#"{"slots":["ecko"]}"#,
            400,
            "no slot or session `ecko`",
        ),
        ("status", r#"{"slot":"echo"}"#, 400, "unknown field `slot`"),
        ("status", "[1]", 400, "must be a JSON object"),
        ("status", "{", 400, "not JSON"),
        ("stätus", "{}", 404, ""),
        ("nothing", "{}", 404, "no such method: nothing"),
        ("hook", "{}", 404, "no such method: hook"),
        ("attach", "{}", 404, "no such method: attach"),
        (
            "confirm",
            r#"{"slot":"echo","answer":"yes"}"#,
            400,
            "needs the id of the dialog",
        ),
        (
            "send",
            r#"{"slot":"echo","text":"hi"}"#,
            409,
            "not Claude Code",
        ),
    ];
    for (name, body, status, message) in cases {
        let answer = web.post(name, Some(&token), body);
        assert_eq!(answer.status, status, "{name} {body}: {answer:?}");
        let said = answer.body.contains(message);
        assert!(said, "{name} {body}: {answer:?}");
    }
    let long = json!({ "slot": "echo", "text": "x".repeat(100_000) }).to_string();
    assert_eq!(web.post("type", Some(&token), &long).status, 413);
}

#[test]
fn a_monitor_gets_the_same_as_the_command() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let page = web.get("/metrics", Some(&web.token()));
    assert_eq!(page.status, 200, "{page:?}");
    let is_text = page
        .head
        .contains("content-type: text/plain; version=0.0.4");
    assert!(is_text, "{page:?}");
    // Seconds differ between two looks.
    let without_seconds = |page: &str| {
        let lines = page.lines().filter(|line| !line.contains("_seconds"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let printed = daemon.cmd(&["metrics"]).expect(0).stdout;
    assert_eq!(without_seconds(&page.body), without_seconds(&printed));
    let idle = r#"missiond_slot_state{slot="echo",role="echo",state="idle"} 1"#;
    assert!(printed.contains(idle), "{printed}");
    let seconds = r#"missiond_state_seconds_total{slot="echo",activity="idle"} "#;
    let since = |page: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(seconds));
        line.and_then(|value| value.parse::<f64>().ok())
    };
    assert!(since(&printed) > since(&page.body), "{printed}");
}

#[test]
fn each_answer_is_as_the_document_says() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let document = web.get("/api/openapi.json", Some(&token));
    assert_eq!(document.status, 200, "{document:?}");
    let document = document.json();
    assert_eq!(document["openapi"], "3.1.0");
    let offline = daemon.cmd(&["web", "--openapi"]).expect(0).json();
    assert_eq!(document, offline);
    let paths = document["paths"].as_object().expect("paths");
    let mut seen = 0;
    for (path, operations) in paths {
        let Some(operation) = operations
            .get("post")
            .filter(|post| post["x-scope"] == "view")
        else {
            continue;
        };
        let name = path.strip_prefix("/api/").expect("a path of the API");
        let answer = web.post(name, Some(&token), "{}");
        let status = answer.status.to_string();
        let schema = &operation["responses"][&status]["content"]["application/json"]["schema"];
        assert!(!schema.is_null(), "{name}: {answer:?}");
        let validator = jsonschema_of(schema, &document);
        assert!(validator.is_valid(&answer.json()), "{name}: {answer:?}");
        seen += 1;
    }
    assert!(seen > 12, "{seen}");
}

#[test]
fn the_audit_and_the_log_are_read_from_their_ends() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    for text in ["one", "two"] {
        let keys = json!({ "slot": "echo", "bytes": text.as_bytes() });
        assert_eq!(
            web.post("write", Some(&token), &keys.to_string()).status,
            200
        );
    }
    let audit = |params: Value| {
        let answer = web.post("audit", Some(&token), &params.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let newest = audit(json!({ "limit": 1, "by": "person" }));
    assert_eq!(
        (&newest["entries"][0]["via"], &newest["more"]),
        (&json!("web"), &json!(true))
    );
    let seq = newest["entries"][0]["seq"].as_u64().expect("a number");
    let older = audit(json!({ "before": seq, "of": ["echo"] }));
    assert!(older["entries"][0]["seq"].as_u64() < Some(seq), "{older}");
    assert_eq!(older["more"], false, "{older}");
    assert_eq!(audit(json!({ "of": ["other"] }))["entries"], json!([]));
    let log = |lines: usize| {
        let params = json!({ "slot": "echo", "lines": lines }).to_string();
        web.post("log", Some(&token), &params).json()["lines"].clone()
    };
    let all: Vec<Value> = log(2000).as_array().cloned().expect("lines");
    assert!(
        all[0]
            .as_str()
            .expect("text")
            .contains("exited -> starting"),
        "{all:?}"
    );
    assert_eq!(log(1).as_array(), Some(&vec![all[all.len() - 1].clone()]));
}

/// Looking back is read from the logs, by the server alone.
#[test]
fn the_past_of_a_slot_can_be_looked_at() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let post = |name: &str, params: Value| web.post(name, Some(&token), &params.to_string());
    let keys = json!({ "slot": "echo", "bytes": b"hello" });
    assert_eq!(post("write", keys).status, 200);
    let past = |at: chrono::DateTime<chrono::Utc>| {
        let answer = post("past", json!({ "slot": "echo", "at": at }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let now = || chrono::Utc::now() + chrono::TimeDelta::seconds(5);
    let shown = until("the screen", || {
        let past = past(now());
        past["screen"]["lines"][0]
            .as_str()?
            .contains("hello")
            .then_some(past)
    });
    let events = shown["events"].as_array().expect("events").iter();
    assert!(
        events.clone().any(|event| event["event"] == "spawned"),
        "{shown}"
    );
    let early = past(now() - chrono::TimeDelta::hours(3));
    assert_eq!(
        (&early["screen"], &early["events"]),
        (&Value::Null, &json!([]))
    );

    let report = post("timeline", json!({ "since_s": 3600 })).json();
    assert_eq!(report["slots"][0]["slot"], "echo", "{report}");
    let ours = daemon.json(&["timeline", "--since", "1h"]);
    let activities = |report: &Value| {
        let spans = report["slots"][0]["spans"]
            .as_array()
            .expect("spans")
            .iter();
        spans
            .map(|span| span["activity"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(activities(&report), activities(&ours));
    for (name, params) in [
        ("past", json!({ "slot": "../../etc/passwd", "at": now() })),
        ("past", json!({ "slot": "echo/../echo", "at": now() })),
        ("past", json!({ "slot": "echo" })),
        ("timeline", json!({ "since_s": 0 })),
        ("timeline", json!({ "since_s": 10_000_000 })),
        ("timeline", json!({ "slots": ["a/b"] })),
    ] {
        let answer = post(name, params);
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
    }
}

/// A schema of the document, with the document's own definitions.
fn jsonschema_of(schema: &Value, document: &Value) -> jsonschema::Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    jsonschema::draft202012::new(&whole).expect("a schema")
}

#[test]
fn events_are_streamed_and_go_on_behind_a_position() {
    let daemon = daemon();
    let web = Web::start(&daemon, "steer");
    let token = web.token();
    let mut first = Events::open(&web, &token, "/api/events");
    assert_eq!(first.next("event")["event"], "snapshot");
    let live = first.next("live");
    let position = live["position"].as_u64().expect("a position");
    let stopped = web.post("stop", Some(&token), r#"{"slots":["echo"]}"#);
    assert_eq!(stopped.status, 200, "{stopped:?}");
    let seen = first.until_exit();
    drop(first);
    // From the same place again, the same is told.
    let path = format!("/api/events?after={position}");
    let again = Events::open(&web, &token, &path).until_exit();
    assert_eq!(again, seen);
    let refused = web.get("/api/events?after=x", Some(&token));
    assert_eq!(refused.status, 400, "{refused:?}");
}

/// Server-sent events, one after another.
pub struct Events(BufReader<std::net::TcpStream>);

impl Events {
    pub fn open(web: &Web, token: &str, path: &str) -> Events {
        let mut stream = web.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
            web.host()
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        Events(BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).expect("a line");
        assert!(count > 0, "the stream has ended");
        line.trim_end().to_owned()
    }

    /// The data of the next event of this kind.
    pub fn next(&mut self, kind: &str) -> Value {
        let wanted = format!("event: {kind}");
        while self.line() != wanted {}
        loop {
            if let Some(data) = self.line().strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }

    /// All that comes until the server ends the stream.
    pub fn rest(mut self) -> String {
        let mut rest = String::new();
        let read = self.0.read_to_string(&mut rest);
        read.map(|_| rest).expect("the stream ends")
    }

    /// The positions of all events up to the exit of the program.
    fn until_exit(&mut self) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let event = self.next("event");
            seen.extend(event["seq"].as_u64());
            if event["event"] == "exit" {
                return seen;
            }
        }
    }
}
