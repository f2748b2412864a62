//! Folders that Claude Code does not trust yet.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use serde_json::Value;

fn finding(daemon: &Daemon) -> Value {
    let health = daemon.json(&["doctor"]);
    let checks = health["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["check"] == "trust");
    found.expect("a check of the trust").clone()
}

/// Nothing is trusted silently; a person's one word opens every folder, by Claude Code's own question, and the audit has
/// it. A folder is trusted with one above it.
#[test]
fn trust_is_given_once_and_by_a_person() {
    let setup = Setup::new()
        .untrusted("one", "")
        .untrusted("two", "")
        .untrusted("later", "autostart = false");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    for slot in ["one", "two"] {
        let dialog = daemon.wait_dialog(slot);
        assert_eq!(dialog["kind"], "trust", "{dialog}");
    }
    let found = finding(&daemon);
    assert_eq!(found["health"], "warn", "{found}");
    let detail = found["detail"].as_str().expect("a detail");
    for slot in ["one", "two", "later"] {
        let named = format!("{} ({slot})", daemon.cwd(slot).display());
        assert!(detail.contains(&named), "{detail}");
    }
    let fix = found["fix"].as_str().expect("a fix");
    assert!(fix.contains("missiond up --trust"), "{fix}");

    let id = daemon.status("one")["dialog"]["id"].clone();
    let refused = daemon.cmd(&["send", "one", "hello"]).expect(4).stderr;
    let next = format!(
        "missiond confirm one yes --dialog {}",
        id.as_str().expect("an id")
    );
    assert!(refused.contains(&next), "{refused}");

    // With nobody at a terminal and no flag nothing is answered.
    let up = daemon.json(&["up"]);
    assert_eq!(up["trusted"], serde_json::json!([]), "{up}");
    assert_eq!(
        up["untrusted"].as_object().map(|folders| folders.len()),
        Some(3),
        "{up}"
    );
    assert_eq!(daemon.status("one")["dialog"]["id"], id);

    let up = daemon.cmd(&["up", "--trust"]).expect(0);
    for slot in ["one", "two"] {
        assert!(
            up.stdout
                .contains(&format!("{slot}: its folder is trusted")),
            "{up}"
        );
        daemon.wait_state(slot, "idle");
        let answer = daemon.cmd(&["send", slot, "hello"]).expect(0);
        assert_eq!(answer.text(), "You said: hello");
    }
    let audit = daemon.logged("audit.jsonl");
    let said = "a person chose Yes, I trust this folder";
    let verdicts = audit
        .lines()
        .filter(|line| line.contains(r#""what":"verdict""#) && line.contains(said));
    assert_eq!(verdicts.count(), 2, "{audit}");

    // What lies below a trusted folder is trusted with it.
    let later = daemon.cwd("later");
    assert!(finding(&daemon)["detail"].to_string().contains("later"));
    for slot in ["one", "two"] {
        daemon.cmd(&["stop", slot]).expect(0);
        daemon.wait_state(slot, "exited");
    }
    daemon
        .home
        .trust(later.parent().expect("a directory"))
        .expect("its file");
    let found = finding(&daemon);
    assert_eq!(found["health"], "ok", "{found}");
    daemon.cmd(&["start", "later"]).expect(0);
    daemon.wait_state("later", "idle");
    assert!(
        !daemon.log("later").contains("dialog "),
        "{}",
        daemon.log("later")
    );
}
