//! bypassPermissions on the real Claude Code, which runs some calls there although a hook says ask.

use super::inside::audit;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::fs;

const MODE: &str = "mode = \"bypassPermissions\"\nautostart = false";
const POLICY: &str = "\
allow = [\"Bash(mkfifo *)\"]
ask = [\"Bash(git push *)\"]
";

#[test]
fn in_bypass_permissions_nothing_runs_that_needs_a_person() {
    let setup = Setup::new()
        .slot_with("coder", MODE)
        .policy("coder", POLICY);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let cwd = daemon.cwd("coder");
    for directory in [".git/hooks", ".claude"] {
        fs::create_dir_all(cwd.join(directory)).expect("a directory");
    }
    // Claude Code would ask whether this mode is meant.
    let accepted = json!({"skipDangerousModePermissionPrompt": true});
    let own = daemon.home().join(".claude");
    fs::create_dir_all(&own).expect("a directory");
    fs::write(own.join("settings.json"), accepted.to_string()).expect("a file");
    daemon.cmd(&["start", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let write = |path: &str| {
        let input = json!({"file_path": cwd.join(path), "content": "{}"});
        ("Write", input, path.to_owned())
    };
    let run = |command: &str, path: &str| ("Bash", json!({ "command": command }), path.to_owned());
    let calls = [
        write(".git/m3"),
        run("touch .git/hooks/m5", ".git/hooks/m5"),
        write(".claude/settings.json"),
        run("git push; echo hi > .git/m7", ".git/m7"),
        write("ordinary.txt"),
    ];
    for (tool, input, path) in calls {
        let words = format!("make {path}");
        let steps = vec![Step::tool(tool, input.clone()), Step::text("I tried.")];
        daemon.endpoint.on(&words, steps);
        let answer = daemon.cmd(&["send", "coder", &words]).expect(0);
        assert_eq!(answer.text(), "I tried.", "{path}");
        assert!(!cwd.join(&path).exists(), "{path} was made");
        let judged = audit(&daemon)
            .into_iter()
            .rfind(|entry| entry["input"] == input);
        let judged = judged.unwrap_or_else(|| panic!("no verdict on {input}"));
        assert_eq!(judged["answer"], "deny", "{judged}");
        let why = judged["why"].as_str().expect("a reason");
        assert!(why.contains("although a hook says ask"), "{why}");
    }
    assert_eq!(daemon.status("coder")["mode"], "bypassPermissions");
    let health = daemon.cmd(&["doctor"]);
    assert!(
        health.stdout.contains("coder: in bypassPermissions"),
        "{health}"
    );

    // What only reads the project needs nobody, and no rule.
    fs::write(cwd.join("notes"), "of the project").expect("a file");
    for (tool, input) in [
        ("Read", json!({"file_path": cwd.join("notes")})),
        ("Bash", json!({"command": "cat notes"})),
    ] {
        let words = format!("read it with {tool}");
        let steps = vec![Step::tool(tool, input.clone()), Step::text("I read it.")];
        daemon.endpoint.on(&words, steps);
        daemon.cmd(&["send", "coder", &words]).expect(0);
        let judged = audit(&daemon)
            .into_iter()
            .rfind(|entry| entry["input"] == input);
        let judged = judged.unwrap_or_else(|| panic!("no verdict on {input}"));
        assert_eq!(judged["answer"], "none", "{judged}");
        let requests = daemon.endpoint.requests();
        let last = requests.last().expect("a request").body.to_string();
        let read = last.rsplit(&words).next().unwrap_or_default();
        assert!(read.contains("of the project"), "{read}");
    }

    // What a rule allows runs.
    let tool = Step::tool("Bash", json!({"command": "mkfifo pipe"}));
    daemon
        .endpoint
        .on("make a pipe", vec![tool, Step::text("I did.")]);
    daemon.cmd(&["send", "coder", "make a pipe"]).expect(0);
    assert!(cwd.join("pipe").exists());
}
