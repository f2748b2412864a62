//! The live screen: who gets it, and that nothing goes back to the slot.

use super::answers::daemon;
use super::client::Web;
use crate::support::until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

fn ticket(web: &Web, token: &str, slot: &str) -> String {
    let answer = web.post("ticket", Some(token), &json!({ "slot": slot }).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let ticket = answer.json()["ticket"].as_str().map(str::to_owned);
    ticket.expect("a ticket")
}

/// Asks for the screen of `echo` with these lines in the head, and gives the status.
fn asks(web: &Web, query: &str, lines: &[String]) -> (u16, TcpStream) {
    upgrades(web, &format!("/api/live?slot=echo{query}"), lines)
}

fn upgrades(web: &Web, path: &str, lines: &[String]) -> (u16, TcpStream) {
    let mut stream = web.connect();
    let mut head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        web.host()
    );
    for line in lines {
        head += &format!("{line}\r\n");
    }
    write!(stream, "{head}\r\n").expect("it listens");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    let status = String::from_utf8_lossy(&status[9..]).parse();
    (status.expect("a status"), stream)
}

/// Reads until this text was there.
fn reads(stream: &mut TcpStream, wanted: &str) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        let count = stream.read(&mut buffer).expect("more");
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn a_live_screen_needs_a_ticket_of_its_slot_and_an_own_origin() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let own = format!("Origin: http://{}", web.host());
    let with = |ticket: &str| format!("Sec-WebSocket-Protocol: missiond.v1, ticket.{ticket}");
    let status = |query: &str, lines: &[String]| asks(&web, query, lines).0;
    let good = ticket(&web, &token, "echo");
    assert_eq!(status("", &[with(&good)]), 403, "no origin");
    let other = "Origin: http://127.0.0.1:3000".to_owned();
    assert_eq!(status("", &[other, with(&good)]), 403, "another page");
    assert_eq!(status("", std::slice::from_ref(&own)), 401, "no ticket");
    let query = format!("&token={token}");
    assert_eq!(
        status(&query, std::slice::from_ref(&own)),
        401,
        "a token in the address"
    );
    assert_eq!(
        status("", &[own.clone(), with(&token)]),
        401,
        "a token is no ticket"
    );
    let of_other = ticket(&web, &token, "other");
    assert_eq!(status("", &[own.clone(), with(&of_other)]), 403);
    let (upgraded, mut stream) = asks(&web, "", &[own.clone(), with(&good)]);
    assert_eq!(upgraded, 101);
    reads(&mut stream, "\"slot\":\"echo\"");
    assert_eq!(status("", &[own, with(&good)]), 401, "twice");
}

/// Pictures go out; whatever a client sends is no key, and neither is what the program asks the terminal.
#[test]
fn nothing_goes_back_to_the_slot() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let own = format!("Origin: http://{}", web.host());
    let protocol = format!(
        "Sec-WebSocket-Protocol: missiond.v1, ticket.{}",
        ticket(&web, &token, "echo")
    );
    let (upgraded, mut stream) = asks(&web, "", &[own, protocol]);
    assert_eq!(upgraded, 101);
    reads(&mut stream, "\"slot\":\"echo\"");
    // What the program writes is on the next picture. Its questions to the terminal are answered by nobody here.
    let hostile = "seen \u{1b}[c\u{1b}[6n\u{1b}]52;c;aGk=\u{7}";
    let keys = json!({ "slot": "echo", "bytes": hostile.as_bytes() });
    assert_eq!(
        web.post("write", Some(&token), &keys.to_string()).status,
        200
    );
    reads(&mut stream, "seen ");
    // A frame of text, masked with zeros, ends the connection.
    let mut frame = vec![0x81, 0x80 | 5, 0, 0, 0, 0];
    frame.extend_from_slice(b"typed");
    stream.write_all(&frame).expect("it is open");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let audit = daemon.logged("audit.jsonl");
    assert_eq!(audit.matches("\"what\":\"key\"").count(), 1, "{audit}");
    let screen = daemon.cmd(&["screen", "echo"]).expect(0).stdout;
    assert!(
        screen.contains("seen") && !screen.contains("typed"),
        "{screen}"
    );
}

/// The texts that come by WebSocket, one after another, behind the head of the answer.
struct Messages(TcpStream);

impl Messages {
    fn of(mut stream: TcpStream) -> Messages {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        Messages(stream)
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).expect("a frame");
        bytes
    }

    /// The next text; pings are left out. `None` at the end.
    fn next(&mut self) -> Option<Value> {
        loop {
            let head = self.take(2);
            let length = match head[1] {
                126 => usize::from(u16::from_be_bytes(self.take(2).try_into().expect("two"))),
                127 => panic!("a long frame"),
                short => usize::from(short),
            };
            let content = self.take(length);
            match head[0] {
                0x81 => return Some(serde_json::from_slice(&content).expect("JSON")),
                0x89 => {}
                0x88 => return None,
                other => panic!("frame {other:#x}"),
            }
        }
    }

    fn next_of(&mut self, kind: &str) -> Value {
        let mut texts = std::iter::from_fn(|| self.next());
        let found = texts.find(|text| text["event"] == kind);
        found.expect("it goes on")
    }

    /// The positions of all events up to the exit of the program.
    fn until_exit(&mut self) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let event = self.next_of("event");
            assert_eq!(event["id"], event["data"]["seq"], "{event}");
            seen.extend(event["id"].as_u64());
            if event["data"]["event"] == "exit" {
                return seen;
            }
        }
    }
}

