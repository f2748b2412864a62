//! The kinds of projects, the files that identify them, and the rules that a role needs to work in one.

use super::add_allow_rule;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    stack: Vec<Stack>,
}

/// A kind of project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The name for people.
    pub name: String,
    marks: Vec<String>,
    coder: Vec<String>,
    reviewer: Vec<String>,
}

static STACKS: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("tables/stacks.toml"));
    // A test proves that the file can be parsed.
    file.map_or_else(|_| Vec::new(), |file| file.stack)
});

/// The kinds of a project with these files in its top directory.
pub fn stacks_of(has: impl Fn(&str) -> bool) -> Vec<&'static Stack> {
    let is_one = |stack: &&Stack| stack.marks.iter().any(|mark| has(mark));
    STACKS.iter().filter(is_one).collect()
}

impl Stack {
    /// The rules that a role needs in addition to those for every project.
    fn rules(&self, role: &str) -> &[String] {
        match role {
            "coder" => &self.coder,
            "reviewer" => &self.reviewer,
            _ => &[],
        }
    }
}

/// The text of a role's policy with the rules for some kinds of projects; unchanged if it can't be parsed.
pub fn policy_for_stacks(text: &str, role: &str, stacks: &[&Stack]) -> String {
    let mut out = text.to_owned();
    for rule in stacks.iter().flat_map(|stack| stack.rules(role)) {
        out = add_allow_rule(&out, rule).unwrap_or(out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::*;
    use std::path::Path;

    #[test]
    fn a_project_is_known_by_its_files() {
        let of = |files: &[&str]| -> Vec<&str> {
            let found = stacks_of(|name| files.contains(&name));
            found.iter().map(|stack| stack.name.as_str()).collect()
        };
        assert_eq!(of(&["Cargo.toml", "README.md"]), ["Rust"]);
        assert_eq!(
            of(&["package.json", "compose.yaml", "Makefile"]),
            ["Node", "Make", "Compose"]
        );
        assert!(of(&[]).is_empty());
        assert_eq!(STACKS.len(), 10);
    }

    /// The examples of the shipped roles pass with the rules of every kind of project.
    #[test]
    fn the_shipped_roles_load_with_every_kind() {
        let all: Vec<&Stack> = STACKS.iter().collect();
        for (role, text) in [
            ("coder", include_str!("../../../policies/coder.toml")),
            ("reader", include_str!("../../../policies/reader.toml")),
            ("reviewer", include_str!("../../../policies/reviewer.toml")),
        ] {
            let text = policy_for_stacks(text, role, &all);
            let policy = Policy::parse(&text, Path::new("role.toml"), Path::new("/proj"));
            assert!(policy.is_ok(), "{role}: {:?}", policy.err());
        }
    }

    /// Every rule can be loaded, and can allow something.
    #[test]
    fn the_rules_of_every_kind_are_good() {
        let all: Vec<&Stack> = STACKS.iter().collect();
        for role in ["coder", "reader", "reviewer"] {
            let text = policy_for_stacks("default = \"ask\"\nallow = []\n", role, &all);
            let policy = Policy::parse(&text, Path::new("role.toml"), Path::new("/proj"));
            let policy = policy.unwrap_or_else(|problems| panic!("{text}\n{problems:?}"));
            let without_effect: Vec<_> = policy.rules_without_effect().collect();
            assert!(without_effect.is_empty(), "{without_effect:?}");
            assert_eq!(policy.rules().count() > 20, role != "reader", "{role}");
        }
    }
}
