//! The README says what is so: its commands are run, its examples load, and what it names is there.

mod support;

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::processes;
use tempfile::TempDir;

const README: &str = include_str!("../README.md");

/// The blocks with this mark behind their fence.
fn blocks(mark: &str) -> Vec<&'static str> {
    let fences = README.split("\n```").collect::<Vec<_>>();
    let texts = fences.iter().filter_map(|part| part.split_once('\n'));
    let found: Vec<&str> = texts
        .filter(|(info, _)| *info == mark)
        .map(|(_, text)| text)
        .collect();
    assert!(!found.is_empty(), "no block is marked `{mark}`");
    found
}

/// Somebody new, with a project, this missiond and a `claude` that is the stand-in.
struct Newcomer {
    root: TempDir,
}

impl Newcomer {
    fn new() -> Newcomer {
        let root = tempfile::Builder::new()
            .prefix("md")
            .tempdir()
            .expect("a directory");
        for directory in ["bin", "home", "project"] {
            fs::create_dir(root.path().join(directory)).expect("a directory");
        }
        let missiond = env!("CARGO_BIN_EXE_missiond");
        let bin = root.path().join("bin");
        std::os::unix::fs::symlink(missiond, bin.join("missiond")).expect("a link");
        let script = support::script(&bin, &format!("exec '{missiond}' stand-in \"$@\""));
        fs::rename(script, bin.join("claude")).expect("it can be renamed");
        let script = support::script(&root.path().join("project"), "echo deployed");
        fs::rename(script, root.path().join("project/deploy.sh")).expect("it can be renamed");
        // Claude Code was used before, in other folders: it asks about this one.
        let known = r#"{"hasCompletedOnboarding":true,"projects":{"/elsewhere":{"hasTrustDialogAccepted":true}}}"#;
        fs::write(root.path().join("home/.claude.json"), known).expect("a file");
        Newcomer { root }
    }

    fn at(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn shell(&self, line: &str) -> Command {
        let usual = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{usual}", self.at("bin").display());
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.at("home"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.at("project"))
            .timeout(Duration::from_secs(120));
        command
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        processes::kill_all_of(self.root.path());
    }
}

/// `# exit 5: …` behind a command says how it ends.
fn exit_code(line: &str) -> i32 {
    let said = line.split_once("# exit ").map(|(_, rest)| rest);
    said.and_then(|rest| rest.split(':').next()?.parse().ok())
        .unwrap_or(0)
}

#[test]
fn the_first_use_works_when_pasted() {
    let newcomer = Newcomer::new();
    let mut said = String::new();
    for line in blocks("sh run").iter().flat_map(|block| block.lines()) {
        let output = newcomer.shell(line).assert().code(exit_code(line));
        let output = output.get_output();
        said += &String::from_utf8_lossy(&output.stdout);
        eprintln!("$ {line}\n{}", String::from_utf8_lossy(&output.stdout));
    }
    for fact in [
        "does not trust these folders yet",
        "is up, pid",
        "coder: its folder is trusted",
        "You said: What is this?",
        "./deploy.sh",
        "deployed",
        "That is what it says.",
        "is down",
    ] {
        assert!(
            said.contains(fact),
            "`{fact}` is not in what was said:\n{said}"
        );
    }
    let left = processes::all_of(newcomer.root.path());
    assert!(left.is_empty(), "processes are left: {left:?}");
}

#[test]
fn the_policy_on_the_page_loads() {
    let directory = tempfile::tempdir().expect("a directory");
    for text in blocks("toml") {
        let file = directory.path().join("coder.toml");
        fs::write(&file, text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_missiond"));
        command
            .args(["policy", "check"])
            .arg(&file)
            .assert()
            .success();
    }
}

/// Every `missiond …` on the page, in blocks and in running text, without its comment.
fn commands() -> Vec<Vec<&'static str>> {
    let blocks = blocks("sh").into_iter().chain(blocks("sh run"));
    let in_blocks = blocks.flat_map(str::lines);
    let in_text = README.split('`').skip(1).step_by(2);
    let commands = in_blocks.chain(in_text).filter_map(|line| {
        let by_cargo = line.strip_prefix("cargo run --release -- ");
        by_cargo.or_else(|| line.strip_prefix("missiond "))
    });
    let words = |line: &'static str| line.split(" #").next().map(str::split_whitespace);
    let words = commands.filter_map(words);
    words.map(Iterator::collect).collect()
}

#[test]
fn every_command_on_the_page_is_one() {
    let commands = commands();
    assert!(commands.len() > 12, "only {} were found", commands.len());
    for words in &commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_missiond"));
        let help = command.args(["help", words[0]]).assert().success();
        let help = String::from_utf8_lossy(&help.get_output().stdout).into_owned();
        let flags = words.iter().filter(|word| word.starts_with("--"));
        for flag in flags {
            assert!(help.contains(flag), "{} has no {flag}", words[0]);
        }
    }
}

#[test]
fn every_file_that_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = README.split('`').skip(1).step_by(2);
    let linked = README
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let is_ours = |path: &&str| {
        path.starts_with("src/") || path.starts_with("tests/") || path.ends_with(".md")
    };
    let paths: Vec<&str> = named.chain(linked).filter(is_ours).collect();
    assert!(paths.len() > 10, "{paths:?}");
    for path in paths.iter().filter(|path| !path.contains(' ')) {
        assert!(root.join(path).exists(), "{path} is not there");
    }
}
