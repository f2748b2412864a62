//! The walls that one package has no compiler for: the pure core names no IO and no clock, and each outside
//! crate that is a risk is named in one place.

use std::path::{Path, PathBuf};

/// Folders and files of the pure core.
const PURE: &[&str] = &[
    "terminal",
    "recording.rs",
    "reading",
    "keys.rs",
    "policy",
    "slot/machine",
    "transcript.rs",
    "secrets.rs",
    "control/protocol",
    "control/envelope.rs",
    "hook/event.rs",
    "tasks/queue.rs",
    "tasks/plan.rs",
    "tasks/file.rs",
    "excerpt.rs",
    "hex.rs",
    "quoting.rs",
    "redraw.rs",
];

/// The edge of the policy: it resolves symlinks.
const NOT_PURE: &[&str] = &["policy/real_paths.rs"];

const IO_AND_CLOCKS: &[&str] = &[
    "tokio",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "rustix",
    "Instant::now",
    "SystemTime",
    "Utc::now",
    "Local::now",
];

/// Crates that may be named only below these paths.
const ONE_PLACE: &[(&str, &[&str])] = &[
    ("alacritty_terminal", &["terminal"]),
    ("portable_pty", &["shim"]),
    (
        "notify::recommended_watcher",
        &["config/watch.rs", "cli/follow.rs"],
    ),
    ("tree_sitter", &["policy"]),
    ("sysinfo", &["usage.rs"]),
    ("toml_edit", &["policy"]),
    // A client connects where it is checked who answers; `ping` is that question, and the demo has a daemon of its own.
    (
        "Client::connect(",
        &["control/client.rs", "cli/target.rs", "demo/stage.rs"],
    ),
];

/// A file that is longer has two subjects.
const LONGEST_FILE: usize = 600;

/// A function that is longer has to be scrolled.
const LONGEST_FUNCTION: usize = 60;

struct Source {
    /// Below `src`.
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_below(&self, place: &str) -> bool {
        self.path.starts_with(place)
    }

    /// Lines of code, numbered from 1: no comments, and nothing from the first test module on.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(
        found.len() > 50,
        "only {} source files were found",
        found.len()
    );
    found
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(directory).expect("src can be read") {
        let path = entry.expect("src can be listed").path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file can be read");
            let path = path.strip_prefix(root).expect("below src").to_owned();
            found.push(Source { path, text });
        }
    }
}

fn is_test(source: &Source) -> bool {
    source
        .path
        .components()
        .any(|part| part.as_os_str() == "tests")
        || source
            .path
            .file_name()
            .is_some_and(|name| name == "tests.rs")
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_pure_core_names_no_io_and_no_clock() {
    let sources = sources();
    let pure = sources.iter().filter(|source| {
        PURE.iter().any(|place| source.is_below(place))
            && !NOT_PURE.iter().any(|place| source.is_below(place))
            && !is_test(source)
    });
    let mut faults = Vec::new();
    let mut seen = 0;
    for source in pure {
        seen += 1;
        for (number, line) in source.code() {
            for name in IO_AND_CLOCKS.iter().filter(|name| line.contains(**name)) {
                faults.push(format!(
                    "src/{}:{number} names {name}",
                    source.path.display()
                ));
            }
        }
    }
    assert!(seen > 20, "only {seen} pure files were found");
    report(&faults);
}

#[test]
fn each_risky_crate_is_named_in_its_place_only() {
    let mut faults = Vec::new();
    for source in sources() {
        for (name, places) in ONE_PLACE {
            if places.iter().any(|place| source.is_below(place)) {
                continue;
            }
            for (number, line) in source.code().filter(|(_, line)| line.contains(name)) {
                faults.push(format!(
                    "src/{}:{number} names {name}: {line}",
                    source.path.display()
                ));
            }
        }
    }
    report(&faults);
}

/// A command that is printed as a fix must change nothing but missiond's own: such commands are made in these places,
/// which look whose the directory is. Elsewhere a fix is told in words.
const FIXES: &[&str] = &["paths.rs", "trusted_file.rs"];

/// What changes the file system or ends processes, as it begins in a text for people.
const HARMFUL: &[&str] = &[
    "chmod ", "chown ", "chgrp ", "mkdir ", "rm -", "rmdir ", "kill -", "pkill ", "killall ",
    "mv ", "ln -s", "setfacl ",
];

/// These speak of commands that a slot runs, and print none as a fix.
const SPEAK_OF_COMMANDS: &[&str] = &["policy", "rehearsal", "demo", "reading", "cli/policy"];

#[test]
fn no_fix_changes_what_is_not_missionds_own() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !is_test(source)) {
        let exempt = |list: &[&str]| list.iter().any(|place| source.is_below(place));
        if exempt(FIXES) || exempt(SPEAK_OF_COMMANDS) {
            continue;
        }
        for (number, line) in source.code() {
            if let Some(command) = HARMFUL.iter().find(|command| line.contains(**command)) {
                let path = source.path.display();
                faults.push(format!(
                    "src/{path}:{number}: `{command}` in a text for people"
                ));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_list_here_names_something_that_exists() {
    let sources = sources();
    let places = PURE
        .iter()
        .chain(NOT_PURE)
        .chain(ONE_PLACE.iter().flat_map(|(_, places)| *places));
    let missing = places.filter(|place| !sources.iter().any(|source| source.is_below(place)));
    report(
        &missing
            .map(|place| format!("src/{place} does not exist"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_file_has_two_subjects() {
    let long = sources()
        .into_iter()
        .filter(|source| !is_test(source))
        .filter_map(|source| {
            let lines = source.code().count();
            (lines > LONGEST_FILE)
                .then(|| format!("src/{} has {lines} lines", source.path.display()))
        });
    report(&long.collect::<Vec<_>>());
}

/// The functions of a file, each with its first line and how many it has. The code is formatted: a function ends with
/// the first brace that stands where its own first word does.
fn functions(source: &Source) -> Vec<(usize, usize)> {
    let lines: Vec<(usize, &str)> = source.code().collect();
    let margin = |line: &str| line.len() - line.trim_start().len();
    let begins = |line: &str| {
        let words = line.split('(').next().unwrap_or_default();
        words.split_whitespace().any(|word| word == "fn")
    };
    let first = lines
        .iter()
        .enumerate()
        .filter(|(_, (_, line))| begins(line));
    let found = first.filter_map(|(at, (number, line))| {
        let ends =
            |(_, other): &&(usize, &str)| *other == format!("{}}}", " ".repeat(margin(line)));
        let last = lines[at..].iter().find(ends)?;
        Some((*number, last.0 - number + 1))
    });
    found.collect()
}

#[test]
fn no_function_has_to_be_scrolled() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for source in sources().iter().filter(|source| !is_test(source)) {
        let functions = functions(source);
        seen += functions.len();
        let long = functions
            .iter()
            .filter(|(_, length)| *length > LONGEST_FUNCTION);
        faults.extend(long.map(|(line, length)| {
            format!("src/{}:{line} has {length} lines", source.path.display())
        }));
    }
    assert!(seen > 1000, "only {seen} functions were found");
    report(&faults);
}

#[test]
fn each_folder_says_what_it_is() {
    let silent = sources().into_iter().filter(|source| {
        source.path.ends_with("mod.rs") && !source.text.starts_with("//!") && !is_test(source)
    });
    let silent: Vec<String> = silent
        .map(|source| format!("src/{} says nothing of itself", source.path.display()))
        .collect();
    report(&silent);
}
