//! Folders that Claude Code does not trust yet.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::Value;

fn finding(daemon: &Daemon) -> Value {
    let health = daemon.json(&["doctor"]);
    let checks = health["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["check"] == "trust");
    found.expect("a check of the trust").clone()
}

/// Whoever sends while a slot starts is told of the question that it starts with, and does not wait for ever.
#[test]
fn a_message_for_a_start_that_ends_at_a_question_is_refused() {
    let setup = Setup::new().untrusted("new", "autostart = false");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.cmd(&["start", "new"]).expect(0);
    let refused = daemon.cmd(&["send", "new", "hello", "--timeout", "5m"]);
    let refused = refused.expect(4).stderr;
    let dialog = daemon.wait_dialog("new");
    let id = dialog["id"].as_str().expect("an id");
    let next = format!("missiond confirm new yes --dialog {id}");
    assert!(refused.contains(&next), "{refused}");
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

/// A home that was never used: each of its first pages is a dialog for a person, and an answer is chosen by its label.
/// By way of another cloud the program looks for no server before its first page.
#[test]
fn the_first_pages_of_a_new_home_are_for_a_person() {
    let cloud =
        "autostart = false\nenv = { CLAUDE_CODE_USE_BEDROCK = \"1\", AWS_REGION = \"us-east-1\" }";
    let setup = Setup::new().untrusted("new", cloud);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let settings = daemon.home.path().join(".claude.json");
    std::fs::remove_file(settings).expect("the settings of a home that was used");
    daemon.cmd(&["start", "new"]).expect(0);
    let themes = daemon.wait_dialog("new");
    assert_eq!(themes["kind"], "other", "{themes}");
    let options = themes["options"].as_array().expect("options");
    let labels: Vec<&str> = options.iter().filter_map(|o| o["label"].as_str()).collect();
    assert!(
        labels.contains(&"Dark mode") && labels.contains(&"Light mode"),
        "{labels:?}"
    );
    // It was drawn once more in a terminal with fewer rows, and a person answers later than that.
    until("the slot's own size again", || {
        let recording = daemon.logged("new.cast");
        recording.contains(r#""r", "120x40""#).then_some(())
    });
    let pending = daemon.cmd(&["pending"]).expect(0);
    assert!(
        pending.stdout.contains("missiond confirm new 'Light mode'"),
        "{pending}"
    );
    let refused = daemon.cmd(&["send", "new", "hello"]).expect(4).stderr;
    assert!(refused.contains("missiond pending new"), "{refused}");
    let up = daemon.cmd(&["up", "--trust"]).expect(0).stderr;
    assert!(up.contains("it has not asked about them yet"), "{up}");
    assert!(!up.contains("if you trust"), "{up}");
    assert!(!up.contains("--trust"), "the word is said once: {up}");
    // A word that is on no row is refused, and so is one that several rows begin with.
    daemon.cmd(&["confirm", "new", "Sepia"]).expect(4);
    let chosen = daemon.json(&["confirm", "new", "Light mode"]);
    assert_eq!(chosen["chosen"], "Light mode", "{chosen}");

    let notes = another_page(&daemon, &themes);
    assert_eq!(notes["options"], serde_json::json!([]), "{notes}");
    let pending = daemon.cmd(&["pending"]).expect(0);
    let keys = "missiond keys new enter --into-dialog";
    assert!(pending.stdout.contains(keys), "{pending}");
    daemon.cmd(&["keys", "new", "enter"]).expect(4);
    daemon
        .cmd(&["keys", "new", "enter", "--into-dialog"])
        .expect(0);

    let trust = another_page(&daemon, &notes);
    assert_eq!(trust["kind"], "trust", "{trust}");
    assert_eq!(trust["complete"], true, "{trust}");
    // The word was given before the question came, and is kept for it.
    let up = daemon.json(&["up"]);
    assert_eq!(up["trusted"], serde_json::json!(["new"]), "{up}");
    daemon.wait_state("new", "idle");
    let agreed = daemon.root().join("state/missiond/trusted-folders.json");
    assert_eq!(std::fs::read_to_string(agreed).expect("a file"), "[]");
    let written = std::fs::read_to_string(daemon.home.path().join(".claude/settings.json"));
    assert!(
        written
            .expect("its settings")
            .contains("\"theme\": \"light\"")
    );
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains("a person chose Light mode"), "{audit}");
}

/// The dialog that comes in the place of this one.
fn another_page(daemon: &Daemon, before: &Value) -> Value {
    until("the next page", || {
        let dialog = daemon.status("new")["dialog"].clone();
        (dialog.is_object() && dialog["id"] != before["id"]).then_some(dialog)
    })
}

/// What a person said to `init` is given to Claude Code's own question by the next `up`, for that folder alone.
#[test]
fn trust_that_was_given_at_init_is_told_by_up() {
    let setup = Setup::new().untrusted("one", "").untrusted("two", "");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    for slot in ["one", "two"] {
        daemon.wait_dialog(slot);
    }
    let folder = daemon.cwd("one").display().to_string();
    let init = ["init", "fleet", "--cwd", &folder];
    let written = daemon.json(&init);
    assert_eq!(written["trusted"], false, "{written}");
    let up = daemon.json(&["up"]);
    assert_eq!(up["trusted"], serde_json::json!([]), "{up}");
    let written = daemon.json(&[&init[..], &["--trust", "--force"]].concat());
    assert_eq!(written["trusted"], true, "{written}");
    let up = daemon.json(&["up"]);
    assert_eq!(up["trusted"], serde_json::json!(["one"]), "{up}");
    daemon.wait_state("one", "idle");
    assert_eq!(daemon.wait_dialog("two")["kind"], "trust");
    let agreed = daemon.root().join("state/missiond/trusted-folders.json");
    assert_eq!(std::fs::read_to_string(agreed).expect("a file"), "[]");
}
