//! Programs with subcommands: which of them do the program's ordinary work. What is not known may be a program of
//! its own (`git-x`, `cargo-x`, a plugin), or an alias for anything.

use super::{Harm, has_word};
use crate::policy::shell::Word;

/// The ordinary subcommands of a program, with blanks between them.
pub struct Subcommands {
    pub plain: &'static str,
    /// Subcommands with subcommands of their own, and which of those are ordinary.
    pub groups: &'static [(&'static str, &'static str)],
    /// Options before the subcommand whose value is the word behind them.
    pub valued: &'static str,
}

impl Subcommands {
    pub fn harm(&self, words: &[Word]) -> Option<Harm> {
        let program = words.first()?.text.as_str();
        let mut operands = self.operands(words);
        let (at, first) = operands.next()?;
        if has_word(self.plain, first) {
            return None;
        }
        let Some((_, ordinary)) = self.groups.iter().find(|(group, _)| *group == first) else {
            let why = format!("`{program} {first}` is not among what {program} ordinarily does");
            return Some(Harm::at(at, why));
        };
        let (at, second) = operands.next()?;
        (!has_word(ordinary, second)).then(|| {
            let why = format!("`{program} {first} {second}` is not among what only looks");
            Harm::at(at, why)
        })
    }

    fn operands<'w>(&self, words: &'w [Word]) -> impl Iterator<Item = (usize, &'w str)> {
        let mut value_follows = false;
        words
            .iter()
            .enumerate()
            .skip(1)
            .filter_map(move |(at, word)| {
                let text = word.text.as_str();
                let is_value = std::mem::replace(&mut value_follows, has_word(self.valued, text));
                (!is_value && !text.starts_with('-')).then_some((at, text))
            })
    }
}

/// The words that may be the subcommand: the first operand, and what stands before it as the value of an option
/// or as a subcommand, which can't be told without knowing the options.
pub fn candidates(words: &[Word]) -> Vec<(usize, &str)> {
    /// These are followed by a subcommand of their own.
    const AROUND: &str = "workspace workspaces foreach npm";
    let mut found = Vec::new();
    // How many operands may still stand before the subcommand.
    let mut before = 0;
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if text.starts_with('-') {
            before += usize::from(!text.contains('='));
            continue;
        }
        found.push((at, text));
        if has_word(AROUND, text) {
            before += 1;
        } else if before == 0 {
            break;
        } else {
            before -= 1;
        }
    }
    found
}

/// Subcommands that read, build and test; those that publish, install or start other programs are left out.
pub const CARGO: Subcommands = Subcommands {
    plain: "build b check c test t run r bench doc d clippy fmt fix clean update tree metadata search info add \
        remove rm version help fetch generate-lockfile locate-project pkgid read-manifest report verify-project \
        new init vendor package nextest audit deny outdated machete udeps expand llvm-cov tarpaulin \
        semver-checks insta miri bloat",
    groups: &[],
    valued: "--color --explain",
};

pub const KUBECTL: Subcommands = Subcommands {
    plain: "get describe logs top version explain api-resources api-versions cluster-info rollout wait diff apply \
        create delete patch scale label annotate set expose autoscale cordon uncordon drain taint events \
        kustomize completion options replace auth help",
    groups: &[(
        "config",
        "view current-context get-contexts get-clusters get-users",
    )],
    valued: "-n --namespace -l --selector -o --output -v --cluster --user --request-timeout",
};

/// What lists and shows, on either level.
const SHOWN: &str =
    "ls list inspect logs ps top stats images config version port df show diff history events info";

pub const DOCKER: Subcommands = Subcommands {
    plain: "ps images logs inspect version info stats top port diff history search events pull stop rm rmi kill \
        restart pause unpause wait rename tag help",
    groups: &[
        ("compose", SHOWN),
        ("container", SHOWN),
        ("image", SHOWN),
        ("network", SHOWN),
        ("volume", SHOWN),
        ("system", SHOWN),
        ("context", SHOWN),
        ("node", SHOWN),
        ("service", SHOWN),
        ("manifest", SHOWN),
    ],
    valued: "-l --log-level",
};

pub const DOCKER_COMPOSE: Subcommands = Subcommands {
    plain: SHOWN,
    groups: &[],
    valued: "-p --project-name --profile",
};

/// Of what changes the machine or runs something, nothing.
const VIEWED: &str = "view list status watch";

pub const GH: Subcommands = Subcommands {
    plain: "pr issue api search status label ruleset help version",
    groups: &[
        ("repo", VIEWED),
        ("run", VIEWED),
        ("release", VIEWED),
        ("gist", VIEWED),
        ("workflow", VIEWED),
        ("cache", VIEWED),
        ("project", VIEWED),
        ("org", VIEWED),
        ("auth", VIEWED),
        ("variable", VIEWED),
        ("extension", VIEWED),
        ("alias", VIEWED),
    ],
    valued: "-R --repo",
};

pub const SYSTEMCTL: Subcommands = Subcommands {
    plain: "status show cat is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets \
        list-dependencies list-jobs get-default show-environment help",
    groups: &[],
    valued: "-t --type --state -n --lines -o --output -p --property",
};

pub const RUSTUP: Subcommands = Subcommands {
    plain: "show which doc check help completions",
    groups: &[
        ("toolchain", "list"),
        ("target", "list"),
        ("component", "list"),
        ("override", "list"),
    ],
    valued: "",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let word = |text: &str| Word {
            text: text.to_owned(),
            ..Word::default()
        };
        text.split(' ').map(word).collect()
    }

    #[test]
    fn what_is_not_known_is_harmful() {
        for (text, at) in [
            ("cargo build", None),
            ("cargo --color always test", None),
            ("cargo evil", Some(1)),
            ("cargo -q evil", Some(2)),
            ("cargo", None),
        ] {
            let harm = CARGO.harm(&words(text));
            assert_eq!(harm.map(|harm| harm.at), at, "{text}");
        }
        assert!(DOCKER.harm(&words("docker compose ps")).is_none());
        assert!(DOCKER.harm(&words("docker compose up")).is_some());
        assert!(DOCKER.harm(&words("docker container exec x id")).is_some());
        assert!(KUBECTL.harm(&words("kubectl -n exec get pods")).is_none());
        assert!(KUBECTL.harm(&words("kubectl -n x exec pod")).is_some());
    }

    #[test]
    fn every_word_that_may_be_the_subcommand_is_found() {
        let texts = |text: &str| -> Vec<String> {
            let words = words(text);
            let found = candidates(&words);
            found.into_iter().map(|(_, word)| word.to_owned()).collect()
        };
        assert_eq!(texts("npm run exec"), ["run"]);
        assert_eq!(texts("npm -s exec x"), ["exec", "x"]);
        assert_eq!(texts("pnpm --filter foo exec x"), ["foo", "exec"]);
        assert_eq!(
            texts("yarn workspace foo exec x"),
            ["workspace", "foo", "exec"]
        );
    }
}
