//! What is known of a permission dialog outlives the daemon that has judged its call.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};

const POLICY: &str = "\
default = \"claude\"
allow = [\"Edit(**)\"]
ask = [\"Bash(mkfifo *)\"]
";

/// Claude Code asks about a call, and missiond has judged it.
fn asked(daemon: &Daemon, prompt: &str, tool: &str, input: &Value) -> Value {
    let steps = vec![Step::tool(tool, input.clone()), Step::text("It is done.")];
    daemon.endpoint.on(prompt, steps);
    daemon.cmd(&["send", "coder", prompt]).expect(5);
    known(daemon)
}

/// All that missiond says of the dialog, once it has found out what `always` would do.
fn known(daemon: &Daemon) -> Value {
    until("all that is known of the dialog", || {
        let waiting = daemon.json(&["pending"])[0].take();
        let is_whole = waiting["why"].is_string() && waiting["always"].is_object();
        let mut dialog = daemon.status("coder")["dialog"].take();
        // The mark moves with keys, and is no part of what is asked.
        dialog["selected"].take();
        is_whole.then(|| {
            json!({
                "why": waiting["why"],
                "always": waiting["always"],
                "doubtful": waiting["doubtful"],
                "calls": waiting["waiting_calls"],
                "dialog": dialog,
            })
        })
    })
}

/// Kills the daemon under a standing dialog, and starts another one.
fn killed(daemon: &mut Daemon) {
    daemon.crash();
    daemon.again();
    daemon.wait_state("coder", "confirming");
}

/// An idle slot whose screen is too low for a long command.
fn at_a_low_screen() -> Option<Daemon> {
    let setup = Setup::new()
        .slot_with("coder", "rows = 20")
        .policy("coder", POLICY);
    let daemon = Daemon::start(&setup)?;
    daemon.wait_state("coder", "idle");
    Some(daemon)
}

/// The input of a call that is not whole on a low screen.
fn long_call() -> Value {
    let names: Vec<String> = (0..200).map(|n| format!("pipe-{n}")).collect();
    json!({"command": format!("mkfifo {}", names.join(" "))})
}

#[test]
fn what_is_known_of_a_dialog_outlives_the_daemon() {
    let Some(mut daemon) = at_a_low_screen() else {
        return;
    };
    let long = long_call();
    let secret = json!({"command": "mkfifo sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"});
    let path = daemon.cwd("coder").join("new.txt");
    let unmarked = json!({"command": format!("touch {}", path.display())});
    let protected = daemon.cwd("coder").join(".git/config");
    let protected = json!({"file_path": protected, "content": "x"});
    for (prompt, tool, input, why) in [
        ("a long one", "Bash", long, "Bash(mkfifo *)"),
        ("one with a secret", "Bash", secret, "Bash(mkfifo *)"),
        ("one without a mark", "Bash", unmarked, "no rule"),
        (
            "one that is protected",
            "Write",
            protected,
            "a protected path",
        ),
    ] {
        let before = asked(&daemon, prompt, tool, &input);
        assert_eq!(before["dialog"]["input"], input, "{before}");
        assert!(before["why"].to_string().contains(why), "{before}");
        for round in 0..2 {
            killed(&mut daemon);
            assert_eq!(known(&daemon), before, "{prompt}, round {round}");
            let told = daemon.cmd(&["why", "coder"]).expect(0);
            assert!(!told.stdout.contains("has not seen"), "{told}");
        }
        daemon.cmd(&["confirm", "coder", "no"]).expect(0);
        daemon.wait_state("coder", "idle");
    }
    // Nothing of a call is kept on the disk but what the audit has, with its secrets masked.
    let masked = "abcdefghijklmnopqrstuvwxyz0123456789";
    assert!(!daemon.logged("audit.jsonl").contains(masked));
    let kept = daemon.in_shell(
        daemon.root(),
        &format!("grep -rl {masked} state run || true"),
    );
    assert_eq!(kept.stdout, "", "{kept}");
    let log = daemon.log("coder");
    assert!(!log.contains("tampered") && !log.contains("older"), "{log}");
}

/// The next daemon judges by its own rules, and answers with the whole call.
#[test]
fn a_call_that_outlived_its_daemon_is_answered_with_its_whole_input() {
    let Some(mut daemon) = at_a_low_screen() else {
        return;
    };
    let input = long_call();
    asked(&daemon, "make many", "Bash", &input);
    daemon.crash();
    let stricter = format!("{POLICY}deny = [\"Bash(mkfifo pipe-0 *)\"]\n");
    std::fs::write(daemon.root().join("policies/coder.toml"), stricter).expect("a file");
    daemon.again();
    daemon.wait_state("coder", "confirming");
    let why = known(&daemon)["why"].to_string();
    assert!(
        why.contains("this dialog is older and waits for you: the rules would say no"),
        "{why}"
    );
    let refused = daemon.cmd(&["confirm", "coder", "yes"]).expect(4);
    assert!(
        refused.stderr.contains("Bash(mkfifo pipe-0 *)"),
        "{refused}"
    );
    assert!(!daemon.cwd("coder").join("pipe-0").exists());
    let insists = ["confirm", "coder", "yes", "--against-rule"];
    daemon.cmd(&insists).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("pipe-199").exists());
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let verdicts: Vec<Value> = entries.filter(|entry| entry["tool"] == "Bash").collect();
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert_eq!(verdicts[1]["by"], "person", "{verdicts:?}");
    assert_eq!(verdicts[1]["partial"], Value::Null, "{verdicts:?}");
    assert_eq!(verdicts[1]["input_hash"], verdicts[0]["input_hash"]);
    let log = daemon.log("coder");
    assert!(!log.contains("tampered"), "{log}");
}