fn ticket_for_events(web: &Web, token: &str) -> Vec<String> {
    let answer = web.post("ticket", Some(token), r#"{"events":true}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    let ticket = answer.json()["ticket"].as_str().map(str::to_owned);
    with_ticket(web, &ticket.expect("a ticket"))
}

fn with_ticket(web: &Web, ticket: &str) -> Vec<String> {
    vec![
        format!("Origin: http://{}", web.host()),
        format!("Sec-WebSocket-Protocol: missiond.v1, ticket.{ticket}"),
    ]
}

#[test]
fn events_come_by_websocket_as_they_come_as_server_sent_ones() {
    let daemon = daemon();
    let web = Web::start(&daemon, "steer");
    let token = web.token();
    let (status, stream) = upgrades(&web, "/api/events", &ticket_for_events(&web, &token));
    assert_eq!(status, 101);
    let mut first = Messages::of(stream);
    // Before the live events come the snapshot and, so that the page knows that the connection is good, a sign of life.
    let begin: Vec<Value> = std::iter::from_fn(|| first.next()).take(3).collect();
    let of = |kind: &str| begin.iter().find(|one| one["event"] == kind);
    assert_eq!(of("alive"), Some(&json!({ "event": "alive" })), "{begin:?}");
    let snapshot = of("event").map(|one| &one["data"]["event"]);
    assert_eq!(snapshot, Some(&json!("snapshot")), "{begin:?}");
    let position = of("live").and_then(|live| live["data"]["position"].as_u64());
    let position = position.expect("a position");
    let stopped = web.post("stop", Some(&token), r#"{"slots":["echo"]}"#);
    assert_eq!(stopped.status, 200, "{stopped:?}");
    let seen = first.until_exit();
    // From the same place again, the same is told, by either way.
    let path = format!("/api/events?after={position}");
    let (_, stream) = upgrades(&web, &path, &ticket_for_events(&web, &token));
    let mut again = Messages::of(stream);
    assert_eq!(again.until_exit(), seen);
    let mut by_sse = super::answers::Events::open(&web, &token, &path);
    let ids: Vec<u64> = std::iter::repeat_with(|| by_sse.next("event")["seq"].as_u64())
        .flatten()
        .take(seen.len())
        .collect();
    assert_eq!(ids, seen);
    // Whatever a listener sends ends it.
    again
        .0
        .write_all(&[0x81, 0x80 | 1, 0, 0, 0, 0, b'x'])
        .expect("it is open");
    while again.next().is_some() {}
}

#[test]
fn a_ticket_is_for_one_thing() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let status = |path: &str, lines: &[String]| upgrades(&web, path, lines).0;
    let lines = ticket_for_events(&web, &token);
    assert_eq!(status("/api/events", &lines[1..]), 403, "no origin");
    let lines = ticket_for_events(&web, &token);
    let of_events = status("/api/live?slot=echo", &lines);
    assert_eq!(of_events, 403, "no ticket for a screen");
    let of_screen = with_ticket(&web, &ticket(&web, &token, "echo"));
    assert_eq!(
        status("/api/events", &of_screen),
        403,
        "no ticket for events"
    );
    let lines = ticket_for_events(&web, &token);
    let (upgraded, _stream) = upgrades(&web, "/api/events", &lines);
    assert_eq!(upgraded, 101);
    assert_eq!(status("/api/events", &lines), 401, "twice");
    for body in [
        "{}",
        r#"{"slot":"echo","events":true}"#,
        r#"{"events":false}"#,
    ] {
        assert_eq!(web.post("ticket", Some(&token), body).status, 400, "{body}");
    }
}

#[test]
fn listeners_of_all_kinds_have_one_limit() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let mut crowd = Vec::new();
    for _ in 0..32 {
        let mut listener = super::answers::Events::open(&web, &token, "/api/events");
        listener.next("live");
        crowd.push(listener);
    }
    let refused = web.get("/api/events", Some(&token));
    assert_eq!(refused.status, 503, "{refused:?}");
    let by_websocket = || upgrades(&web, "/api/events", &ticket_for_events(&web, &token)).0;
    assert_eq!(by_websocket(), 503);
    let lines = with_ticket(&web, &ticket(&web, &token, "echo"));
    assert_eq!(asks(&web, "", &lines).0, 503);
    drop(crowd);
    until("a place", || (by_websocket() == 101).then_some(()));
}
