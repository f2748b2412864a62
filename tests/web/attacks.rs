//! Who must get nothing: other pages, guessers, small tokens, programs inside a slot, other users, floods.

use super::answers::daemon;
use super::client::Web;
use crate::support::daemon::Daemon;
use crate::support::{is_root, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Command;

/// Everything but the exchange of a code for a token.
fn paths(web: &Web) -> Vec<String> {
    let document: Value = missiond::web::openapi();
    let paths = document["paths"].as_object().expect("paths").keys();
    let served = paths.filter(|path| *path != "/api/session").cloned();
    let all: Vec<String> = served.collect();
    assert!(all.len() > 30 && web.port > 0);
    all
}

#[test]
fn nothing_is_answered_without_a_token() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    for path in paths(&web) {
        let name = path.strip_prefix("/api/").expect("a path of the API");
        let posted = web.post(name, None, "{}");
        assert_eq!(posted.status, 401, "{path}: {posted:?}");
        let got = web.get(&path, None);
        assert_eq!(got.status, 401, "{path}: {got:?}");
    }
    assert_eq!(web.get("/metrics", None).status, 401);
    let query = web.get(&format!("/api/events?token={}", web.code), None);
    assert_eq!(query.status, 401, "{query:?}");
    let wrong = web.post("status", Some("0123456789abcdef"), "{}");
    assert_eq!(wrong.status, 401, "{wrong:?}");
    // A code is not a token.
    assert_eq!(web.post("status", Some(&web.code), "{}").status, 401);
}

#[test]
fn a_code_is_good_once() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    web.token();
    let body = json!({ "code": web.code }).to_string();
    assert_eq!(web.post("session", None, &body).status, 401);
    assert_eq!(web.post("session", None, r#"{"code":"00"}"#).status, 401);
    let more = json!({ "code": web.code, "scope": "keys" }).to_string();
    assert_eq!(web.post("session", None, &more).status, 400);
}

#[test]
fn a_right_token_from_a_wrong_place_is_refused() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = format!("Authorization: Bearer {}", web.token());
    let host = format!("Host: {}", web.host());
    let port = web.port;
    let status = |head: &[&str]| {
        let head = [&[token.as_str(), "Content-Type: application/json"], head].concat();
        web.request("POST /api/status", &head, "{}").status
    };
    assert_eq!(status(&[&host]), 200);
    for other in [
        format!("Host: evil.com:{port}"),
        format!("Host: localhost.evil.com:{port}"),
        format!("Host: 0.0.0.0:{port}"),
        format!("Host: localhost:{port}"),
        format!("Host: [::1]:{port}"),
        format!("Host: localhost.:{port}"),
        "Host: 127.0.0.1".to_owned(),
    ] {
        assert_eq!(status(&[&other]), 403, "{other}");
    }
    assert_eq!(status(&[]), 403, "no host");
    assert_eq!(status(&[&host, &host]), 403, "two hosts");
    let evil = [
        format!("Host: evil.com:{port}"),
        format!("Origin: http://evil.com:{port}"),
    ];
    assert_eq!(
        status(&[&evil[0], &evil[1]]),
        403,
        "a name that points here"
    );
    for origin in [
        "null",
        "http://localhost:3000",
        &format!("https://127.0.0.1:{port}"),
    ] {
        let origin = format!("Origin: {origin}");
        assert_eq!(status(&[&host, &origin]), 403, "{origin}");
    }
    assert_eq!(status(&[&host, "Sec-Fetch-Site: same-site"]), 403);
    let forwarded = ["X-Forwarded-Host: evil.com", "X-Forwarded-For: 10.0.0.1"];
    assert_eq!(
        status(&[&host, forwarded[0], forwarded[1]]),
        200,
        "these say nothing"
    );
    let line = format!("POST http://evil.com:{port}/api/status");
    let absolute = web.request(
        &line,
        &[&token, &host, "Content-Type: application/json"],
        "{}",
    );
    assert_eq!(absolute.status, 403, "{absolute:?}");
}

#[test]
fn only_a_post_of_json_acts() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = format!("Authorization: Bearer {}", web.token());
    let host = format!("Host: {}", web.host());
    let body = r#"{"slots":["echo"]}"#;
    for kind in [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
    ] {
        let kind = format!("Content-Type: {kind}");
        let answer = web.request("POST /api/stop", &[&token, &host, &kind], body);
        assert_eq!(answer.status, 415, "{kind}: {answer:?}");
    }
    assert_eq!(
        web.request("POST /api/stop", &[&token, &host], body).status,
        415
    );
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let head = [
            &token,
            &host,
            "Content-Type: application/json",
            "X-HTTP-Method-Override: POST",
        ];
        let answer = web.request(&format!("{method} /api/stop"), &head, body);
        assert_eq!(answer.status, 405, "{method}: {answer:?}");
        if method != "HEAD" {
            assert!(answer.message().contains("use GET to read"), "{answer:?}");
        }
        assert!(!answer.head.contains("access-control"), "{answer:?}");
    }
    // A head that is too long is told so too.
    let long = format!("X-Long: {}", "x".repeat(65 << 10));
    let head = [&token, &host, "Content-Type: application/json", &long];
    let answer = web.request("POST /api/stop", &head, body);
    assert_eq!(answer.status, 431, "{answer:?}");
    assert!(answer.message().contains("64 KiB"), "{answer:?}");
    assert_eq!(daemon.status("echo")["state"], "idle");
}

