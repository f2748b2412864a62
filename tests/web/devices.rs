//! Paired devices: their tokens outlive the server, and end when they are revoked.

use super::answers::{Events, daemon};
use super::client::Web;
use crate::support::daemon::Daemon;
use serde_json::{Value, json};

/// The code of a new device.
fn paired(daemon: &Daemon, name: &str, scope: &str) -> String {
    let arguments = ["web", "pair", "--name", name, "--scope", scope, "--json"];
    let told = daemon.cmd(&arguments).expect(0).json();
    told["code"].as_str().expect("a code").to_owned()
}

fn redeemed(web: &Web, code: &str) -> Value {
    let body = json!({ "code": code }).to_string();
    let answer = web.post("session", None, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn a_device_outlives_the_server_and_a_session_does_not() {
    let daemon = daemon();
    let code = paired(&daemon, "phone", "answer");
    let web = Web::start(&daemon, "keys");
    let session = web.token();
    let device = redeemed(&web, &code);
    assert_eq!(
        (&device["device"], &device["scope"]),
        (&json!("phone"), &json!("answer"))
    );
    let device = device["token"].as_str().expect("a token");
    let status = |web: &Web, token: &str| web.post("status", Some(token), "{}").status;
    assert_eq!((status(&web, &session), status(&web, device)), (200, 200));
    assert_eq!(
        web.post("session", None, &json!({ "code": code }).to_string())
            .status,
        401,
        "twice"
    );
    // It does no more than its scope, and the audit names it.
    let body = json!({"slot": "echo", "bytes": [104]}).to_string();
    assert_eq!(web.post("write", Some(device), &body).status, 403);
    drop(web);
    let web = Web::start(&daemon, "keys");
    assert_eq!((status(&web, &session), status(&web, device)), (401, 200));
    let kept = std::fs::read_to_string(daemon.root().join("state/missiond/web-devices.json"));
    let kept = kept.expect("the devices are on the disk");
    assert!(
        kept.contains("phone") && !kept.contains(device) && !kept.contains(&code),
        "{kept}"
    );
    let listed = daemon.cmd(&["web", "devices"]).expect(0).stdout;
    assert!(
        listed.contains("phone") && listed.contains("answer"),
        "{listed}"
    );

    daemon.cmd(&["web", "revoke", "phone"]).expect(0);
    assert_eq!(status(&web, device), 401);
    drop(web);
    assert_eq!(
        status(&Web::start(&daemon, "keys"), device),
        401,
        "it stays revoked"
    );
    daemon.cmd(&["web", "revoke", "phone"]).expect(2);
}

#[test]
fn a_revoked_device_hears_nothing_more() {
    let daemon = daemon();
    let code = paired(&daemon, "wall", "view");
    let web = Web::start(&daemon, "view");
    let device = redeemed(&web, &code);
    let device = device["token"].as_str().expect("a token");
    let mut events = Events::open(&web, device, "/api/events");
    events.next("live");
    daemon.cmd(&["web", "revoke", "wall"]).expect(0);
    daemon.cmd(&["stop", "echo"]).expect(0);
    let rest = events.rest();
    assert!(!rest.contains("event: event"), "{rest}");
}

#[test]
fn an_act_of_a_device_has_its_name_in_the_audit() {
    let daemon = daemon();
    let code = paired(&daemon, "desk", "keys");
    let web = Web::start(&daemon, "view");
    let device = redeemed(&web, &code);
    let device = device["token"].as_str().expect("a token");
    let body = json!({"slot": "echo", "bytes": "hello".as_bytes()}).to_string();
    assert_eq!(web.post("write", Some(device), &body).status, 200);
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains(r#""via":"web desk""#), "{audit}");
}

#[test]
fn a_program_inside_a_slot_pairs_nothing() {
    let daemon = daemon();
    let program = env!("CARGO_BIN_EXE_missiond");
    let pair = [
        "exec",
        "--timeout",
        "60s",
        "--",
        program,
        "web",
        "pair",
        "--name",
        "mine",
    ];
    let told = daemon.cmd(&pair);
    assert_eq!(told.code, 4, "{told}");
    assert!(told.stdout.contains("nobody approves himself"), "{told}");
    let listed = daemon.cmd(&["web", "devices"]).expect(0).stdout;
    assert!(listed.contains("no devices"), "{listed}");
}
