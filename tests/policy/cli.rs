//! `missiond policy` as people and scripts meet it.

use assert_cmd::Command;
use serde_json::{Value, json};
use std::path::Path;

const POLICY: &str =
    "allow = [\n  \"Bash(cargo test *)\",\n]\ndeny = [\"Bash(git push *)\", \"Read(./.env)\"]\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(text: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary directory"));
        std::fs::write(folder.0.path().join("p.toml"), text).expect("a policy");
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn policy(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("missiond").expect("the program");
        command
            .env_clear()
            .env("HOME", self.path())
            .current_dir(self.path())
            .arg("policy")
            .args(arguments);
        command
    }
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().expect("it ran");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn check_is_quiet_about_a_good_file_and_clear_about_a_bad_one() {
    let folder = Folder::with(POLICY);
    folder
        .policy(&["check", "p.toml"])
        .assert()
        .success()
        .stdout("p.toml: good\n");
    let folder = Folder::with("allow = [\"*\"]\n");
    let output = folder
        .policy(&["check", "p.toml"])
        .output()
        .expect("it ran");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("p.toml:1:10") && stderr.contains("allow = [\"*\"]"),
        "{stderr}"
    );
    folder.policy(&["check", "gone.toml"]).assert().code(2);
}

/// The directory of a call is not the slot's directory: rules are relative to the latter, paths to the former.
#[test]
fn explain_knows_where_a_call_runs() {
    let folder = Folder::with(
        "allow = [\"Bash(cat *)\", \"Read\"]\ndeny = [\"Read(./.env)\", \"Read(web/key)\"]\n",
    );
    let slot = folder.path().join("app");
    std::fs::create_dir_all(slot.join("web")).expect("a directory");
    let lines = [
        json!({ "tool": "Bash", "input": { "command": "cat ../.env" }, "cwd": slot.join("web") }),
        json!({ "tool": "Bash", "input": { "command": "cat key" }, "cwd": "web" }),
        json!({ "tool": "Read", "input": { "file_path": "../.env" }, "cwd": "web" }),
        json!({ "tool": "Bash", "input": { "command": "cat .env" }, "cwd": "web" }),
        json!({ "tool": "Bash", "input": { "command": "cat x" }, "cwd": folder.path() }),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let verdicts = |arguments: &[&str]| -> Vec<String> {
        let said = stdout(folder.policy(arguments).write_stdin(lines.clone()));
        let verdict = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("an answer");
            line["verdict"].as_str().unwrap_or_default().to_owned()
        };
        said.lines().map(verdict).collect()
    };
    let known = verdicts(&["explain", "--policy", "p.toml", "--cwd", "app", "-"]);
    assert_eq!(known, ["deny", "deny", "deny", "allow", "ask"]);
    // Without a slot's directory, that of the call is taken for it.
    let unknown = verdicts(&["explain", "--policy", "p.toml", "-"]);
    assert_eq!(
        [&unknown[0], &unknown[1], &unknown[3]],
        ["allow", "allow", "deny"]
    );
}

