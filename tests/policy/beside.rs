//! missiond's rules beside Claude Code's own. `beside.txt` has what three versions of Claude Code decided by themselves on
//! the commands of `corpus`, `cases` and `live`, with the same rules and no hook; `cargo run --example beside` writes it.
//!
//! `cargo test --test policy beside -- --nocapture` prints the tables that `docs/policies.md` has.

use super::cases::policy_of;
use super::corpus::are_in_the_docs;
use missiond::core::policy::{Ask, Decision, LexicalPaths, Policy, decide, is_said};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The most of every hundred ordinary commands that may be asked about, by missiond or by Claude Code.
const MOST_ASKED: f64 = 8.0;

/// The reasons of Claude Code to ask about a call whose allow missiond says: the form of the command, which Claude Code does
/// not take apart or follow. None of them is something that it knows about a program or a file.
const FORMS: &[&str] = &[
    "can't be checked before it runs",
    "This command requires approval",
    "The following part",
    "cannot be statically analyzed",
    "uses shell operators",
    "Contains ",
    "Arithmetic expansion references variable",
    "Heredoc with unquoted delimiter",
    "changes directory before running",
    "Multiple directory changes",
    "by a relative path after a cd",
    "Shell expansion syntax in paths",
    "Tilde expansion variants",
    "Brace expansion",
    "Unhandled node type",
];

const NEXT: &str = "Run `cargo run --example beside -- PROGRAM…`, which measures what is missing.";

struct Commands {
    policy: Policy,
    shared: Vec<String>,
    /// Each command with the verdict that the list expects.
    expected: Vec<(String, String)>,
}

/// What missiond does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// It says allow, and Claude Code runs the call.
    Says,
    /// It allows the call, or leaves it to Claude Code, and says nothing: Claude Code decides.
    Silent,
    /// It says ask or deny.
    Refuses,
}

impl Commands {
    fn of(list: &str) -> Commands {
        let file = format!("tests/policy/{list}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(path).expect("a list of commands");
        let (head, lines) = text.split_once("\n\n").expect("rules, then commands");
        let policy = policy_of(head);
        let in_two = |line: &str| {
            let (word, command) = line.split_once(' ').expect("a verdict and a command");
            (unescaped(command), word.to_owned())
        };
        Commands {
            shared: policy.rules_for_settings().allow,
            policy,
            expected: lines.lines().map(in_two).collect(),
        }
    }

    fn gate(&self, command: &str) -> Gate {
        let ask = Ask {
            tool: "Bash".to_owned(),
            input: json!({ "command": command }),
            cwd: PathBuf::from("/proj"),
            at: None,
            complete: true,
        };
        match decide(&self.policy, &ask, &LexicalPaths).decision {
            Decision::Allow if is_said(&self.policy, &ask, &LexicalPaths, &self.shared) => {
                Gate::Says
            }
            Decision::Allow | Decision::Silent => Gate::Silent,
            Decision::Ask | Decision::Deny => Gate::Refuses,
        }
    }
}

fn unescaped(command: &str) -> String {
    command.replace("\\n", "\n").replace("\\r", "\r")
}

/// What Claude Code decided: by list and command, a word for each version, and why.
struct Measured {
    versions: Vec<String>,
    rows: HashMap<(String, String), (Vec<String>, String)>,
}

impl Measured {
    fn read() -> Measured {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/beside.txt");
        let text = fs::read_to_string(path).expect("the measured verdicts");
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let versions = lines
            .next()
            .and_then(|line| line.strip_prefix("versions\t"));
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let row = |line: &str| {
            let mut fields = line.splitn(4, '\t');
            let mut field = || fields.next().expect("four fields").to_owned();
            let (list, outcomes, why, command) = (field(), field(), field(), field());
            ((list, unescaped(&command)), (words(&outcomes), why))
        };
        Measured {
            versions: words(versions.expect("the versions")),
            rows: lines.map(row).collect(),
        }
    }

    fn row(&self, list: &str, command: &str) -> &(Vec<String>, String) {
        let row = self.rows.get(&(list.to_owned(), command.to_owned()));
        row.unwrap_or_else(|| panic!("{list}: {command}: not measured. {NEXT}"))
    }

    fn asks(&self, list: &str, command: &str, version: usize) -> bool {
        self.row(list, command).0[version] != "allow"
    }
}

/// The lists by name, as `beside.txt` names them.
fn lists() -> BTreeMap<String, Commands> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy");
    let files = |kind: &'static str| {
        let entries = fs::read_dir(directory.join(kind)).expect("a directory of lists");
        entries.map(move |entry| {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            format!("{kind}/{stem}")
        })
    };
    let names = ["cases", "corpus", "live"].into_iter().flat_map(files);
    names
        .map(|name| (name.clone(), Commands::of(&name)))
        .collect()
}