#[test]
fn a_token_does_no_more_than_its_scope() {
    let daemon = daemon();
    let forbidden = |scope: &str, requests: &[(&str, &str)]| {
        let web = Web::start(&daemon, scope);
        let token = web.token();
        for (name, body) in requests {
            let answer = web.post(name, Some(&token), body);
            assert_eq!(answer.status, 403, "{scope}: {name} {body}: {answer:?}");
            assert!(answer.message().contains("needs the scope"), "{answer:?}");
        }
        assert_eq!(web.post("status", Some(&token), "{}").status, 200);
    };
    let yes = r#"{"slot":"echo","answer":"yes","dialog":"x"}"#;
    let send = r#"{"slot":"echo","text":"hi"}"#;
    let shell = r#"{"slot":"echo","text":"ls","shell":true}"#;
    let more = r#"{"slot":"echo","text":"hi","scope":"keys"}"#;
    let keys = [
        ("type", send),
        ("reload", "{}"),
        ("down", "{}"),
        ("send", shell),
    ];
    // Each is more than a yes to this one call.
    let mores = [
        r#"{"slot":"echo","answer":"always","dialog":"x"}"#,
        r#"{"slot":"echo","answer":" Always!","dialog":"x"}"#,
        r#"{"slot":"echo","answer":"no","answer":"always","dialog":"x"}"#,
        r#"{"slot":"echo","answer":"Yes, and don't ask again for touch","dialog":"x"}"#,
        r#"{"slot":"echo","answer":"yes, and auto-accept edits","dialog":"x"}"#,
        r#"{"slot":"echo","answer":"yes","anyway":true,"dialog":"x"}"#,
    ];
    for scope in ["view", "answer", "steer"] {
        forbidden(scope, &mores.map(|more| ("confirm", more)));
    }
    forbidden(
        "view",
        &[
            ("confirm", yes),
            ("send", send),
            ("stop", r#"{"slots":["echo"]}"#),
        ],
    );
    forbidden("view", &keys);
    forbidden(
        "answer",
        &[
            ("send", send),
            ("send", more),
            ("interrupt", r#"{"slots":["echo"]}"#),
        ],
    );
    forbidden("answer", &keys);
    forbidden("steer", &keys);
}

/// A line for bash that asks with a right token, in one write: what comes after an answer resets the connection.
fn asking(web: &Web, token: &str) -> String {
    let request = format!(
        "POST /api/status HTTP/1.1\\r\\nHost: {}\\r\\nConnection: close\\r\\nAuthorization: Bearer {token}\\r\\n\
         Content-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n{{}}",
        web.host()
    );
    let port = web.port;
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request}' | dd bs=4k iflag=fullblock status=none >&3; cat <&3"
    )
}

/// What a program that runs inside a session gets for a request with a right token.
fn asked_inside(daemon: &Daemon, web: &Web, token: &str, wrapper: &str) -> String {
    let script = daemon.root().join("ask.sh");
    std::fs::write(&script, asking(web, token)).expect("a file");
    let line = format!("{wrapper} bash {}", script.display());
    let told = daemon.cmd(&["exec", "--timeout", "60s", "--", "sh", "-c", &line]);
    told.stdout
}

#[test]
fn a_program_inside_a_slot_is_refused_with_a_right_token() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    assert_eq!(web.post("status", Some(&token), "{}").status, 200);
    for wrapper in ["", "setsid -w", "env -i"] {
        let told = asked_inside(&daemon, &web, &token, wrapper);
        assert!(told.contains("403 Forbidden"), "{wrapper}: {told}");
        assert!(told.contains("it runs inside session"), "{wrapper}: {told}");
    }
    let audit = daemon.logged("audit.jsonl");
    let refused = audit.lines().filter(|line| {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        entry["what"] == "refused" && entry["input"]["method"] == "web"
    });
    // A crowd does not fill the audit.
    assert_eq!(refused.count(), 1, "{audit}");
}

