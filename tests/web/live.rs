//! The live screen: who gets it, and that nothing goes back to the slot.

use super::answers::daemon;
use super::client::Web;
use serde_json::json;
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
    let mut stream = web.connect();
    let mut head = format!(
        "GET /api/live?slot=echo{query} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
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