#[test]
fn every_command_was_measured() {
    let measured = Measured::read();
    let mut missing = Vec::new();
    for (list, commands) in &lists() {
        let is_missing = |command: &str| {
            let key = (list.clone(), command.to_owned());
            !measured.rows.contains_key(&key)
        };
        let all = commands.expected.iter().map(|(command, _)| command);
        missing.extend(
            all.filter(|one| is_missing(one))
                .map(|one| format!("{list}: {one}")),
        );
    }
    assert!(
        missing.is_empty(),
        "{} commands were not measured. {NEXT}\n{}",
        missing.len(),
        missing.join("\n")
    );
    let is_complete = |(words, _): &(Vec<String>, String)| words.len() == measured.versions.len();
    assert!(
        measured.rows.values().all(is_complete),
        "a row without a version"
    );
}

#[test]
fn what_claude_code_asks_about_is_not_allowed_over_its_head() {
    let measured = Measured::read();
    let (mut wrong, mut hostile) = (Vec::new(), 0);
    let mut forms = BTreeMap::<&str, [usize; 2]>::new();
    for (list, commands) in &lists() {
        for (command, expected) in &commands.expected {
            let (words, why) = measured.row(list, command);
            if words.iter().all(|word| word == "allow") {
                continue;
            }
            hostile += usize::from(expected != "allow");
            if commands.gate(command) != Gate::Says {
                continue;
            }
            let kind = usize::from(list.starts_with("corpus/"));
            let form = FORMS.iter().find(|form| why.contains(**form));
            if let Some(form) = form.filter(|_| expected == "allow") {
                forms.entry(form).or_default()[kind] += 1;
            } else {
                wrong.push(format!("{list}: {command}: {why}"));
            }
        }
    }
    let row = |(form, [cases, corpus]): (&&str, &[usize; 2])| {
        format!("| {} | {cases} | {corpus} |", form.trim_end())
    };
    let table: Vec<String> = forms.iter().map(row).collect();
    println!("{}", table.join("\n"));
    assert!(
        hostile > 900 && forms.len() > 5,
        "{hostile} hostile, {} forms",
        forms.len()
    );
    assert!(
        wrong.is_empty(),
        "{} are allowed over its head:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    are_in_the_docs(&table);
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_claude: usize,
    by_missiond: usize,
    by_either: usize,
    asked: usize,
}

#[test]
fn both_together_seldom_ask_about_ordinary_commands() {
    let measured = Measured::read();
    let names = [
        "c", "docker", "git", "go", "java", "node", "python", "rust", "shell",
    ];
    let lists: Vec<(String, Commands)> = names
        .map(|name| format!("corpus/{name}"))
        .map(|name| (name.clone(), Commands::of(&name)))
        .into();
    let mut table = Vec::new();
    for (at, version) in measured.versions.iter().enumerate() {
        for is_ordinary in [true, false] {
            let mut counts = Counts::default();
            for (name, commands) in &lists {
                let wanted = |word: &str| (word == "allow") == is_ordinary;
                for (command, _) in commands.expected.iter().filter(|(_, word)| wanted(word)) {
                    counts.add(commands.gate(command), measured.asks(name, command, at));
                }
            }
            table.push(counts.row(version, is_ordinary));
            let share = counts.asked as f64 * 100.0 / counts.all as f64;
            match is_ordinary {
                true => assert!(
                    share < MOST_ASKED,
                    "{version}: {share:.1} % are asked about"
                ),
                false => assert_eq!(counts.asked, counts.all, "{version}: hostile commands run"),
            }
        }
    }
    println!("{}", table.join("\n"));
    are_in_the_docs(&table);
}

impl Counts {
    fn add(&mut self, gate: Gate, claude_asks: bool) {
        let refuses = gate == Gate::Refuses;
        self.all += 1;
        self.by_claude += usize::from(claude_asks);
        self.by_missiond += usize::from(refuses);
        self.by_either += usize::from(refuses || claude_asks);
        self.asked += usize::from(refuses || claude_asks && gate != Gate::Says);
    }

    fn row(&self, version: &str, is_ordinary: bool) -> String {
        let kind = if is_ordinary { "ordinary" } else { "hostile" };
        let share =
            |count: usize| format!("{count} ({:.1} %)", count as f64 * 100.0 / self.all as f64);
        format!(
            "| {version} | {} {kind} | {} | {} | {} | {} |",
            self.all,
            share(self.by_claude),
            share(self.by_missiond),
            share(self.by_either),
            share(self.asked)
        )
    }
}
