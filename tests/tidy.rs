//! The walls that one package has no compiler for: which module may name which, no IO and no clock in the core, and each
//! outside crate that is a risk in one place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules, and which others each may name. The parts of the core are modules of their own here. Who is named stands
/// above who names it: so there is no circle.
const LAYERS: &[(&str, &[&str])] = &[
    ("core::text", &[]),
    ("core::terminal", &[]),
    ("core::cast", &["core::text", "core::terminal"]),
    (
        "core::claude",
        &["core::text", "core::terminal", "core::cast"],
    ),
    ("core::settings", &["core::text", "core::claude"]),
    (
        "core::policy",
        &["core::text", "core::claude", "core::settings"],
    ),
    (
        "core::model",
        &[
            "core::text",
            "core::claude",
            "core::settings",
            "core::policy",
        ],
    ),
    (
        "core::machine",
        &[
            "core::text",
            "core::claude",
            "core::settings",
            "core::policy",
            "core::model",
        ],
    ),
    (
        "core::alerts",
        &[
            "core::text",
            "core::claude",
            "core::settings",
            "core::policy",
            "core::model",
            "core::machine",
        ],
    ),
    (
        "core::queue",
        &["core::text", "core::settings", "core::model"],
    ),
    (
        "core::timeline",
        &[
            "core::text",
            "core::claude",
            "core::policy",
            "core::model",
            "core::machine",
        ],
    ),
    ("os", &["core"]),
    ("hook", &["core", "os"]),
    ("events", &["core", "os"]),
    ("audit", &["core", "os"]),
    ("push", &["core"]),
    ("config", &["core", "os"]),
    ("launch", &["core", "os", "hook"]),
    ("shim", &["core", "os"]),
    (
        "slot",
        &["core", "os", "events", "audit", "config", "launch", "shim"],
    ),
    ("session", &["core", "os", "shim", "slot"]),
    (
        "daemon",
        &[
            "core", "os", "events", "audit", "push", "config", "launch", "shim", "slot", "session",
        ],
    ),
    (
        "control",
        &[
            "core", "os", "events", "audit", "config", "launch", "slot", "daemon",
        ],
    ),
    ("lookback", &["core", "os", "config"]),
    ("mcp", &["core", "control"]),
    ("web", &["core", "os", "control", "lookback"]),
    (
        "embed",
        &["core", "os", "events", "config", "daemon", "control"],
    ),
    (
        "lab",
        &["core", "os", "config", "launch", "shim", "slot", "control"],
    ),
    (
        "cli",
        &[
            "core", "os", "audit", "config", "launch", "shim", "slot", "session", "daemon",
            "control", "lookback", "mcp", "web", "lab",
        ],
    ),
];