/// A slot's name is enough: its policy, its directory and its worktree are those of the config.
#[test]
fn explain_takes_a_slot_and_a_command() {
    let folder = Folder::with(POLICY);
    let at = |below: &str| folder.path().join(below);
    std::fs::create_dir_all(at(".config/missiond/policies")).expect("a directory");
    std::fs::create_dir_all(at("app/.git")).expect("a directory");
    let policy = "default = \"deny\"\nallow = [\"Bash(cargo test *)\", \"Edit(src/**)\"]\n";
    std::fs::write(at(".config/missiond/policies/coder.toml"), policy).expect("a file");
    let slots = "[defaults]\nrole = \"coder\"\ncwd = \"../../app\"\n[[slot]]\nname = \"coder\"\n\
                 [[slot]]\nname = \"apart\"\nworktree = true\n";
    std::fs::write(at(".config/missiond/slots.toml"), slots).expect("a file");
    let verdict = |arguments: &[&str]| {
        let arguments = [&["explain"], arguments].concat();
        let said = stdout(&mut folder.policy(&arguments));
        said.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        verdict(&["coder", "cargo test && cargo test --lib"]),
        "allow"
    );
    assert_eq!(verdict(&["coder", "cargo build"]), "deny");
    // The calls of lines too, by the slot's name alone.
    let lines = ["cargo test", "cargo build"];
    let lines = lines.map(|line| json!({"tool": "Bash", "input": {"command": line}}).to_string());
    for arguments in [
        ["explain", "-", "--slot", "coder"],
        ["explain", "--slot", "coder", "-"],
    ] {
        let said = stdout(folder.policy(&arguments).write_stdin(lines.join("\n")));
        let said = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let verdicts: Vec<Value> = said.map(|said| said["verdict"].clone()).collect();
        assert_eq!(verdicts, ["allow", "deny"], "{arguments:?}");
    }
    let edit = |slot: &str, path: &str| {
        let input = format!(r#"{{"file_path":"{path}"}}"#);
        verdict(&[slot, "--tool", "Edit", "--input", &input])
    };
    let in_repository = at("app/src/a.rs").display().to_string();
    let in_worktree = at(".local/share/missiond/worktrees/app/apart/src/a.rs");
    let in_worktree = in_worktree.display().to_string();
    assert_eq!(edit("coder", &in_repository), "allow");
    assert_eq!(edit("apart", &in_worktree), "allow");
    assert_eq!(edit("apart", &in_repository), "deny");
    for wrong in [
        &["coder"][..],
        &["cargo test"],
        &["nobody", "ls"],
        &["-", "ls"],
        &["--tool", "Bash"],
        &["coder", "ls", "--tool", "Bash"],
    ] {
        let arguments = [&["explain"], wrong].concat();
        folder.policy(&arguments).assert().code(2);
    }
}

#[test]
fn explain_shows_each_part_with_its_rule_and_line() {
    let folder = Folder::with(POLICY);
    let call = r#"{"command":"cargo test && git push"}"#;
    let shown = stdout(&mut folder.policy(&[
        "explain", "--policy", "p.toml", "--tool", "Bash", "--input", call,
    ]));
    assert_eq!(
        shown,
        "deny   `git push`: denied by Bash(git push *) (the strictest part wins)\n\
         \x20 cargo test  allow  Bash(cargo test *)  p.toml:2\n\
         \x20 git push    deny   Bash(git push *)  p.toml:4\n"
    );
    let one = r#"{"command":"ls"}"#;
    let shown = stdout(&mut folder.policy(&[
        "explain", "--policy", "p.toml", "--tool", "Bash", "--input", one,
    ]));
    assert_eq!(
        shown,
        "none   no rule speaks about it, and it only reads inside the slot's directory; \
         Claude Code's own rules decide\n"
    );
}

#[test]
fn explain_answers_as_the_gate_does_in_a_mode() {
    let folder = Folder::with(POLICY);
    let calls = [r#"{"command":"ls"}"#, r#"{"command":"mkfifo x"}"#];
    for (mode, expected) in [
        ("manual", ["none", "ask"]),
        ("default", ["none", "ask"]),
        ("acceptEdits", ["none", "ask"]),
        ("bypassPermissions", ["none", "deny"]),
    ] {
        for (call, expected) in calls.into_iter().zip(expected) {
            let shown = stdout(&mut folder.policy(&[
                "explain", "--policy", "p.toml", "--mode", mode, "--tool", "Bash", "--input", call,
            ]));
            assert!(shown.starts_with(expected), "{call} in {mode}: {shown}");
            let says_why = shown.contains("although a hook says ask");
            assert_eq!(says_why, expected == "deny", "{call} in {mode}: {shown}");
        }
    }
}

#[test]
fn explain_answers_lines_one_by_one() {
    let folder = Folder::with(POLICY);
    std::os::unix::fs::symlink(".env", folder.path().join("link")).expect("a link");
    let lines = "{\"tool\":\"Bash\",\"input\":{\"command\":\"cargo test\"}}\n\nnonsense\n{\"tool\":\"Read\",\"input\":{\"file_path\":\"link\"}}\n{\"tool\":\"LSP\"}";
    let output = folder
        .policy(&["explain", "--policy", "p.toml", "-"])
        .write_stdin(lines)
        .output()
        .expect("it ran");
    assert_eq!(output.status.code(), Some(2));
    let answers: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(answers.len(), 5, "one for each line");
    let allowed = json!({
        "verdict": "allow", "rule": "Bash(cargo test *)", "why": "allowed by Bash(cargo test *)", "file": "p.toml", "line": 2,
    });
    assert_eq!(answers[0], allowed);
    for (answer, start) in [
        (&answers[1], "line 2: it is empty"),
        (&answers[2], "line 3: "),
    ] {
        assert_eq!(answer["verdict"], "ask", "{answer}");
        let error = answer["error"].as_str().expect("an error");
        assert!(error.starts_with(start), "{answer}");
    }
    assert_eq!(
        (&answers[3]["verdict"], &answers[3]["line"]),
        (&json!("deny"), &json!(4))
    );
    assert_eq!(
        (&answers[4]["verdict"], &answers[4]["rule"]),
        (&json!("ask"), &Value::Null)
    );
}

#[test]
fn a_policy_that_does_not_load_decides_nothing() {
    let folder = Folder::with("allow = [\"mcp__*\"]\n");
    let output = folder
        .policy(&["explain", "--policy", "p.toml", "-"])
        .write_stdin("{\"tool\":\"mcp__a__b\"}\n")
        .output()
        .expect("it ran");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(2), &b""[..])
    );
}

