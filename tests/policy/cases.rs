//! `cases/*.txt`: rules, an empty line, and commands with the verdict that they must get. A new case is a line.
//! `protect` names a file of missiond's own, or a directory of them.
//! `noallow` is `ask` or `deny`; `\n` and `\r` in a command stand for what they stand for everywhere.

use missiond::core::policy::{Ask, Decision, LexicalPaths, Policy, decide};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_case_gets_its_verdict() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/cases");
    let files = fs::read_dir(directory).expect("the cases").flatten();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files.map(|entry| entry.path()) {
        let text = fs::read_to_string(&file).expect("a file of cases");
        let (head, cases) = text.split_once("\n\n").expect("rules, then cases");
        let policy = policy_of(head);
        for line in cases.lines() {
            count += 1;
            wrong.extend(fault(&policy, &file, line));
        }
    }
    assert!(count > 2_000, "only {count} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The policy of the rules at the head of a file.
pub fn policy_of(head: &str) -> Policy {
    let of = |decision: &str| -> Vec<&str> {
        let lines = head.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter(|(word, _)| *word == decision)
            .map(|(_, rule)| rule)
            .collect()
    };
    let [allow, ask, deny] = ["allow", "ask", "deny"].map(of);
    let text = format!("allow = {allow:?}\nask = {ask:?}\ndeny = {deny:?}\n");
    let policy = Policy::parse(&text, Path::new("cases.toml"), Path::new("/proj"));
    let protected = of("protect").into_iter().map(PathBuf::from);
    policy.expect("good rules").protecting(protected)
}

fn fault(policy: &Policy, file: &Path, line: &str) -> Option<String> {
    let (expected, command) = line.split_once(' ').expect("a verdict and a command");
    let command = command.replace("\\n", "\n").replace("\\r", "\r");
    let ask = Ask::bash(&command, "/proj");
    let verdict = decide(policy, &ask, &LexicalPaths);
    let right = match expected {
        "noallow" => verdict.decision != Decision::Allow,
        word => verdict.decision.word() == word,
    };
    let place = file.file_name().unwrap_or_default().to_string_lossy();
    let got = verdict.decision.word();
    (!right).then(|| format!("{place}: {line}: {got} ({})", verdict.why))
}
