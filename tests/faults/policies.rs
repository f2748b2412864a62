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
    let not_taken = "the policy docs on the disk may allow more, and that waits: missiond reload";
    assert!(status.stdout.contains(not_taken), "{status}");
    let up = daemon.cmd(&["up"]).expect(0);
    assert!(up.stdout.contains(not_taken), "{up}");
    let events = daemon.cmd(&["events", "--after", "0"]).expect(0);
    let told = "policy docs: stricter rules are in force; the changes that may allow more wait for missiond reload: ";
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
    assert!(!daemon.cmd(&["status"]).stdout.contains("are unknown"));
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
        let unknown = "the policies that were in force before are unknown";
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

/// What is stricter in an edit holds at once, and what allows more waits.
#[test]
fn a_deny_that_comes_with_an_allowance_holds_before_a_reload() {
    let daemon = daemon();
    write(
        &daemon,
        "allow = [\"Bash(ls *)\", \"Bash(make *)\"]\nask = [\"Bash(git push *)\"]\ndeny = [\"Bash(ls /etc)\"]\n",
    );
    let shown = crate::support::until("the edit to be seen", || {
        let shown = daemon.json(&["policy", "show", "docs"]);
        (shown["waits"] == true).then_some(shown)
    });
    assert_eq!(shown["waiting"], json!(["allow Bash(make *)"]), "{shown}");
    let stricter = shown["stricter"].as_array().expect("rules");
    assert_eq!(stricter.len(), 1, "{shown}");
    assert_eq!(stricter[0]["rule"], "Bash(ls /etc)", "{shown}");
    let told = daemon.cmd(&["policy", "show", "docs"]).expect(0);
    assert!(told.stdout.contains("Bash(ls /etc)"), "{told}");
    assert!(!told.stdout.contains("make"), "{told}");
    assert!(told.stderr.contains("allow Bash(make *)"), "{told}");
    // Explained is what the daemon does now.
    let explained = |command: &str| {
        let told = daemon.json(&["policy", "explain", "docs", command]);
        told["verdict"].as_str().expect("a verdict").to_owned()
    };
    assert_eq!(explained("make all"), "ask");
    assert_eq!(explained("ls /etc"), "deny");
    daemon.cmd(&["reload"]).expect(0);
    let shown = daemon.json(&["policy", "show", "docs"]);
    assert_eq!(shown["waits"], false, "{shown}");
    assert!(shown["rules"].to_string().contains("make"), "{shown}");
    assert_eq!(explained("make all"), "allow");
}

/// What is shown is what holds, with the file that it was read from.
#[test]
fn a_program_keeps_the_rules_of_the_role_and_the_file_in_which_it_was_started() {
    let setup = Setup::new()
        .slot("lives")
        .slot_with("other", "autostart = false")
        .policy("lives", "deny = [\"Bash(rm *)\"]\n")
        .policy("other", "allow = [\"Bash(ls *)\"]\n");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("lives", "idle");
    let edit = |daemon: &Daemon, from: &str, to: &str| {
        let text = fs::read_to_string(daemon.config()).expect("a config");
        assert!(text.contains(from), "{text}");
        fs::write(daemon.config(), text.replacen(from, to, 1)).expect("a config");
    };
    edit(&daemon, "role = \"lives\"", "role = \"other\"");
    let is_changed = |shown: &serde_json::Value| shown["next_role"] == "other";
    let shown = crate::support::until("the other role", || {
        Some(daemon.json(&["policy", "show", "lives"])).filter(is_changed)
    });
    let rules = shown["rules"].to_string();
    assert_eq!(shown["role"], "lives", "{shown}");
    assert!(rules.contains("rm *") && !rules.contains("ls *"), "{shown}");
    let told = daemon.cmd(&["policy", "show", "lives"]).expect(0);
    assert!(told.stderr.contains("missiond restart lives"), "{told}");

    // Another directory of policies, whose file allows more: what holds was read from the one before.
    edit(&daemon, "role = \"other\"", "role = \"lives\"");
    daemon.crash();
    let moved = daemon.root().join("moved");
    fs::create_dir(&moved).expect("a directory");
    fs::write(moved.join("lives.toml"), "# nothing\n\n\n").expect("a policy");
    fs::write(moved.join("other.toml"), "").expect("a policy");
    edit(&daemon, "policies = \"policies\"", "policies = \"moved\"");
    daemon.again();
    let shown = daemon.json(&["policy", "show", "lives"]);
    let before = daemon.root().join("policies/lives.toml");
    assert_eq!(shown["waits"], true, "{shown}");
    assert_eq!(shown["rules"][0]["file"], json!(before), "{shown}");
    assert_eq!(shown["rules"][0]["line"], 1, "{shown}");
}

/// The same at the gate of the real Claude Code, with a program that it has no checks of its own for: only then does the gate
/// say that a rule allows it which is newer than Claude Code's settings.
#[test]
fn claude_code_is_judged_by_the_rules_in_force_before_the_daemon_was_killed() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let file = daemon.config().with_file_name("policies/coder.toml");
    daemon.crash();
    fs::write(file, "allow = [\"Bash(mknod *)\"]\n").expect("a policy");
    daemon.again();
    daemon.wait_state("coder", "idle");
    for (pipe, code) in [("early", 5), ("late", 0)] {
        let words = format!("please make {pipe}");
        let tool = Step::tool("Bash", json!({ "command": format!("mknod {pipe} p") }));
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

/// Claude Code has its deny rules from its start. One that was taken out holds on, and that is said.
#[test]
fn a_deny_rule_that_was_taken_out_is_named_until_the_program_is_started_again() {
    let setup = Setup::new()
        .slot("coder")
        .policy("coder", "deny = [\"Bash(make *)\", \"Bash(rm *)\"]\n");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    assert_eq!(daemon.status("coder")["changed"], false);
    let file = daemon.config().with_file_name("policies/coder.toml");
    fs::write(
        file,
        "allow = [\"Bash(make *)\"]\ndeny = [\"Bash(rm *)\"]\n",
    )
    .expect("a policy");
    daemon.cmd(&["reload"]).expect(0);
    let unshared = "allow Bash(make *)";
    let denied = "no longer deny Bash(make *)";
    let status = daemon.status("coder");
    assert_eq!(status["new_settings"], json!([denied, unshared]));
    let log = daemon.log("coder");
    for told in ["obeys them", "may ask by itself about what they allow"] {
        let told = format!("{told} until missiond restart coder: Bash(make *)");
        assert!(log.contains(&told), "{log}");
    }
    let still_denied = |daemon: &Daemon| {
        let status = daemon.status("coder");
        let named = status["new_settings"].as_array().expect("names");
        assert!(named.contains(&json!(denied)), "{status}");
    };
    daemon.crash();
    daemon.again();
    daemon.wait_state("coder", "idle");
    still_denied(&daemon);
    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(daemon.status("coder")["changed"], false);
}
