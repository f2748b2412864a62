//! Names that nothing has, `@role` and `--all`, at every command that takes a slot or a session.

use crate::fake::{Home, Ran, on_terminal, text_of};
use crate::streaming::{all_verbs, has_flag, help_of};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A daemon with two slots of the role `coder`, one of the role `lone`, and a session.
struct Stage {
    home: Home,
    config: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        Stage::with("")
    }

    /// The same with more in slots.toml.
    fn with(more: &str) -> Stage {
        let home = Home::new();
        let slot = |name: &str, role: &str| {
            format!(
                "[[slot]]\nname = \"{name}\"\nrole = \"{role}\"\nkind = \"shell\"\ncwd = \".\"\ncommand = [\"cat\"]\n"
            )
        };
        let slots = [
            slot("first", "coder"),
            slot("second", "coder"),
            slot("third", "lone"),
        ];
        for role in ["coder", "lone"] {
            home.write(&format!("policies/{role}.toml"), "default = \"ask\"\n");
        }
        let config = home.write("slots.toml", &(slots.concat() + more));
        let stage = Stage { home, config };
        stage
            .home
            .run(&["up", "-c", &text_of(&stage.config)])
            .exits(0);
        let shells = ["first", "second", "third"];
        let idle = [&["wait"], &shells[..], &["--for", "idle"]].concat();
        stage.home.run(&idle).exits(0);
        stage.run(&["spawn", "--", "cat"]).exits(0);
        stage
    }

    /// Some verbs read the config itself, so it is named.
    fn run(&self, line: &[&str]) -> Ran {
        let mut command = self.home.command(line);
        command.env("MISSIOND_CONFIG", &self.config);
        command.output().unwrap().into()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self
            .home
            .command(&["down", "-q", "--yes", "-c"])
            .arg(&self.config)
            .output();
    }
}

/// Every command that takes a name, with the words that follow it.
const ONE: &[(&str, &[&str])] = &[
    ("send", &["hello"]),
    ("task ask", &["hello"]),
    ("task submit", &["hello"]),
    ("confirm", &["yes"]),
    ("screen", &[]),
    ("history", &[]),
    ("search", &["x"]),
    ("write", &["x"]),
    ("keys", &["enter"]),
    ("why", &[]),
    ("session info", &[]),
    ("session type", &["x"]),
    ("session resize", &["80", "24"]),
    ("session signal", &["INT"]),
    ("session close", &[]),
    ("session output", &[]),
    ("session clear", &[]),
    ("link", &["--at", "1s"]),
    ("policy show", &[]),
    ("policy explain", &["ls"]),
];

fn line<'a>(verb: &'a str, name: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let mut line: Vec<&str> = verb.split(' ').collect();
    line.push(name);
    line.extend(words);
    line
}

#[test]
fn a_role_of_one_slot_is_that_slot_and_one_of_several_is_refused_with_their_names() {
    let stage = Stage::new();
    for (verb, words) in ONE {
        // A task goes to any slot of a role, and `ask` is a task.
        if ["task submit", "task ask"].contains(verb) {
            continue;
        }
        let ran = stage.run(&line(verb, "@coder", words)).exits(2);
        assert!(ran.stderr.contains("@coder is 2 slots"), "{ran:?}");
        assert!(ran.stderr.contains("first, second"), "{ran:?}");
        // The same as by its name, whether that is done or refused.
        let by_role = stage.run(&line(verb, "@lone", words));
        let by_name = stage.run(&line(verb, "third", words));
        assert_eq!(by_role.code, by_name.code, "{by_role:?} {by_name:?}");
        assert_eq!(by_role.stderr, by_name.stderr, "{verb}");
    }
    let both = stage.run(&["status", "@coder", "--json"]).exits(0).json();
    let names: Vec<_> = both.as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{both}");
}

