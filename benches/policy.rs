//! How long a verdict takes: on a 1,000-character command with 200 rules it should stay below 200 µs.

use criterion::{Criterion, criterion_group, criterion_main};
use missiond::policy::{Ask, Decision, LexicalPaths, Policy, RealPaths, decide};
use serde_json::json;
use std::hint::black_box;
use std::path::{Path, PathBuf};

/// 200 rules of every kind, the ones that match last.
fn policy() -> Policy {
    let allow: Vec<String> = (0..98)
        .map(|n| format!("Bash(tool-{n} run *)"))
        .chain(["Bash(git *)".to_owned(), "Bash(grep *)".to_owned()])
        .collect();
    let deny: Vec<String> = (0..80).map(|n| format!("Bash(danger-{n} *)")).collect();
    let paths: Vec<String> = (0..20).map(|n| format!("Read(secrets/{n}/**)")).collect();
    let text = format!("allow = {allow:?}\ndeny = {deny:?}\nask = {paths:?}\n");
    Policy::parse(&text, Path::new("bench.toml"), Path::new("/proj")).expect("a good policy")
}

/// As many characters, as few or as many commands as the parts make it.
fn ask(part: &str, between: &str) -> Ask {
    let mut command = part.to_owned();
    while command.len() + between.len() + part.len() <= 1_000 {
        command = command + between + part;
    }
    Ask {
        tool: "Bash".to_owned(),
        input: json!({ "command": command }),
        cwd: PathBuf::from("/proj"),
        complete: true,
    }
}

fn verdicts(criterion: &mut Criterion) {
    let policy = policy();
    let one = ask("git log --oneline src/policy/mod.rs", " ");
    let many = ask("git diff | grep foo", " && ");
    let real = RealPaths::new(Some(PathBuf::from("/home/u")));
    for (name, ask) in [("one long command", &one), ("many short commands", &many)] {
        assert_eq!(
            decide(&policy, ask, &LexicalPaths).decision,
            Decision::Allow,
            "{name}"
        );
        criterion.bench_function(name, |bench| {
            bench.iter(|| decide(&policy, black_box(ask), &LexicalPaths))
        });
        criterion.bench_function(&format!("{name}, real paths"), |bench| {
            bench.iter(|| decide(&policy, black_box(ask), &real))
        });
    }
}

criterion_group!(benches, verdicts);
criterion_main!(benches);
