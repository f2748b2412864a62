//! `config`, `init` and `doctor` as a person runs them, with an environment of their own.

use assert_cmd::Command;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A user with a home directory and a `claude` that only knows its version.
pub struct User {
    home: tempfile::TempDir,
}

impl User {
    pub fn new() -> User {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        let user = User { home };
        user.install("2.1.325");
        user
    }

    fn install(&self, version: &str) {
        let claude = self.path("bin/claude");
        fs::write(
            &claude,
            format!("#!/bin/sh\necho '{version} (Claude Code)'\n"),
        )
        .unwrap();
        fs::set_permissions(&claude, Permissions::from_mode(0o755)).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn missiond(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("missiond").unwrap();
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .current_dir(self.path("project"))
            .args(args);
        command
    }

    pub fn json(&self, args: &[&str], code: i32) -> Value {
        let output = self.missiond(args).arg("--json").assert().code(code);
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    }
}

pub fn stderr(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code);
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

#[test]
fn init_writes_what_check_and_doctor_find_good() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let slots = user.path(".config/missiond/slots.toml");
    let checked = user.json(&["config", "check"], 0);
    assert_eq!(checked["ok"], true);
    assert_eq!(checked["file"], slots.to_str().unwrap());
    assert_eq!(
        checked["slots"],
        serde_json::json!(["reader", "coder", "reviewer"])
    );
    let health = user.json(&["doctor"], 0);
    assert_eq!(health["ok"], true, "{health}");
    let shown = user.json(&["config", "show"], 0);
    let project = user.path("project").canonicalize().unwrap();
    assert_eq!(shown["slot"][0]["cwd"], project.to_str().unwrap());
}

#[test]
fn init_leaves_what_is_there_alone() {
    let user = User::new();
    fs::create_dir_all(user.path("fleet/policies")).unwrap();
    fs::write(user.path("fleet/policies/coder.toml"), "# mine\n").unwrap();
    user.missiond(&["init", "../fleet"]).assert().success();
    let kept = fs::read_to_string(user.path("fleet/policies/coder.toml")).unwrap();
    assert_eq!(kept, "# mine\n");
    fs::write(user.path("fleet/slots.toml"), "# mine too\n").unwrap();
    let refusal = stderr(&mut user.missiond(&["init", "../fleet"]), 4);
    assert!(refusal.contains("is there already"), "{refusal}");
    let kept = fs::read_to_string(user.path("fleet/slots.toml")).unwrap();
    assert_eq!(kept, "# mine too\n");
}

#[test]
fn init_replaces_what_is_there_only_when_told_to() {
    let user = User::new();
    let slots = user.path("fleet/slots.toml");
    fs::create_dir_all(user.path("fleet")).unwrap();
    fs::write(&slots, "# mine\n").unwrap();
    let flags = ["init", "../fleet", "--roles", "coder", "--force"];
    user.missiond(&flags).assert().success();
    let old = fs::read_to_string(user.path("fleet/slots.toml.old")).unwrap();
    assert_eq!(old, "# mine\n");
    let checked = user.json(&["config", "check", "-c", "../fleet/slots.toml"], 0);
    assert_eq!(checked["slots"], serde_json::json!(["coder"]));
    let refusal = stderr(
        &mut user.missiond(&["init", "../new", "--roles", "cook"]),
        2,
    );
    assert!(refusal.contains("reviewer"), "{refusal}");
}

