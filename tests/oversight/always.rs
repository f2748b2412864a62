//! `confirm always` on the real Claude Code: it adds a rule where that changes anything, and says why where it does
//! not. New rules are applied to dialogs that wait.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const POLICY: &str = "default = \"ask\"\nask = [\"Bash(mkfifo pub*)\"]\n";
const ASKS: &str = "`Bash(mkfifo pub*)` in coder.toml:2 asks, and ask beats allow";

fn asks_for(daemon: &Daemon, command: &str) -> Value {
    let words = format!("please run {command}");
    let tool = Step::tool("Bash", json!({ "command": command }));
    daemon.endpoint.on(&words, vec![tool, Step::text("Done.")]);
    daemon.cmd(&["send", "coder", &words]).expect(5);
    pending(daemon)
}

fn pending(daemon: &Daemon) -> Value {
    daemon.json(&["pending"])[0].take()
}

fn policy_file(daemon: &Daemon) -> PathBuf {
    daemon.config().with_file_name("policies/coder.toml")
}

#[test]
fn always_says_what_holds_and_a_reload_judges_what_waits() {
    let setup = Setup::new().slot("coder").policy("coder", POLICY);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    a_rule_that_an_ask_rule_beats_is_not_added(&daemon);
    a_reload_is_seen_at_the_dialog_that_waits(&daemon);
    a_rule_that_helps_is_added(&daemon);
    a_rule_that_breaks_an_example_is_not_added(&daemon);
}

fn a_rule_that_an_ask_rule_beats_is_not_added(daemon: &Daemon) {
    let waiting = asks_for(daemon, "mkfifo public");
    let expected = json!({"rule": null, "why_not": ASKS});
    assert_eq!(waiting["always"], expected, "{waiting}");
    let shown = daemon.cmd(&["pending"]).expect(0);
    assert!(!shown.stdout.contains("confirm coder always"), "{shown}");
    assert!(shown.stdout.contains(ASKS), "{shown}");

    let answer = daemon.json(&["confirm", "coder", "always"]);
    assert_eq!(answer["this_once"], ASKS, "{answer}");
    assert_eq!(answer["rule"], Value::Null, "{answer}");
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("public").exists());
    let text = fs::read_to_string(policy_file(daemon)).expect("a policy");
    assert_eq!(text, POLICY, "no rule was added");
}

fn a_reload_is_seen_at_the_dialog_that_waits(daemon: &Daemon) {
    let waiting = asks_for(daemon, "mkfifo own");
    assert_eq!(waiting["always"]["rule"], "Bash(mkfifo own)", "{waiting}");
    let denies = format!("{POLICY}deny = [\"Bash(mkfifo own)\"]\n");
    fs::write(policy_file(daemon), denies).expect("a policy");
    daemon.cmd(&["reload"]).expect(0);
    let again = until("the new verdict", || {
        let again = pending(daemon);
        let why = again["why"].as_str()?;
        why.contains("denied by Bash(mkfifo own)").then_some(again)
    });
    assert_eq!(again["dialog"]["id"], waiting["dialog"]["id"]);
    let why_not = "`Bash(mkfifo own)` in coder.toml:3 denies, and deny beats allow";
    assert_eq!(again["always"]["why_not"], why_not, "{again}");
    let why = daemon.cmd(&["why", "coder"]).expect(0);
    assert!(why.stdout.contains("denied by Bash(mkfifo own)"), "{why}");

    // The other way round: a rule allows it by now, but Claude Code was told to ask.
    let allows = format!("{POLICY}allow = [\"Bash(mkfifo own)\"]\n");
    fs::write(policy_file(daemon), allows).expect("a policy");
    daemon.cmd(&["reload"]).expect(0);
    let shown = until("the new verdict", || {
        let shown = daemon.cmd(&["pending"]).expect(0);
        let is_new = shown.stdout.contains("allowed by Bash(mkfifo own)");
        is_new.then_some(shown)
    });
    let older = "this dialog is older and waits for you: the rules would say yes";
    let why = daemon.cmd(&["why", "coder"]).expect(0);
    assert!(shown.stdout.contains(older), "{shown}");
    assert!(why.stdout.contains(older), "{why}");
    let no_rule = "`always` would add no rule: allowed by Bash(mkfifo own) already";
    assert!(shown.stdout.contains(no_rule), "{shown}");
    assert!(!shown.stdout.contains("asks by itself"), "{shown}");
    assert!(!daemon.cwd("coder").join("own").exists());
}

fn a_rule_that_helps_is_added(daemon: &Daemon) {
    fs::write(policy_file(daemon), POLICY).expect("a policy");
    daemon.cmd(&["reload"]).expect(0);
    until("the old verdict", || {
        let waiting = pending(daemon);
        (waiting["always"]["rule"] == "Bash(mkfifo own)").then_some(())
    });
    let shown = daemon.cmd(&["pending"]).expect(0);
    assert!(shown.stdout.contains("confirm coder always"), "{shown}");
    let answer = daemon.cmd(&["confirm", "coder", "always"]).expect(0);
    assert!(
        answer.stdout.contains("rule added: Bash(mkfifo own)"),
        "{answer}"
    );
    daemon.wait_state("coder", "idle");
    let text = fs::read_to_string(policy_file(daemon)).expect("a policy");
    assert!(text.contains("Bash(mkfifo own)"), "{text}");
}

fn a_rule_that_breaks_an_example_is_not_added(daemon: &Daemon) {
    let example =
        "\n[[example]]\ntool = \"Bash\"\ninput.command = \"mkfifo kept\"\nverdict = \"ask\"\n";
    let policy = format!("{POLICY}{example}");
    fs::write(policy_file(daemon), &policy).expect("a policy");
    daemon.cmd(&["reload"]).expect(0);
    let breaks =
        "the example at coder.toml:7 says `ask`, which a rule that allows the call would break";
    let waiting = asks_for(daemon, "mkfifo kept");
    let expected = json!({"rule": null, "why_not": breaks});
    assert_eq!(waiting["always"], expected, "{waiting}");
    let answer = daemon.json(&["confirm", "coder", "always"]);
    assert_eq!(answer["this_once"], breaks, "{answer}");
    daemon.wait_state("coder", "idle");
    let text = fs::read_to_string(policy_file(daemon)).expect("a policy");
    assert_eq!(text, policy, "no rule was added");
    daemon.cmd(&["reload"]).expect(0);
}