#[test]
fn wrong_usage_is_told() {
    let folder = Folder::with(POLICY);
    folder
        .policy(&["explain", "--policy", "p.toml"])
        .assert()
        .code(2);
    folder
        .policy(&[
            "explain", "--policy", "p.toml", "--tool", "Bash", "--input", "[]",
        ])
        .assert()
        .code(2);
}

#[test]
fn explain_protects_what_the_daemon_of_the_config_protects() {
    let folder =
        Folder::with("allow = [\"Write\", \"Edit(**)\", \"Bash(cp *)\", \"Bash(tee *)\"]\n");
    std::fs::write(folder.path().join("slots.toml"), "[daemon]\nname = \"x\"\n").expect("a config");
    // The lock of another daemon names its config, and that its policies.
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "[daemon]\npolicies = \"others\"\n").expect("a config");
    let state = folder.path().join(".local/state/missiond");
    std::fs::create_dir_all(&state).expect("a directory");
    let holder = json!({"pid": 1, "socket": "/s", "config": other});
    std::fs::write(state.join("other.lock"), holder.to_string()).expect("a lock");
    let calls = [
        json!({"tool": "Write", "input": {"file_path": "other.toml"}}),
        json!({"tool": "Write", "input": {"file_path": "others/coder.toml"}}),
        json!({"tool": "Write", "input": {"file_path": ".local/state/missiond/trusted-folders.json"}}),
        json!({"tool": "Write", "input": {"file_path": "slots.toml"}}),
        json!({"tool": "Write", "input": {"file_path": "policies/x.toml"}}),
        json!({"tool": "Write", "input": {"file_path": "logs/audit.jsonl"}}),
        json!({"tool": "Write", "input": {"file_path": ".local/state/missiond/x/a.json"}}),
        json!({"tool": "Bash", "input": {"command": "cp src/slots.toml slots.toml"}}),
        json!({"tool": "Bash", "input": {"command": "cp src/slots.toml ."}}),
        json!({"tool": "Bash", "input": {"command": "tee slots.toml"}}),
        json!({"tool": "Write", "input": {"file_path": "p.toml"}}),
        json!({"tool": "Write", "input": {"file_path": "src/a.rs"}}),
    ];
    let lines: Vec<String> = calls.iter().map(Value::to_string).collect();
    let verdicts = |command: &mut Command| -> Vec<String> {
        let output = command
            .write_stdin(lines.join("\n"))
            .output()
            .expect("it ran");
        let text = String::from_utf8(output.stdout).expect("text");
        let verdict = |line: &str| {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            answer["verdict"].as_str().expect("a verdict").to_owned()
        };
        text.lines().map(verdict).collect()
    };
    let explain = ["explain", "--policy", "p.toml", "-"];
    let named = ["explain", "-c", "slots.toml", "--policy", "p.toml", "-"];
    let mut protected = vec!["ask"; 11];
    protected.push("allow");
    assert_eq!(verdicts(&mut folder.policy(&named)), protected);
    let mut by_environment = folder.policy(&explain);
    by_environment.env("MISSIOND_CONFIG", folder.path().join("slots.toml"));
    assert_eq!(verdicts(&mut by_environment), protected);
    let mut bare = vec!["allow"; 10];
    bare.extend(["ask", "allow"]);
    assert_eq!(verdicts(&mut folder.policy(&explain)), bare);
    let gone = ["explain", "-c", "gone.toml", "--policy", "p.toml", "-"];
    folder.policy(&gone).assert().code(2);
}

#[test]
fn check_names_rules_that_can_never_allow() {
    let folder = Folder::with("allow = [\n  \"Bash(git *)\",\n  \"Bash(sqlite3 app.db *)\",\n]\n");
    let output = folder
        .policy(&["check", "p.toml"])
        .output()
        .expect("it ran");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let hint = "p.toml:3: Bash(sqlite3 app.db *) can never allow: sqlite3 ";
    assert!(
        stderr.starts_with(hint) && stderr.lines().count() == 1,
        "{stderr}"
    );
    let shown = stdout(&mut folder.policy(&["--json", "check", "p.toml"]));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["hints"][0]["line"], 3, "{shown}");
}