#[test]
fn a_crowd_of_a_slot_takes_no_place_of_a_person() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let script = daemon.root().join("crowd.py");
    let text = format!(
        "import socket, time\n\
         crowd = [socket.create_connection(('127.0.0.1', {})) for _ in range(300)]\n\
         open('crowded', 'w').close()\n\
         time.sleep(600)\n",
        web.port
    );
    std::fs::write(&script, text).expect("a file");
    let root = daemon.root().display().to_string();
    let path = script.display().to_string();
    daemon
        .cmd(&["exec", "--cwd", &root, "--", "python3", &path])
        .expect(0);
    until("the crowd", || {
        daemon.root().join("crowded").exists().then_some(())
    });
    for _ in 0..5 {
        let answer = web.post("status", Some(&token), "{}");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn a_program_inside_a_slot_gets_no_server() {
    let daemon = daemon();
    let program = env!("CARGO_BIN_EXE_missiond");
    let told = daemon.cmd(&[
        "exec",
        "--timeout",
        "60s",
        "--",
        program,
        "web",
        "--port",
        "0",
    ]);
    assert_eq!(told.code, 4, "{told}");
    assert!(told.stdout.contains("nobody approves himself"), "{told}");
    assert!(!told.stdout.contains("http://"), "{told}");
}

#[test]
fn another_user_is_refused_with_a_right_token() {
    if !is_root("another user of the page is not tried") {
        return;
    }
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    let line = asking(&web, &token);
    let told = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "bash", "-c", &line])
        .output()
        .expect("setpriv is part of util-linux");
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("403 Forbidden"), "{told}");
    assert!(told.contains("another user"), "{told}");
}

#[test]
fn malformed_requests_end_their_connection_and_nothing_else() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let host = web.host();
    let big = "x".repeat(1 << 20);
    for request in [
        format!(
            "POST /api/status HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}"
        ),
        format!(
            "POST /api/status HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"
        ),
        format!("GET /api/events HTTP/1.1\r\nHost: {host}\r\nX: {big}\r\n\r\n"),
        format!("GET /api/{big} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        "\0\0\0\0\r\n\r\n".to_owned(),
        format!("GET /../etc/passwd HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        format!("GET /api/..%2f..%2fetc HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    ] {
        let mut closing = request.clone();
        if !request.contains("Connection: close") {
            closing = request.replacen("Host:", "Connection: close\r\nHost:", 1);
        }
        let answer = web.raw(closing.as_bytes());
        assert!(
            answer.status == 0 || (400..500).contains(&answer.status),
            "{answer:?}"
        );
    }
    assert_eq!(web.post("status", Some(&token), "{}").status, 200);
}

#[test]
fn a_flood_of_connections_leaves_the_daemon_alone() {
    let daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    let flood: Vec<_> = (0..600).map(|_| web.connect()).collect();
    assert_eq!(daemon.status("echo")["state"], "idle");
    // What is over the limit is closed; the rest wait for a head that never comes.
    until("a connection to be turned away", || {
        let mut closed = flood.iter().filter(|stream| {
            stream.set_nonblocking(true).expect("a socket");
            matches!((&mut &**stream).read(&mut [0]), Ok(0))
        });
        closed.next().is_some().then_some(())
    });
    drop(flood);
    until("a place", || {
        (web.post("status", Some(&token), "{}").status == 200).then_some(())
    });
}

#[test]
fn no_secret_is_told_to_others() {
    let daemon = daemon();
    let web = Web::start(&daemon, "keys");
    let token = web.token();
    assert_eq!(web.post("status", Some(&token), "{}").status, 200);
    assert_eq!(
        web.post("down", Some(&format!("{token}x")), "{}").status,
        401
    );
    let pid = web.pid();
    let of_process = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).expect("a process");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut places = vec![of_process("cmdline"), of_process("environ")];
    let find = Command::new("grep")
        .args(["-rlaF", "-e", &token, "-e", &web.code])
        .arg(daemon.root())
        .output()
        .expect("grep");
    places.push(String::from_utf8_lossy(&find.stdout).into_owned());
    assert_eq!(places.pop().as_deref(), Some(""), "files with a secret");
    for place in places {
        assert!(
            !place.contains(&token) && !place.contains(&web.code),
            "{place}"
        );
    }
}

#[test]
fn a_daemon_that_comes_back_is_served_again() {
    let mut daemon = daemon();
    let web = Web::start(&daemon, "view");
    let token = web.token();
    // On a connection that is not known yet, nobody can be told apart without a daemon.
    daemon.crash();
    let down = web.post("status", Some(&token), "{}");
    assert_eq!(down.status, 502, "{down:?}");
    daemon.again();
    let up = web.post("status", Some(&token), "{}");
    assert_eq!(up.status, 200, "{up:?}");
    let mut stream = web.connect();
    stream.write_all(b"GET").expect("it listens");
}
