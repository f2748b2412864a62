//! How long a verdict takes: on a 1,000-character command with 200 rules it should stay below 200 µs.

use criterion::{Criterion, criterion_group, criterion_main};
use missiond::core::policy::{Ask, Decision, LexicalPaths, Policy, decide};
use missiond::os::real_paths::RealPaths;
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

/// As many characters, as few or as many commands as the parts make it. No two parts are the same.
fn ask(part: impl Fn(usize) -> String, between: &str) -> Ask {
    let mut command = part(0);
    for next in (1..).map(part) {
        if command.len() + between.len() + next.len() > 1_000 {
            break;
        }
        command = command + between + &next;
    }
    Ask::bash(&command, "/proj")
}

fn paths(n: usize) -> String {
    match n {
        0 => "git log --oneline".to_owned(),
        n => format!("src/policy/part{n}/mod.rs"),
    }
}

fn verdicts(criterion: &mut Criterion) {
    let policy = policy();
    let message = format!("git commit -m \"{}\"", "word and word ".repeat(69));
    let real = RealPaths::new(Some(PathBuf::from("/home/u")));
    for (name, ask, expected) in [
        ("one command, many paths", ask(paths, " "), Decision::Allow),
        (
            "one command, a long message",
            ask(|_| message.clone(), " "),
            Decision::Allow,
        ),
        (
            "30 commands",
            ask(|n| format!("git log --oneline src/{n}.rs"), " && "),
            Decision::Allow,
        ),
        (
            "80 commands",
            ask(|n| format!("git diff {n} | grep f{n}"), " ; "),
            Decision::Allow,
        ),
        (
            "25 commands with variables",
            ask(|n| format!("git log --oneline $v{n}/src/{n}.rs"), " && "),
            Decision::Ask,
        ),
        (
            "25 commands with substitutions",
            ask(
                |n| format!("git log $(git rev-parse v{n}) src/{n}.rs"),
                " && ",
            ),
            Decision::Ask,
        ),
        (
            "25 commands with globs",
            ask(|n| format!("git log --oneline src/{n}/*.rs"), " && "),
            Decision::Allow,
        ),
        (
            "20 commands with quotes and backslashes",
            ask(
                |n| format!("grep -E \"^a{n}$|b\\.c\" 'src/x y'/{n}.rs"),
                " || ",
            ),
            Decision::Allow,
        ),
    ] {
        assert_eq!(
            decide(&policy, &ask, &LexicalPaths).decision,
            expected,
            "{name}"
        );
        criterion.bench_function(name, |bench| {
            bench.iter(|| decide(&policy, black_box(&ask), &LexicalPaths))
        });
        criterion.bench_function(&format!("{name}, real paths"), |bench| {
            bench.iter(|| decide(&policy, black_box(&ask), &real))
        });
    }
}

criterion_group!(benches, verdicts);
criterion_main!(benches);