#[test]
fn check_shows_every_fault_and_ends_with_2() {
    let user = User::new();
    let slots = user.path("project/slots.toml");
    fs::write(
        &slots,
        "[[slot]]\nname = \"A\"\nkind = \"shell\"\nsize = 3\n",
    )
    .unwrap();
    let shown = stderr(
        &mut user.missiond(&["config", "check", "-c", "slots.toml"]),
        2,
    );
    assert!(shown.contains(" --> slots.toml:2:8"), "{shown}");
    assert!(shown.contains("4 faults in slots.toml"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colours into a pipe: {shown}");
    let json = user.json(&["config", "check", "-c", "slots.toml"], 2);
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"].as_array().unwrap().len(), 4);
    assert_eq!(json["problems"][0]["line"], 1);
}

#[test]
fn the_file_in_the_current_directory_is_named_and_not_taken() {
    let user = User::new();
    fs::write(user.path("project/slots.toml"), "").unwrap();
    let shown = stderr(&mut user.missiond(&["config", "check"]), 2);
    assert!(shown.contains("missiond up -c slots.toml"), "{shown}");
}

#[test]
fn what_show_prints_can_be_loaded_again() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let file = user.path(".config/missiond/slots.toml");
    let shell = "[[slot]]\nname = \"sh\"\nkind = \"shell\"\ncommand = [\"sh\"]\ncwd = \"/\"\n";
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n{shell}")).unwrap();
    let output = user.missiond(&["config", "show"]).assert().success();
    let shown = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let (comment, rest) = shown.split_once('\n').unwrap();
    assert!(comment.starts_with("# "), "{comment}");
    let again = user.path("again.toml");
    fs::write(&again, rest).unwrap();
    let again = user.json(&["config", "show", "-c", again.to_str().unwrap()], 0);
    let first = user.json(&["config", "show"], 0);
    assert_eq!(again["slot"], first["slot"]);
    assert_eq!(again["daemon"], first["daemon"]);
}

#[test]
fn show_prints_no_secret() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let file = user.path(".config/missiond/slots.toml");
    let slot = "[[slot]]\nname = \"sh\"\nkind = \"shell\"\ncwd = \"/\"\n\
        command = [\"sh\", \"-c\", \"curl -H 'Authorization: Bearer word-number-one-1'\"]\n\
        args = [\"--password\", \"word-number-three\", \"--model\", \"opus\"]\n\
        env = { ANTHROPIC_API_KEY = \"word number two\", MYPASSWORD = \"word number four\", EDITOR = \"vi\", OTHER = \"ghp_0123456789abcdefghijABCDEFGHIJ0123\" }\n";
    let notify = "[notify]\ncommand = [\"curl\", \"-H\", \"Authorization: Bearer word-number-five-5\", \
        \"https://user:word-number-six@example.com/x\"]\n";
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n{slot}\n{notify}")).unwrap();
    for form in [&["config", "show"][..], &["config", "show", "--json"]] {
        let output = user.missiond(form).assert().success();
        let shown = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        for secret in [
            "word-number-one",
            "word number two",
            "word-number-three",
            "word number four",
            "word-number-five",
            "word-number-six",
            "ghp_0123",
        ] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(
            shown.contains("ANTHROPIC_API_KEY") && shown.contains("vi") && shown.contains("opus"),
            "{shown}"
        );
    }
}

pub fn finding<'a>(health: &'a Value, check: &str) -> &'a Value {
    let checks = health["checks"].as_array().unwrap();
    checks.iter().find(|found| found["check"] == check).unwrap()
}

#[test]
fn doctor_tells_a_missing_program_from_one_that_was_not_rehearsed() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    user.install("9.0.0");
    let health = user.json(&["doctor"], 0);
    assert_eq!(finding(&health, "program")["health"], "warn");
    fs::remove_file(user.path("bin/claude")).unwrap();
    let health = user.json(&["doctor"], 1);
    let program = finding(&health, "program");
    assert_eq!(program["health"], "fail");
    let detail = program["detail"].as_str().unwrap();
    assert!(detail.contains("no program `claude`"), "{detail}");
}

#[test]
fn doctor_sees_a_socket_directory_that_others_can_enter() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let run = user.path(".local/state/missiond/run");
    fs::create_dir_all(&run).unwrap();
    fs::set_permissions(&run, Permissions::from_mode(0o755)).unwrap();
    let health = user.json(&["doctor"], 1);
    let socket = finding(&health, "socket");
    let fix = format!("chmod 700 {}", run.display());
    assert_eq!(socket["fix"], fix.as_str(), "{socket}");
}

/// What `up` would refuse, `doctor` does not call good, and the other way round.
#[test]
fn doctor_and_up_say_the_same_of_the_log_directory() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let logs = user.path(".config/missiond/logs");
    let file = user.path(".config/missiond/slots.toml");
    fs::write(&file, "[daemon]\nlogs = \"logs\"\n\n[sessions]\n").unwrap();
    let spoilt: [(&str, &dyn Fn()); 6] = [
        ("is a symbolic link", &|| symlink("/tmp", &logs).unwrap()),
        ("is a symbolic link", &|| {
            symlink("/no/place", &logs).unwrap()
        }),
        ("can be written by everybody", &|| {
            fs::create_dir(&logs).unwrap();
            fs::set_permissions(&logs, Permissions::from_mode(0o777)).unwrap();
        }),
        ("audit.jsonl is not a file", &|| {
            fs::create_dir_all(logs.join("audit.jsonl")).unwrap();
        }),
        ("missiond.log is not a file", &|| {
            fs::create_dir_all(logs.join("missiond.log")).unwrap();
        }),
        (".lock is not a file", &|| {
            fs::create_dir_all(logs.join(".lock")).unwrap();
        }),
    ];
    for (cause, spoil) in spoilt {
        spoil();
        let health = user.json(&["doctor"], 1);
        let found = finding(&health, "logs");
        assert_eq!(found["health"], "fail", "{found}");
        let detail = found["detail"].as_str().unwrap();
        assert!(detail.contains(cause), "{found}");
        let up = user.missiond(&["up"]).assert().code(1);
        let told = String::from_utf8_lossy(&up.get_output().stderr).into_owned();
        assert!(told.contains(detail), "{told}");
        let fix = found["fix"].as_str().unwrap();
        assert!(told.contains(fix), "no `{fix}` in {told}");
        let removed = fs::remove_file(&logs).or_else(|_| fs::remove_dir_all(&logs));
        removed.unwrap();
    }
    let health = user.json(&["doctor"], 0);
    assert_ne!(finding(&health, "logs")["health"], "fail", "{health}");
    user.missiond(&["up"]).assert().success();
    user.missiond(&["down"]).assert().success();
}

