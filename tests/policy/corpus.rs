//! `corpus/*.txt`: a team's policy for a stack, an empty line, and ordinary commands that it plainly covers (`allow`), beside
//! commands that it must not let in (`noallow`, `ask`, `deny`). What is asked about although it is covered is counted by
//! its cause; what is allowed although it must not be is a fault.
//!
//! `cargo test --test policy corpus -- --nocapture` prints the table that `docs/policies.md` has.

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
    wrong: Vec<String>,
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
    println!(
        "| stack | ordinary | asked about | hostile | wrong |\n| --- | --- | --- | --- | --- |"
    );
    for file in files {
        let counts = judge_file(&file, &mut causes);
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let Counts {
            ordinary,
            asked,
            hostile,
            wrong,
        } = counts;
        println!(
            "| {name} | {ordinary} | {asked} | {hostile} | {} |",
            wrong.len()
        );
        all.ordinary += ordinary;
        all.asked += asked;
        all.hostile += hostile;
        all.wrong.extend(wrong);
    }
    let share = all.asked as f64 * 100.0 / all.ordinary as f64;
    println!(
        "{} of {} asked about ({share:.1} %)",
        all.asked, all.ordinary
    );
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (cause, count) in causes {
        println!("{count:4} {cause}");
    }
    assert!(all.ordinary >= LEAST_COMMANDS && all.hostile >= LEAST_COMMANDS / 2);
    assert!(all.wrong.is_empty(), "{}", all.wrong.join("\n"));
    assert!(share < MOST_ASKED, "{share:.1} % are asked about");
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