/// Two slots of Claude Code, which are not started: tasks are for those alone.
const AUTHORS: &str = "[[slot]]\nname = \"writer\"\nrole = \"lone\"\ncwd = \".\"\nautostart = false\ncommand = [\"cat\"]\n\
    [[slot]]\nname = \"editor\"\nrole = \"lone\"\ncwd = \".\"\nautostart = false\ncommand = [\"cat\"]\n";

/// Those that take several names, or a name and more.
const MORE: &[(&str, &[&str])] = &[
    ("status", &[]),
    ("start", &[]),
    ("stop", &[]),
    ("restart", &[]),
    ("interrupt", &[]),
    ("pending", &[]),
    ("events", &[]),
    ("wait", &["--for", "idle"]),
    ("adopt", &["00000000-0000-4000-8000-000000000000"]),
    ("session follow", &[]),
    ("logs", &[]),
    ("timeline", &[]),
    ("send", &["--id", "x", "--status"]),
];

/// Those that take a name in an option, with the words that follow it.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("audit grep", "--slot", &[]),
    (
        "policy explain",
        "--slot",
        &["--tool", "Read", "--policy", "policies/lone.toml"],
    ),
    ("task ask", "--role", &["hello"]),
    ("task submit", "--role", &["hello"]),
    ("policy test", "--role", &["--policy", "policies/lone.toml"]),
];

/// Those that take the name of a task.
const TASKS: &[&str] = &["task", "task show", "task cancel"];
/// It draws on a terminal alone, and is tried on one.
const ON_A_TERMINAL: &str = "attach";
/// Those whose NAME is that of something else: a device.
const OF_OTHERS: &[&str] = &["web revoke"];

/// The words in a help that stand for the name of a slot, a session or a task.
const PLACEHOLDERS: [&str; 3] = ["SLOT", "ID", "NAME"];

/// Whether a command line, as its help shows it, has a name in it that is no option's value.
fn takes_a_name(help: &str) -> bool {
    let usage = help.lines().find(|line| line.starts_with("Usage:"));
    let usage = usage.unwrap_or_default();
    let mut is_of_an_option = false;
    usage.split(' ').any(|word| {
        let follows_an_option = std::mem::replace(&mut is_of_an_option, word.starts_with("--"));
        let mut words = word.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        !follows_an_option && words.any(|word| PLACEHOLDERS.contains(&word))
    })
}

#[test]
fn every_verb_that_takes_a_name_is_in_a_table() {
    let home = Home::new();
    let tried = ONE.iter().chain(MORE).map(|(verb, _)| *verb);
    let tried: BTreeSet<&str> = tried.chain(TASKS.iter().copied()).collect();
    let mut taking = Vec::new();
    for verb in all_verbs(&home) {
        let help = help_of(&home, &verb);
        let is_known = tried.contains(verb.as_str())
            || OF_OTHERS.contains(&verb.as_str())
            || verb == ON_A_TERMINAL;
        if takes_a_name(&help) {
            assert!(is_known, "`{verb}` takes a name and is not tested:\n{help}");
            taking.push(verb.clone());
        }
        for option in ["--slot", "--role"] {
            let mut options = OPTIONS.iter();
            let is_tried = options.any(|(of, name, _)| *of == verb && *name == option);
            let takes = has_flag(&help, &format!("{option} <"));
            assert_eq!(takes, is_tried, "`{verb} {option}`:\n{help}");
        }
    }
    for verb in tried.iter().chain(OF_OTHERS) {
        assert!(taking.contains(&(*verb).to_owned()), "`{verb}` takes none");
    }
}

