//! `missiond audit`, on what a daemon has written.

use super::inside::{missiond_in, shells};
use crate::support::daemon::Daemon;
use std::fs;

/// Six entries: three commands that a person types into slot `one`, and what is refused to each.
fn written() -> Daemon {
    let mut daemon = shells();
    for command in ["stop two", "send two 'hello there'", "reload"] {
        let ended = missiond_in(&daemon, "one", "", command);
        assert_eq!(ended.code, "4", "{ended:?}");
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    daemon
}

/// A daemon that is started on an audit with a cut end goes on behind the end that it knows, and the cut stays to be
/// seen.
#[test]
fn a_restart_does_not_heal_a_cut_audit() {
    let mut daemon = written();
    let file = daemon.logs().join("audit.jsonl");
    let text = fs::read_to_string(&file).expect("an audit");
    let cut: String = text.split_inclusive('\n').take(3).collect();
    fs::write(&file, cut).expect("a file");
    daemon.again();
    daemon.wait_state("one", "idle");
    daemon.cmd(&["write", "one", "true\\r"]).expect(0);
    let found = daemon.cmd(&["audit", "verify", "--json"]).expect(1);
    assert_eq!(found.json()["line"], 4, "{found}");
    assert!(
        found.stderr.contains("entry 7 stands where 4 belongs"),
        "{found}"
    );
}

#[test]
fn the_audit_is_read_and_checked_with_the_daemon_down() {
    let daemon = written();
    let verified = daemon.json(&["audit", "verify"]);
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(verified["entries"], 6, "{verified}");
    read(&daemon);

    assert_eq!(verified["kept"], true, "{verified}");
    let head = verified["head"].as_str().expect("a head").to_owned();
    daemon.cmd(&["audit", "verify", "--head", &head]).expect(0);
    tampered(&daemon, &head);
}

fn read(daemon: &Daemon) {
    let last = daemon
        .cmd(&["audit", "tail", "-n", "2", "--json"])
        .expect(0);
    let numbers: Vec<_> = last.json_lines().iter().map(|e| e["seq"].clone()).collect();
    assert_eq!(numbers, [5, 6], "{last}");
    let shown = daemon.cmd(&["audit", "tail"]).expect(0);
    assert_eq!(shown.text().lines().count(), 6, "{shown}");
    assert!(shown.stdout.contains("(by person, uid "), "{shown}");
    assert!(shown.stdout.contains(", cli write)"), "{shown}");

    let refused = daemon
        .cmd(&["audit", "grep", "--what", "refused"])
        .expect(0);
    assert_eq!(refused.text().lines().count(), 3, "{refused}");
    assert!(refused.stdout.contains("uid "), "{refused}");
    let hello = daemon
        .cmd(&[
            "audit",
            "grep",
            "--slot",
            "one",
            "hello (there|you)",
            "--json",
        ])
        .expect(0);
    let found = hello.json_lines();
    assert_eq!(found.len(), 1, "{hello}");
    assert_eq!(found[0]["input"]["params"]["text"], "hello there");
    for nothing in [
        ["--slot", "two"],
        ["--verdict", "allow"],
        ["--tool", "Bash"],
        ["--since", "2100-01-01T00:00:00Z"],
    ] {
        let found = daemon.cmd(&[&["audit", "grep"], &nothing[..]].concat());
        assert_eq!(found.expect(0).text(), "", "{nothing:?}");
    }
    daemon.cmd(&["audit", "grep", "("]).expect(2);
}

fn tampered(daemon: &Daemon, head: &str) {
    let file = daemon.logs().join("audit.jsonl");
    let text = fs::read_to_string(&file).expect("an audit");
    let lines: Vec<&str> = text.lines().collect();
    let verify = |text: String, more: &[&str]| {
        fs::write(&file, text).expect("a file");
        daemon.cmd(&[&["audit", "verify", "--json"], more].concat())
    };
    let changed = verify(text.replace("hello there", "hello you"), &[]).expect(1);
    assert_eq!(changed.json()["line"], 4, "{changed}");
    assert!(changed.stderr.contains("line 4"), "{changed}");
    let missing = verify([lines[0], lines[2], ""].join("\n"), &[]).expect(1);
    assert_eq!(missing.json()["line"], 2, "{missing}");
    let swapped = verify([lines[0], lines[2], lines[1], ""].join("\n"), &[]).expect(1);
    assert_eq!(swapped.json()["line"], 2, "{swapped}");
    let cut = lines[..3].join("\n") + "\n";
    for more in [&[][..], &["--head", head]] {
        let cut = verify(cut.clone(), more).expect(1);
        assert_eq!(cut.json()["line"], 6, "{cut}");
    }
    fs::remove_file(&file).expect("a file");
    let gone = daemon.cmd(&["audit", "verify"]).expect(1);
    assert!(gone.stderr.contains("is gone: it had 6 entries"), "{gone}");
}
