//! The keyboard on the page, in a real Chromium: who has it, what goes to the slot, and that nothing goes there that nobody typed.

use super::client::Web;
use super::page::Browser;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::{Value, json};
use std::fs;

/// What makes a careless terminal answer, copy, resize or follow a link: device attributes, positions, modes, settings, titles,
/// the clipboard, a link to a script, sizes, the same in eight bits, and a picture.
const HOSTILE: &str = r"\033[c\033[>c\033[=c\033[5n\033[6n\033[?6n\033[?2026$p\033P$qm\033\\\033[21t\033[18t\033[14t\033]0;evil\007\033]52;c;ZXZpbA==\007\033]52;c;?\007\033]10;?\007\033]8;;javascript:document.title=1\007click\033]8;;\007\033[8;5;20t\033[?1004h\033[?1003h\233c\2336n\033Pq#0;2;0;0;0~-\033\\ printed";

/// Two slots with the same program: it takes one key, prints hostile bytes, and keeps everything that it gets.
fn daemon() -> Daemon {
    let keys = "kind = \"shell\"\ncols = 100\nrows = 30";
    let setup = Setup::new()
        .slot_with("alone", keys)
        .slot_with("seen", keys);
    let script = format!(
        "stty raw -echo; printf 'ready '; dd bs=1 count=1 of=first status=none; printf '{HOSTILE}'; exec cat > got"
    );
    let daemon = Daemon::start_with(&setup, &["sh".into(), "-c".into(), script]);
    for slot in ["alone", "seen"] {
        let ready = ["wait", slot, "--output", "ready", "--timeout", "50s"];
        daemon.cmd(&ready).expect(0);
    }
    daemon
}

#[test]
fn a_person_types_at_the_page_and_a_program_can_make_it_type_nothing() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let daemon = daemon();
    let got = |slot: &str| fs::read(daemon.cwd(slot).join("got")).unwrap_or_default();
    // What missiond's own terminal answers, without a page.
    daemon.cmd(&["keys", "alone", "x"]).expect(0);
    let printed = ["wait", "alone", "--output", "printed", "--timeout", "50s"];
    daemon.cmd(&printed).expect(0);
    let web = Web::start(&daemon, "keys");
    let marks = tempfile::tempdir().expect("a directory");
    let told = std::thread::scope(|scope| {
        let playing = scope.spawn(|| browser.play("keyboard", 1280, &web, marks.path()));
        until("the page to have the keyboard", || {
            assert!(!playing.is_finished(), "the person has ended");
            marks.path().join("held").exists().then_some(())
        });
        let status = daemon.status("seen");
        assert_eq!(status["keyboard"]["via"], "web", "{status}");
        // A request that is under way when its page is closed may be lost.
        until("all keys", || {
            got("seen").ends_with("pasted é".as_bytes()).then_some(())
        });
        fs::write(marks.path().join("seen-held"), "").expect("a file");
        // A page that is closed gives it back at once; a client that only vanishes, after 30 s.
        until("the page to give it back", || {
            daemon.status("seen")["keyboard"].is_null().then_some(())
        });
        let log = daemon.log("seen");
        assert!(!log.contains("has not said anything"), "{log}");
        fs::write(marks.path().join("freed"), "").expect("a file");
        playing.join().expect("a person")
    });
    assert_eq!(told["serious"], json!([]), "what axe finds");
    let harmless = json!({
        "title": true, "clipboard": "mine", "links": 0, "size": true, "written": ["x"],
    });
    assert_eq!(told["harmless"], harmless, "{told}");
    let typed: Vec<&str> = told["written"]
        .as_array()
        .expect("texts")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        typed.concat(),
        "x\u{1b}[A\u{4}pasted \u{c3}\u{a9}",
        "{told}"
    );
    // Behind what the terminal answers by itself, there are only the keys of the person.
    let (alone, seen) = (got("alone"), got("seen"));
    assert_eq!(
        String::from_utf8_lossy(&seen),
        format!("{}\u{1b}[A\u{4}pasted é", String::from_utf8_lossy(&alone))
    );
    assert_eq!(
        fs::read(daemon.cwd("seen").join("first")).ok(),
        Some(b"x".to_vec())
    );
}