/// No IO, no clock, no process and no runtime.
const PURE: &str = "core";

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
    ("alacritty_terminal", &["core/terminal"]),
    ("portable_pty", &["shim"]),
    (
        "notify::recommended_watcher",
        &["config/watch.rs", "cli/follow.rs"],
    ),
    ("tree_sitter", &["core/policy"]),
    ("sysinfo", &["os/usage.rs"]),
    ("ureq", &["push/http.rs"]),
    ("toml_edit", &["core/policy"]),
    // A client connects where it is checked who answers; `ping` is that question, and the demo has a daemon of its own.
    (
        "Client::connect(",
        &["control/client.rs", "cli/target.rs", "lab/demo/stage.rs"],
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

    /// Lines of code, numbered from 1: no comments, and no item that is for tests only. The code is formatted: such an item
    /// ends with the first line at the margin that ends in a semicolon or a brace.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut for_tests = false;
        let lines = self.text.lines().enumerate();
        let lines = lines.filter(move |(_, line)| {
            for_tests |= line.starts_with("#[cfg(test)]");
            let is_left_out = for_tests;
            for_tests &= line.starts_with([' ', '#']) || !line.ends_with([';', '}']);
            !is_left_out
        });
        lines.map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
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

/// The module of [`LAYERS`] that a path begins with: one of the core's parts, or a folder or file in `src`.
fn module(mut names: impl Iterator<Item = String>) -> String {
    let first = names.next().unwrap_or_default();
    match names.next() {
        Some(part) if first == "core" => format!("core::{part}"),
        _ => first,
    }
}

fn own_module(source: &Source) -> String {
    let path = source.path.with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    module(names.filter(|name| name != "mod"))
}

/// The modules that the code of a file names, each with its line. An import of the core's parts in braces counts too.
fn named_modules(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in source.code() {
        for path in line.split("crate::").skip(1) {
            let end = path.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
            let names = path[..end.unwrap_or(path.len())].split("::");
            let named = module(names.filter(|name| !name.is_empty()).map(str::to_owned));
            found.push((number, named));
        }
    }
    found
}

#[test]
fn each_module_names_only_those_above_it_in_the_table() {
    let may_name = |module: &str| LAYERS.iter().find(|(name, _)| *name == module);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    // `lib.rs` and `main.rs` stand over all, and the core is named by its parts.
    let is_whole = |module: &str| ["lib", "main", "core"].contains(&module);
    for source in sources().iter().filter(|source| !is_test(source)) {
        let own = own_module(source);
        if is_whole(&own) {
            continue;
        }
        let Some((name, allowed)) = may_name(&own) else {
            faults.push(format!(
                "src/{} is in no module of the table",
                source.path.display()
            ));
            continue;
        };
        seen.insert(*name);
        let named = named_modules(source).into_iter();
        let others = named.filter(|(_, other)| other != name);
        let wrong = others.filter(|(_, other)| {
            let whole = other.split("::").next().unwrap_or_default();
            !allowed
                .iter()
                .any(|allowed| allowed == other || *allowed == whole)
        });
        faults.extend(wrong.map(|(number, other)| {
            let path = source.path.display();
            format!("src/{path}:{number}: {name} may not name {other}")
        }));
    }
    assert_eq!(seen.len(), LAYERS.len(), "a module of the table is gone");
    report(&faults);
}

#[test]
fn the_table_of_modules_has_no_circle() {
    let mut above = vec!["core"];
    for (name, allowed) in LAYERS {
        for other in *allowed {
            assert!(
                above.contains(other),
                "{name} names {other}, which is below"
            );
        }
        above.push(name);
    }
}

#[test]
fn the_pure_core_names_no_io_and_no_clock() {
    let sources = sources();
    let pure = sources
        .iter()
        .filter(|source| source.is_below(PURE) && !is_test(source));
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
    assert!(seen > 100, "only {seen} pure files were found");
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

/// A field belongs to its type: whoever else needs it asks by a method.
#[test]
fn no_field_is_open_to_the_module_above() {
    let is_field = |line: &str| {
        let name = line.trim_start().strip_prefix("pub(super) ");
        let name = name.and_then(|rest| rest.split_once(':'));
        name.is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !is_test(source)) {
        for (number, line) in source.code().filter(|(_, line)| is_field(line)) {
            let path = source.path.display();
            faults.push(format!("src/{path}:{number}: {}", line.trim()));
        }
    }
    report(&faults);
}

/// A command that is printed as a fix must change nothing but missiond's own: such commands are made in these places,
/// which look whose the directory is. Elsewhere a fix is told in words.
const FIXES: &[&str] = &["os/paths.rs", "os/trusted_file.rs"];

/// What changes the file system or ends processes, as it begins in a text for people.
const HARMFUL: &[&str] = &[
    "chmod ", "chown ", "chgrp ", "mkdir ", "rm -", "rmdir ", "kill -", "pkill ", "killall ",
    "mv ", "ln -s", "setfacl ",
];

/// These speak of commands that a slot runs, and print none as a fix.
const SPEAK_OF_COMMANDS: &[&str] = &["core/policy", "core/claude/reading", "lab", "cli/policy"];

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
    let in_one_place = ONE_PLACE.iter().flat_map(|(_, places)| *places);
    let places = in_one_place.chain(FIXES).chain(SPEAK_OF_COMMANDS);
    let missing = places.filter(|place| !sources.iter().any(|source| source.is_below(place)));
    report(
        &missing
            .map(|place| format!("src/{place} does not exist"))
            .collect::<Vec<_>>(),
    );
}

/// The tests that docs/supervision.md names for what is promised there.
fn named_tests(page: &str) -> Vec<&str> {
    let table = page.split("## What is promised").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split(" | ").nth(2));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.collect()
}

/// The names of all tests, in `tests` and beside the code.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = sources();
    collect(root, &root.join("tests"), &mut all);
    let mut names = BTreeSet::new();
    for source in &all {
        let mut is_marked = false;
        for line in source.text.lines().map(str::trim) {
            is_marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            if let Some((_, function)) = line.split_once("fn ").filter(|_| is_marked) {
                names.extend(function.split('(').next().map(str::to_owned));
                is_marked = false;
            }
        }
    }
    names
}

#[test]
fn each_promise_has_tests_that_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/supervision.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let named = named_tests(&page);
    assert!(named.len() > 30, "only {} tests are named", named.len());
    let tests = tests();
    let missing = named.iter().filter(|name| !tests.contains(**name));
    let missing = missing.map(|name| format!("docs/supervision.md names {name}, which is no test"));
    report(&missing.collect::<Vec<_>>());
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
