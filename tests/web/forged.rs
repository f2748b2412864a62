//! Requests that pretend: to come from a proxy, to have a greater scope, to come from outside a slot, to be another path or another
//! request, or to be on their way.

use super::answers::daemon;
use super::client::Web;
use crate::support::until;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

#[test]
fn headers_of_a_proxy_give_nothing() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let (host, bearer) = (
        format!("Host: {}", web.host()),
        format!("Authorization: Bearer {token}"),
    );
    let forged = [
        "X-Missiond-Scopes: keys",
        "X-Scopes: keys",
        "Tailscale-User-Login: owner@example.com",
        "X-Forwarded-User: root",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Host: 127.0.0.1",
        "Forwarded: for=127.0.0.1;host=127.0.0.1",
        "X-Original-URL: /api/down",
    ];
    let with = |line: &str, head: &[&str], body: &str| {
        let own = [host.as_str(), "Content-Type: application/json"];
        let head = [&own[..], &forged, head].concat();
        web.request(line, &head, body).status
    };
    let stop = r#"{"slots":["echo"]}"#;
    assert_eq!(with("POST /api/stop", &[&bearer], stop), 403);
    assert_eq!(with("POST /api/stop", &[], stop), 401, "no token");
    assert_eq!(with("POST /api/status", &[&bearer], "{}"), 200);
    assert_eq!(daemon.status("echo")["state"], "idle");
}

/// A program in a slot that passes a person's request on is the one that asks; so is one that has lost its parents.
#[test]
fn a_relay_and_an_orphan_of_a_slot_are_inside_it() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a port").port();
    let script = daemon.root().join("relay.py");
    let text = format!(
        "import os, socket, threading\n\
         if os.fork(): os._exit(0)\n\
         os.setsid()\n\
         if os.fork(): os._exit(0)\n\
         door = socket.create_server(('127.0.0.1', {port}))\n\
         def copy(a, b):\n\
         \x20   while data := a.recv(65536): b.sendall(data)\n\
         \x20   b.shutdown(socket.SHUT_WR)\n\
         while True:\n\
         \x20   a, _ = door.accept()\n\
         \x20   b = socket.create_connection(('127.0.0.1', {}))\n\
         \x20   threading.Thread(target=copy, args=(a, b), daemon=True).start()\n\
         \x20   threading.Thread(target=copy, args=(b, a), daemon=True).start()\n",
        web.port
    );
    fs::write(&script, text).expect("a file");
    let path = script.display().to_string();
    daemon
        .cmd(&[
            "spawn",
            "--",
            "sh",
            "-c",
            &format!("python3 {path}; sleep 600"),
        ])
        .expect(0);
    let request = format!(
        "POST /api/status HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        web.host()
    );
    let mut relayed = until("the relay", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    relayed.write_all(request.as_bytes()).expect("it listens");
    let mut told = String::new();
    // The relay may close without a word after the answer.
    let _ = relayed.read_to_string(&mut told);
    assert!(told.contains("403 Forbidden"), "{told}");
    assert!(told.contains("it runs inside session"), "{told}");
    assert_eq!(web.post("status", Some(&token), "{}").status, 200);
}

#[test]
fn a_path_leads_to_nothing_but_what_is_served() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    for path in [
        "/assets/../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/assets/app.mjs%00.css",
        "/assets/app.mjs/",
        "/assets/vendor/../app.mjs",
        "//assets/app.mjs",
        "/api/../assets/app.mjs",
    ] {
        let answer = web.get(path, Some(&token));
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.body.contains("root:"), "{path}: {answer:?}");
    }
    for slot in ["../echo", "a/b", "..", "..%2fecho", "echo\\u0000", ""] {
        let body = format!(r#"{{"slot":"{slot}"}}"#);
        for name in ["log", "screen", "history", "why", "ticket"] {
            let answer = web.post(name, Some(&token), &body);
            let is_refused = (400..500).contains(&answer.status);
            // A ticket is not looked up before it is used.
            assert!(is_refused || name == "ticket", "{name} {body}: {answer:?}");
        }
    }
}

#[test]
fn a_request_that_hides_another_one_is_not_answered() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let host = web.host();
    let head = format!("Host: {host}\r\nAuthorization: Bearer {token}");
    let hidden = format!(
        "POST /api/stop HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{{\"slots\":[\"echo\"]}}"
    );
    for request in [
        // Two lengths, a length and chunks, chunks twice, a length that is no number.
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 300\r\n\r\n{{}}{hidden}"
        ),
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nContent-Length: 300\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nContent-Length: +2\r\n\r\n{{}}{hidden}"
        ),
        // A line that is folded, one with a space before its colon, and one without a name.
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nX-Folded: a\r\n b\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
        ),
        format!(
            "POST /api/status HTTP/1.1\r\n{head}\r\nContent-Length : 2\r\nContent-Type: application/json\r\n\r\n{{}}{hidden}"
        ),
        format!("POST /api/status HTTP/1.1\r\n{head}\r\n: x\r\n\r\n"),
    ] {
        let answer = web.raw(request.as_bytes());
        assert!(
            answer.status == 0 || (400..500).contains(&answer.status),
            "{request}: {answer:?}"
        );
        assert_eq!(daemon.status("echo")["state"], "idle", "{request}");
    }
}

#[test]
fn a_client_that_never_ends_its_head_is_sent_away() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let mut slow = web.connect();
    let begun = Instant::now();
    slow.write_all(b"GET /api/events HTTP/1.1\r\n")
        .expect("it listens");
    let mut rest = Vec::new();
    // It may be closed with or without an answer.
    let _ = slow.read_to_end(&mut rest);
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
}