/// A name that nothing has, at each command: wrong usage, with the nearest name and the slots, and no session's UUID.
#[test]
fn a_wrong_name_is_told_with_the_nearest_one_and_the_slots() {
    let stage = Stage::with(AUTHORS);
    let session = stage.run(&["sessions", "--json"]).exits(0).json();
    let session = session[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(session.len(), 36, "{session}");
    let told = |line: &[&str], wanted: &[&str]| {
        let ran = stage.run(line).exits(2);
        for wanted in wanted {
            assert!(ran.stderr.contains(wanted), "no {wanted:?}: {ran:?}");
        }
        assert!(!ran.stderr.contains(&session), "{ran:?}");
        let json = stage.run(&[line, &["--json"]].concat()).exits(2);
        assert!(json.error()["message"].is_string(), "{json:?}");
    };
    for (verb, words) in ONE.iter().chain(MORE) {
        if ["task submit", "task ask"].contains(verb) {
            let line = line(verb, "writr", words);
            told(
                &line,
                &[
                    "no slot `writr`",
                    "did you mean `writer`?",
                    "editor, writer",
                ],
            );
            continue;
        }
        let slots = ["`secnd`", "did you mean `second`?", "first", "third"];
        told(&line(verb, "secnd", words), &slots);
        // `logs` reads files; a role is asked of the daemon.
        let roles = [
            "no slot has the role `codr`",
            "did you mean `@coder`?",
            "coder, lone",
        ];
        told(&line(verb, "@codr", words), &roles);
    }
    for (verb, option, words) in OPTIONS {
        let named = |name| [&line(verb, option, &[name])[..], words].concat();
        if *option == "--slot" {
            let slots = ["`secnd`", "did you mean `second`?", "first", "third"];
            told(&named("secnd"), &slots);
            let roles = ["no slot has the role `codr`", "did you mean `@coder`?"];
            told(&named("@codr"), &roles);
        } else {
            let roles = ["no slot has the role `lon`", "did you mean `@lone`?"];
            told(&named("lon"), &roles);
        }
    }
    for verb in ["submit", "ask"] {
        let roles = ["no slot has the role `lon`", "did you mean `@lone`?"];
        told(&["task", verb, "@lon", "hello"], &roles);
    }
    for (name, meant) in [("secnd", "`second`"), ("@codr", "`@coder`")] {
        let (said, code, _) = on_terminal(&stage.home, &[ON_A_TERMINAL, name], "nothing", "");
        assert!(
            said.contains(&format!("did you mean {meant}?")),
            "{name}: {said}"
        );
        assert_eq!(code, 2, "{said}");
    }
    stage
        .run(&["submit", "writer", "x", "--id", "nightly"])
        .exits(0);
    for verb in TASKS {
        told(
            &line(verb, "nighly", &[]),
            &["no task `nighly`", "did you mean `nightly`?"],
        );
    }
}

/// A slot of which the audit has nothing yet is no mistake, with the daemon up and, where it has a log, with it down; a
/// role stands for all its slots.
#[test]
fn a_slot_without_an_entry_in_the_audit_is_no_wrong_name() {
    let stage = Stage::with(AUTHORS);
    stage.run(&["keys", "first", "enter"]).exits(0);
    let grep = |name: &str| {
        let config = text_of(&stage.config);
        stage.run(&["audit", "grep", "--slot", name, "-c", &config])
    };
    for (name, entries) in [("first", 1), ("@coder", 1), ("second", 0), ("writer", 0)] {
        let found = grep(name).exits(0).stdout;
        assert_eq!(found.lines().count(), entries, "{name}: {found}");
    }
    let config = text_of(&stage.config);
    stage.run(&["down", "--yes", "-c", &config]).exits(0);
    grep("first").exits(0);
    grep("second").exits(0);
    let wrong = grep("secnd").exits(2);
    assert!(wrong.stderr.contains("did you mean `second`?"), "{wrong:?}");
}

#[test]
fn sessions_are_not_counted_as_slots() {
    let stage = Stage::new();
    let stats = stage.run(&["stats", "--json"]).exits(0).json();
    assert_eq!((&stats["total"], &stats["running"]), (&3.into(), &3.into()));
    let words = stage.run(&["stats"]).exits(0).stdout;
    assert!(words.starts_with("3 slots: 3 running"), "{words}");
    assert!(words.contains("1 session"), "{words}");
}