/// Breaks one thing after the other; each is found, with what is wrong and what to do.
#[test]
fn doctor_names_the_fix_for_whatever_is_broken() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let config = |below: &str| user.path(".config/missiond").join(below);
    let broken = |check: &str, detail: &str, fix: &str| {
        let health = user.json(&["doctor"], 1);
        let found = finding(&health, check);
        assert_eq!(found["health"], "fail", "{health}");
        for (part, words) in [("detail", detail), ("fix", fix)] {
            let text = found[part].as_str().unwrap_or_default();
            assert!(text.contains(words), "no `{words}` in the {part}: {found}");
        }
    };
    let policy = config("policies/coder.toml");
    let good = fs::read_to_string(&policy).unwrap();
    fs::write(&policy, "default = \"allow\"\n").unwrap();
    broken("config", "coder.toml:1: ", "missiond config check -c");
    fs::write(&policy, good).unwrap();

    fs::write(config("logs"), "in the way").unwrap();
    broken("logs", "not a directory", "set `logs` in [daemon]");
    fs::remove_file(config("logs")).unwrap();

    let claude = user.path("bin/claude");
    // Found, and not able to start: its own words are the cause.
    let words = "Error: Cannot find module '/opt/claude-code/cli.js'";
    for (script, cause) in [
        (format!("#!/bin/sh\necho \"{words}\" >&2\nexit 7\n"), words),
        ("#!/bin/sh\nexit 7\n".to_owned(), "exit status: 7"),
        ("#!/bin/sh\nkill -9 $$\n".to_owned(), "signal: 9"),
        ("#!/no/such/node\n".to_owned(), "/no/such/node"),
    ] {
        fs::write(&claude, script).unwrap();
        broken("program", cause, "");
    }
    // One that runs and does not tell its version may be a wrapper.
    fs::write(&claude, "#!/bin/sh\necho hello\n").unwrap();
    let health = user.json(&["doctor"], 0);
    assert_eq!(finding(&health, "program")["health"], "warn", "{health}");
    user.install("2.1.325");

    fs::set_permissions(user.path("bin/claude"), Permissions::from_mode(0o644)).unwrap();
    broken("program", "can't be executed", "make it executable");
    fs::remove_file(user.path("bin/claude")).unwrap();
    broken("program", "no program `claude`", "install it");

    fs::create_dir_all(user.path(".local/state/missiond")).unwrap();
    fs::write(user.path(".local/state/missiond/run"), "in the way").unwrap();
    broken("socket", "not a directory", "move it away");
}

#[test]
fn doctor_ends_with_1_without_a_config() {
    let user = User::new();
    let health = user.json(&["doctor"], 1);
    assert_eq!(finding(&health, "config")["fix"], "missiond init");
    // Whether there is a Claude Code is worth knowing before that.
    assert_ne!(finding(&health, "program")["health"], "fail");
}

#[test]
fn the_example_of_the_project_is_good_as_it_is() {
    let config = missiond::config::load(Path::new("slots.toml")).unwrap();
    let names: Vec<&str> = config.slots.iter().map(|slot| slot.name.as_str()).collect();
    assert_eq!(names, ["reader", "coder", "reviewer"]);
    assert!(config.slots.iter().all(|slot| slot.mode == "manual"));
}

#[test]
fn a_variable_that_is_no_text_does_no_harm() {
    use std::os::unix::ffi::OsStrExt;
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    let odd = std::ffi::OsStr::from_bytes(b"\xff");
    user.missiond(&["doctor"])
        .env("ODD", odd)
        .assert()
        .success();
}
