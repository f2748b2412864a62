//! `corpus/*.txt`: a team's policy for a stack, an empty line, and ordinary commands that it plainly covers (`allow`), beside
//! commands that it must not let in (`noallow`, `ask`, `deny`). What is asked about although it is covered is counted by
//! its cause; what is allowed although it must not be is a fault.
//!
//! `cargo test --test policy corpus -- --nocapture` prints the tables that `docs/policies.md` has; the test fails if the page
//! has other numbers.

use missiond::core::policy::{Ask, Decision, LexicalPaths, Verdict, decide};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The most of every hundred ordinary commands that may be asked about.
const MOST_ASKED: f64 = 8.0;

/// The least commands that say something.
const LEAST_COMMANDS: usize = 400;

#[derive(Default)]
struct Counts {
    ordinary: usize,
    asked: usize,
    hostile: usize,
    /// What a rule denies and the policy only asks about.
    missed: usize,
    wrong_allows: usize,
    wrong: Vec<String>,
}

impl Counts {
    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} |",
            self.ordinary, self.asked, self.hostile, self.wrong_allows, self.missed
        )
    }

    fn add(&mut self, other: Counts) {
        self.ordinary += other.ordinary;
        self.asked += other.asked;
        self.hostile += other.hostile;
        self.missed += other.missed;
        self.wrong_allows += other.wrong_allows;
        self.wrong.extend(other.wrong);
    }
}

/// Fails if `docs/policies.md` does not have these lines.
pub fn are_in_the_docs(lines: &[String]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policies.md");
    let page = fs::read_to_string(page).expect("the page");
    let missing: Vec<&String> = lines
        .iter()
        .filter(|line| !page.lines().any(|known| known == *line))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/policies.md has other numbers. These lines belong there:\n{missing:#?}"
    );
}

#[test]
fn ordinary_commands_are_seldom_asked_about_and_no_others_are_allowed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut causes = BTreeMap::<String, usize>::new();
    let mut all = Counts::default();
    let mut table = Vec::new();
    for file in files {
        let counts = judge_file(&file, &mut causes);
        table.push(counts.row(&file.file_stem().unwrap_or_default().to_string_lossy()));
        all.add(counts);
    }
    table.push(all.row("all"));
    let share = all.asked as f64 * 100.0 / all.ordinary as f64;
    table.push(format!(
        "That is {share:.1} % of the ordinary commands. The causes:"
    ));
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    table.extend(
        causes
            .iter()
            .map(|(cause, count)| format!("| {cause} | {count} |")),
    );
    println!("{}", table.join("\n"));
    assert!(all.ordinary >= LEAST_COMMANDS && all.hostile >= LEAST_COMMANDS / 2);
    assert!(all.wrong.is_empty(), "{}", all.wrong.join("\n"));
    assert!(share < MOST_ASKED, "{share:.1} % are asked about");
    are_in_the_docs(&table);
}

fn judge_file(file: &Path, causes: &mut BTreeMap<String, usize>) -> Counts {
    let text = fs::read_to_string(file).expect("a file of commands");
    let (head, lines) = text.split_once("\n\n").expect("rules, then commands");
    let policy = super::cases::policy_of(head);
    let mut counts = Counts::default();
    for line in lines.lines() {
        let (expected, command) = line.split_once(' ').expect("a verdict and a command");
        let verdict = decide(&policy, &ask(command), &LexicalPaths);
        let got = verdict.decision.word();
        if expected == "allow" {
            counts.ordinary += 1;
            if verdict.decision != Decision::Allow {
                counts.asked += 1;
                println!("  asked: {command}: {}", verdict.why);
                *causes.entry(cause(&verdict)).or_default() += 1;
            }
            continue;
        }
        counts.hostile += 1;
        counts.wrong_allows += usize::from(verdict.decision == Decision::Allow);
        counts.missed += usize::from(expected == "deny" && verdict.decision != Decision::Deny);
        let is_right = match expected {
            "noallow" => verdict.decision != Decision::Allow,
            word => got == word,
        };
        if !is_right {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            counts
                .wrong
                .push(format!("{name}: {line}: {got} ({})", verdict.why));
        }
    }
    counts
}

fn ask(command: &str) -> Ask {
    Ask::bash(&command.replace("\\n", "\n"), "/proj")
}

/// The reason without what is particular to one command.
fn cause(verdict: &Verdict) -> String {
    let why = verdict.why.strip_suffix(" (the strictest part wins)");
    let why = why.unwrap_or(&verdict.why);
    let mut out = String::new();
    for (at, piece) in why.split('`').enumerate() {
        out += if at % 2 == 0 { piece } else { "…" };
    }
    out.trim_start_matches("…: ").to_owned()
}
