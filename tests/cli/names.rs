//! Names that nothing has, `@role` and `--all`, at every command that takes a slot or a session.

use crate::fake::{Home, Ran, text_of};
use std::path::PathBuf;

/// A daemon with two slots of the role `coder`, one of the role `lone`, and a session.
struct Stage {
    home: Home,
    config: PathBuf,
}

impl Stage {
    fn new() -> Stage {
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
        let config = home.write("slots.toml", &slots.concat());
        let stage = Stage { home, config };
        stage
            .home
            .run(&["up", "-c", &text_of(&stage.config)])
            .exits(0);
        stage.home.run(&["wait", "--all", "--for", "idle"]).exits(0);
        stage.run(&["spawn", "--", "cat"]).exits(0);
        stage
    }

    fn run(&self, line: &[&str]) -> Ran {
        self.home.run(line)
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
    ("ask", &["hello"]),
    ("submit", &["hello"]),
    ("confirm", &["yes"]),
    ("screen", &[]),
    ("history", &[]),
    ("search", &["x"]),
    ("logs", &[]),
    ("write", &["x"]),
    ("keys", &["enter"]),
    ("why", &[]),
    ("info", &[]),
    ("type", &["x"]),
    ("resize", &["80", "24"]),
    ("signal", &["INT"]),
    ("close", &[]),
    ("output", &[]),
    ("clear", &[]),
];

fn line<'a>(verb: &'a str, name: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let mut line = vec![verb, name];
    line.extend(words);
    line
}

#[test]
fn a_role_of_one_slot_is_that_slot_and_one_of_several_is_refused_with_their_names() {
    let stage = Stage::new();
    for (verb, words) in ONE {
        // A task goes to any slot of a role, and `ask` is a task.
        if ["submit", "ask"].contains(verb) {
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

#[test]
fn sessions_are_not_counted_as_slots() {
    let stage = Stage::new();
    let stats = stage.run(&["stats", "--json"]).exits(0).json();
    assert_eq!((&stats["total"], &stats["running"]), (&3.into(), &3.into()));
    let words = stage.run(&["stats"]).exits(0).stdout;
    assert!(words.starts_with("3 slots: 3 running"), "{words}");
    assert!(words.contains("1 session"), "{words}");
}
