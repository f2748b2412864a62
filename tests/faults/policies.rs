//! Which policies are in force in a daemon that comes after another one.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const BEFORE: &str = "allow = [\"Bash(ls *)\"]\nask = [\"Bash(git push *)\"]\n";
const MORE: &str = "allow = [\"Bash(ls *)\", \"Bash(make *)\"]\nask = [\"Bash(git push *)\"]\n";
const LESS: &str = "ask = [\"Bash(git push *)\"]\n";

/// A program that lives on, and a slot with a policy; Claude Code itself is not needed to ask for its rules.
fn daemon() -> Daemon {
    let setup = Setup::new()
        .slot_with("lives", "kind = \"shell\"")
        .slot_with("docs", "autostart = false")
        .policy("docs", BEFORE);
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    daemon.wait_state("lives", "idle");
    daemon
}

fn write(daemon: &Daemon, text: &str) {
    let file = daemon.config().with_file_name("policies/docs.toml");
    fs::write(file, text).expect("a policy");
}

fn kept(daemon: &Daemon) -> PathBuf {
    let state = daemon.root().join("state/missiond/missiond");
    state.join("policies.in-force")
}

/// Which of `ls`, `make` and `git push` have a rule, and whether the file waits for a person.
fn in_force(daemon: &Daemon) -> (Vec<&'static str>, bool) {
    let shown = daemon.json(&["policy", "show", "docs"]);
    let text = shown["rules"].to_string();
    let named = ["ls *", "make *", "git push *"].into_iter();
    let rules = named.filter(|rule| text.contains(rule)).collect();
    (rules, shown["waits"] == true)
}

#[test]
fn a_daemon_that_takes_over_goes_on_with_the_rules_that_were_in_force() {
    let mut daemon = daemon();
    let before = vec!["ls *", "git push *"];
    assert_eq!(in_force(&daemon), (before.clone(), false));

    // What allows more waits for a person, as in a daemon that runs.
    daemon.crash();
    write(&daemon, MORE);
    daemon.again();
    assert_eq!(in_force(&daemon), (before.clone(), true));
    let status = daemon.cmd(&["status"]).expect(0);
    let not_taken = "the policy docs on the disk allows more and is not taken: missiond reload";
    assert!(status.stdout.contains(not_taken), "{status}");
    let up = daemon.cmd(&["up"]).expect(0);
    assert!(up.stdout.contains(not_taken), "{up}");
    let events = daemon.cmd(&["events", "--after", "0"]).expect(0);
    let told = "policy docs: the file allows more, and is not taken; missiond reload takes it";
    assert!(events.stdout.contains(told), "{events}");

    // However often it is killed.
    daemon.crash();
    daemon.again();
    assert_eq!(in_force(&daemon), (before.clone(), true));
    daemon.cmd(&["reload"]).expect(0);
    let more = vec!["ls *", "make *", "git push *"];
    assert_eq!(in_force(&daemon), (more.clone(), false));
    daemon.crash();
    daemon.again();
    assert_eq!(in_force(&daemon), (more, false));

    // What only narrows counts at once, and is what the next daemon compares with.
    daemon.crash();
    write(&daemon, LESS);
    daemon.again();
    assert_eq!(in_force(&daemon), (vec!["git push *"], false));
    daemon.crash();
    write(&daemon, BEFORE);
    daemon.again();
    assert_eq!(in_force(&daemon), (vec!["git push *"], true));

    // Nothing of the former daemon lives: the files are read anew.
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    daemon.again();
    assert_eq!(in_force(&daemon), (before, false));
    assert!(!daemon.cmd(&["status"]).stdout.contains("not known"));
}

#[test]
fn a_daemon_after_down_keep_goes_on_with_the_rules_that_were_in_force() {
    let mut daemon = daemon();
    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    write(&daemon, MORE);
    daemon.again();
    assert_eq!(in_force(&daemon), (vec!["ls *", "git push *"], true));
}

/// Damage or loss is no reason not to start, but a person has to know.
#[test]
fn a_person_is_told_if_it_is_not_known_which_rules_were_in_force() {
    type Harm = fn(&PathBuf);
    let harms: [(&str, Harm); 3] = [
        ("No such file", |file| {
            fs::remove_file(file).expect("a file")
        }),
        ("EOF", |file| {
            let text = fs::read(file).expect("a file");
            fs::write(file, &text[..text.len() / 2]).expect("a file");
        }),
        ("not as it was written", |file| {
            let text = fs::read_to_string(file).expect("a file");
            let harmed = text.replace("git push", "git pull");
            assert_ne!(harmed, text);
            fs::write(file, harmed).expect("a file");
        }),
    ];
    let mut daemon = daemon();
    for (why, harm) in harms {
        daemon.crash();
        harm(&kept(&daemon));
        daemon.again();
        let status = daemon.cmd(&["status"]).expect(0);
        let unknown = "what was in force before is not known";
        assert!(status.stdout.contains(unknown), "{status}");
        assert!(status.stdout.contains(why), "{status}");
        // Another kill is no reload.
        daemon.crash();
        daemon.again();
        let status = daemon.cmd(&["status"]).expect(0);
        assert!(status.stdout.contains(unknown), "{why}: {status}");
        daemon.cmd(&["reload"]).expect(0);
        assert!(!daemon.cmd(&["status"]).stdout.contains(unknown));
    }
    // The kept rules are written again as soon as the directory is.
    fs::remove_dir_all(daemon.root().join("state/missiond/missiond")).expect("a directory");
    crate::support::until("they are written again", || {
        kept(&daemon).exists().then_some(())
    });
    daemon.crash();
    write(&daemon, MORE);
    daemon.again();
    assert_eq!(in_force(&daemon), (vec!["ls *", "git push *"], true));
}

/// The same at the gate of the real Claude Code.
#[test]
fn claude_code_is_judged_by_the_rules_in_force_before_the_daemon_was_killed() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let file = daemon.config().with_file_name("policies/coder.toml");
    daemon.crash();
    fs::write(file, "allow = [\"Bash(mkfifo *)\"]\n").expect("a policy");
    daemon.again();
    daemon.wait_state("coder", "idle");
    for (pipe, code) in [("early", 5), ("late", 0)] {
        let words = format!("please make {pipe}");
        let tool = Step::tool("Bash", json!({ "command": format!("mkfifo {pipe}") }));
        let steps = vec![tool, Step::text("Done.")];
        daemon.endpoint.on(&words, steps);
        daemon.cmd(&["send", "coder", &words]).expect(code);
        assert_eq!(daemon.cwd("coder").join(pipe).exists(), code == 0);
        if code == 5 {
            daemon.cmd(&["confirm", "coder", "no"]).expect(0);
            daemon.wait_state("coder", "idle");
            daemon.cmd(&["reload"]).expect(0);
        }
    }
}
