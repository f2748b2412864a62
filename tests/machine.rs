//! The scenarios of `tests/machine`: what comes to a slot's machine, and what it does then, in plain text.

use missiond::core::claude::reading::State;
use missiond::core::machine::{Phase, Refusal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[path = "machine/bench.rs"]
mod bench;
#[path = "machine/effects.rs"]
mod effects;
#[path = "machine/inputs.rs"]
mod inputs;
#[path = "machine/script.rs"]
mod script;

use script::{Scenario, Step};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine")
}

/// The scripts, each with its name.
fn scripts() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("tests/machine can be read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<(String, String)> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a script can be read");
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), text)
        })
        .collect();
    found.sort();
    found
}

fn scenarios() -> Vec<Scenario> {
    let scripts = scripts();
    let read = |(name, text): &(String, String)| script::read(name, text);
    scripts.iter().flat_map(read).collect()
}

/// What is wrong with a step, as a reader of the script wants to see it.
fn compare(file: &str, step: &Step, came: &[String]) -> Option<String> {
    (step.expected != came).then(|| {
        let show = |lines: &[String]| match lines {
            [] => "      (nothing)".to_owned(),
            lines => lines
                .iter()
                .map(|line| format!("      -> {line}"))
                .collect::<Vec<_>>()
                .join("\n"),
        };
        format!(
            "tests/machine/{file}:{}: {}\n    expected:\n{}\n    what came:\n{}",
            step.line,
            step.input,
            show(&step.expected),
            show(came)
        )
    })
}

/// What is wrong with a scenario: its first wrong step, since what follows one is of no use.
fn play(scenario: &Scenario) -> Option<String> {
    let mut bench = bench::Bench::new();
    scenario.steps.iter().find_map(|step| {
        let place = format!("tests/machine/{}:{}", scenario.file, step.line);
        match bench.put(&step.input) {
            Ok(came) => compare(&scenario.file, step, &came),
            Err(why) => Some(format!("{place}: {}\n    {why}", step.input)),
        }
    })
}

/// Puts what came in place of what was expected, in all scripts: whoever changes a behaviour reads the difference.
fn rewrite() {
    for (name, text) in scripts() {
        let mut steps = Vec::new();
        for scenario in script::read(&name, &text) {
            let mut bench = bench::Bench::new();
            for step in scenario.steps {
                let came = bench.put(&step.input);
                steps.push((
                    step.line,
                    came.unwrap_or_else(|why| vec![format!("?? {why}")]),
                ));
            }
        }
        let mut new = String::new();
        for (number, line) in (1..).zip(text.lines()) {
            if !line.trim().starts_with("->") {
                new += &format!("{}\n", line.trim_end());
            }
            let step = steps.iter().find(|(line, _)| *line == number);
            for line in step.iter().flat_map(|(_, came)| came) {
                new += &format!("  -> {line}\n");
            }
        }
        std::fs::write(folder().join(name), new).expect("a script can be written");
    }
}

#[test]
fn each_scenario_goes_as_it_is_written() {
    if std::env::var_os("REWRITE_SCENARIOS").is_some() {
        rewrite();
        panic!("the scripts have what came now: read the difference");
    }
    let scenarios = scenarios();
    assert!(scenarios.len() > 30, "only {} were found", scenarios.len());
    let wrong: Vec<String> = scenarios.iter().filter_map(play).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn each_state_has_a_script_that_reaches_it() {
    let scenarios = scenarios();
    let reaches = |state: &State| {
        let name = state.name();
        let (file, line) = (format!("{name}.txt"), format!("state {name}"));
        let steps = scenarios.iter().filter(|one| one.file == file);
        let mut steps = steps.flat_map(|one| &one.steps);
        steps.any(|step| step.expected.contains(&line))
    };
    let missing: Vec<&str> = State::ALL
        .iter()
        .filter(|state| !reaches(state))
        .map(|state| state.name())
        .collect();
    assert_eq!(missing, [""; 0], "no script of that name has `-> state …`");
}

#[test]
fn each_phase_of_the_machine_has_a_scenario() {
    let mut seen = BTreeSet::new();
    for scenario in scenarios() {
        let mut bench = bench::Bench::new();
        for step in &scenario.steps {
            bench.put(&step.input).expect("a line of a script");
        }
        seen.extend(bench.phases);
    }
    let all: BTreeSet<Phase> = Phase::ALL.iter().copied().collect();
    let missing: Vec<&Phase> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "no scenario comes to {missing:?}");
}

#[test]
fn each_refusal_has_a_scenario() {
    let scenarios = scenarios();
    let lines = scenarios.iter().flat_map(|one| &one.steps);
    let lines = lines.flat_map(|step| &step.expected);
    let seen: BTreeSet<&str> = lines
        .filter_map(|line| line.split_once(": refused "))
        .map(|(_, name)| name)
        .collect();
    let all: BTreeSet<&str> = Refusal::ALL.iter().map(|kind| kind.name()).collect();
    let missing: Vec<&&str> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "no scenario shows {missing:?}");
}

/// Else one could come up that is in no list.
#[test]
fn the_machine_makes_its_errors_by_their_names_only() {
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/machine");
    let mut seen = 0;
    for entry in std::fs::read_dir(machine).expect("the machine's folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() || path.ends_with("refusal.rs") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("a source file");
        let own = text.contains("RpcError::new(");
        assert!(!own, "{} makes an error without a name", path.display());
    }
    assert!(seen > 20, "only {seen} files were found");
}

/// A test of the tests: what a wrong line looks like.
#[test]
fn a_wrong_line_is_shown_with_its_place_and_with_what_came() {
    let text = "scenario: wrong\n\nstart\n  -> start the program\nstop\n  -> key Enter\n";
    let scenarios = script::read("wrong.txt", text);
    let first = play(&scenarios[0]).expect("something is wrong");
    assert!(
        first.contains("tests/machine/wrong.txt:3: start"),
        "{first}"
    );
    assert!(
        first.contains("expected:\n      -> start the program"),
        "{first}"
    );
    assert!(
        first.contains("what came:\n      -> state starting"),
        "{first}"
    );
    let unknown = script::read("wrong.txt", "scenario: wrong\nstrat\n");
    let why = play(&unknown[0]).expect("no such line");
    assert!(why.contains("tests/machine/wrong.txt:2: strat"), "{why}");
}
