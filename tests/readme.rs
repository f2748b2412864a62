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

/// A command of the page and the lines that it prints. A line `…` stands for any number of lines.
struct Shown {
    command: &'static str,
    prints: Vec<&'static str>,
}

fn shown() -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in blocks("console run").iter().flat_map(|block| block.lines()) {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown {
                command,
                prints: Vec::new(),
            }),
            (None, Some(last)) => last.prints.push(line),
            (None, None) => panic!("no command prints `{line}`"),
        }
    }
    shown
}

impl Shown {
    /// `# exit 5: …` behind a command says how it ends.
    fn exit_code(&self) -> i32 {
        let said = self.command.split_once("# exit ").map(|(_, rest)| rest);
        said.and_then(|rest| rest.split(':').next()?.parse().ok())
            .unwrap_or(0)
    }

    fn is_printed_by(&self, printed: &str) -> bool {
        let pattern = self.prints.iter().map(|line| match *line {
            "…" => "(?:.*\n)*".to_owned(),
            line => regex::escape(&same_each_time(line)) + "\n",
        });
        let pattern = format!("^{}$", pattern.collect::<String>());
        let pattern = regex::Regex::new(&pattern).expect("a pattern");
        pattern.is_match(&same_each_time(printed))
    }
}

/// The text without what is another each time: numbers and the ids of dialogs.
fn same_each_time(text: &str) -> String {
    let volatile = regex::Regex::new(r"\b[0-9a-f]+-[0-9a-f]{8}\b|[0-9]+").expect("a pattern");
    volatile.replace_all(text, "#").into_owned()
}

#[test]
fn the_first_use_prints_what_the_page_shows() {
    let newcomer = Newcomer::new();
    let home = newcomer.at("home").display().to_string();
    let all = shown();
    assert!(all.len() > 5, "only {} commands were found", all.len());
    for shown in all {
        let mut run = newcomer.shell(&format!("exec 2>&1; {}", shown.command));
        let run = run.output();
        let run = run.unwrap_or_else(|error| panic!("{error}"));
        let printed = String::from_utf8_lossy(&run.stdout).replace(&home, "~");
        let (command, prints) = (shown.command, shown.prints.join("\n"));
        assert_eq!(run.status.code(), Some(shown.exit_code()), "{command}");
        assert!(
            shown.is_printed_by(&printed),
            "$ {command}\nThe page shows:\n{prints}\nIt prints:\n{printed}"
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

/// The pages with their names: the README and docs.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = root.join("docs").read_dir().expect("docs");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|found| found == "md"));
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (
            name.into_owned(),
            fs::read_to_string(&path).expect("a page"),
        )
    };
    pages.chain([root.join("README.md")]).map(read).collect()
}

/// Every `missiond …` on a page, in blocks and in running text, without its comment.
fn commands(page: &str) -> Vec<Vec<String>> {
    let in_blocks = page.lines().map(|line| line.trim_start_matches("$ "));
    let in_text = page.split('`').skip(1).step_by(2);
    let commands = in_blocks.chain(in_text).filter_map(|line| {
        let by_cargo = line.strip_prefix("cargo run --release -- ");
        by_cargo.or_else(|| line.strip_prefix("missiond "))
    });
    // In running text a line may begin with the name.
    let is_command = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let words = |line: &str| shell_words(line.split(" #").next().unwrap_or_default());
    commands.filter(is_command).map(words).collect()
}

fn shell_words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// What missiond runs itself: it is in no help.
const HIDDEN: [&str; 2] = ["hook", "shim"];

#[test]
fn every_command_in_the_docs_is_one() {
    let help = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_missiond"));
        let output = command.arg("help").args(words).output().expect("help");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    let mut seen = 0;
    for (page, text) in pages() {
        for words in commands(&text) {
            let verb = words[0].as_str();
            if HIDDEN.contains(&verb) {
                continue;
            }
            let Some(of_verb) = help(&[verb]) else {
                // A sentence that goes on at the beginning of a line.
                assert!(
                    !text.contains(&format!("`missiond {verb}")),
                    "{page}: {verb}"
                );
                continue;
            };
            seen += 1;
            let below = words.get(1).and_then(|second| help(&[verb, second]));
            let known = below.unwrap_or_default() + &of_verb;
            let flags = words.iter().filter(|word| word.starts_with("--"));
            for flag in flags.map(|flag| flag.split(['=', '`', ',', '.']).next().unwrap_or(flag)) {
                assert!(known.contains(flag), "{page}: `{verb}` has no {flag}");
            }
        }
    }
    assert!(seen > 100, "only {seen} were found");
}

/// A page that no list names is read by nobody.
#[test]
fn the_book_has_every_page() {
    let pages = pages();
    let summary = pages.iter().find(|(name, _)| name == "SUMMARY.md");
    let (_, summary) = summary.expect("a summary");
    for (name, _) in pages.iter().filter(|(name, _)| name != "SUMMARY.md") {
        assert!(
            summary.contains(&format!("{name})")),
            "{name} is not in docs/SUMMARY.md"
        );
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
