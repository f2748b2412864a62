//! Programs with subcommands: which of them do the program's ordinary work. An unknown one may be a program of its own (`git-x`,
//! `cargo-x`, a plugin), or an alias for anything.

use super::javascript::in_npms_spelling;
use super::{Harm, has_word};
use crate::core::policy::shell::Word;

/// The ordinary subcommands of a program, and the options that may come before them, separated by spaces.
pub struct Subcommands {
    pub plain: &'static str,
    /// Subcommands with subcommands of their own, and the ordinary ones of those.
    pub groups: &'static [(&'static str, &'static str)],
    /// Options before the subcommand whose value is the next word.
    pub valued: &'static str,
    /// Options before the subcommand without a value.
    pub flags: &'static str,
    /// Options before the subcommand that make the program read another configuration.
    pub misleading: &'static str,
    /// Subcommands that start and stop the services that the project itself describes.
    pub managed: &'static str,
}

/// What an option means for the next word.
#[derive(PartialEq)]
enum Next {
    Untouched,
    Value,
    Unknown,
}

impl Subcommands {
    pub fn harms(&self, words: &[Word]) -> Vec<Harm> {
        self.harms_from(words, 1)
    }

    /// The harms of the subcommand, whose options may begin at `from`. After an unknown option, the next word may be its value or
    /// the subcommand, so the word after it is checked too.
    pub fn harms_from(&self, words: &[Word], from: usize) -> Vec<Harm> {
        let mut harms = Vec::new();
        let mut group: Option<(&str, &str)> = None;
        let mut group_at = 0;
        let mut in_doubt = 0;
        let mut at = from;
        while let Some(text) = words.get(at).map(|word| word.text.as_str()) {
            let here = at;
            at += 1;
            if text.starts_with(['-', '+']) {
                harms.extend(self.harm_of_option(here, text, words));
                let next = self.next_of(text);
                at += usize::from(next == Next::Value);
                in_doubt += usize::from(next == Next::Unknown);
                continue;
            }
            if group.is_none() {
                group = self.groups.iter().find(|(name, _)| *name == text).copied();
                if group.is_some() {
                    group_at = here;
                    continue;
                }
            }
            // A rule that names the service manager also covers starting and stopping services.
            let is_compose = group.map_or(&*words[0].text == "docker-compose", |(name, _)| {
                name == "compose"
            });
            let manages = has_word(self.managed, text) && is_compose;
            let named = if manages { group_at } else { here };
            harms.extend(self.harm_of_operand(named, text, group, words));
            if in_doubt == 0 {
                break;
            }
            in_doubt -= 1;
        }
        harms
    }

    fn harm_of_operand(
        &self,
        at: usize,
        text: &str,
        group: Option<(&str, &str)>,
        words: &[Word],
    ) -> Option<Harm> {
        let ordinary = group.map_or(self.plain, |(_, ordinary)| ordinary);
        if has_word(ordinary, text) {
            return None;
        }
        let program = &words[0].text;
        let why = match group {
            Some((name, _)) => {
                format!("`{program} {name} {text}` does more than look, so a rule has to name it")
            }
            None => format!("`{program} {text}` is not among what {program} ordinarily does"),
        };
        Some(Harm::at(at, why))
    }

    fn harm_of_option(&self, at: usize, text: &str, words: &[Word]) -> Option<Harm> {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let is_misleading =
            has_word(self.misleading, name) || has_word(self.misleading, letter_of(text));
        is_misleading.then(|| {
            let why = format!("`{text}` makes {} obey another file", words[0].text);
            Harm::at(at, why)
        })
    }

    fn next_of(&self, option: &str) -> Next {
        let stands_alone = || {
            option.contains('=')
                || option.starts_with('+')
                || option == "--"
                || has_word(self.flags, option)
                || has_word(self.valued, letter_of(option))
        };
        match has_word(self.valued, option) {
            true => Next::Value,
            false if stands_alone() => Next::Untouched,
            false => Next::Unknown,
        }
    }
}

/// The `-n` of `-nvalue`.
fn letter_of(option: &str) -> &str {
    match option.starts_with("--") {
        true => option,
        false => option.get(..2).unwrap_or(option),
    }
}

/// The words that may be the subcommand: the first operand, and the words before it, which may be option values or subcommands as
/// long as the options are unknown.
pub fn candidates(words: &[Word]) -> Vec<(usize, &str)> {
    /// A subcommand of their own follows these.
    const AROUND: &str = "workspace workspaces foreach npm recursive multi m";
    let mut found = Vec::new();
    // How many operands may still come before the subcommand.
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

/// Whether a word is in a list, or may abbreviate a word of it. Words of `whole` mean something else.
pub fn may_abbreviate(word: &str, list: &str, whole: &str) -> bool {
    let word = in_npms_spelling(word);
    let mut known = list.split_ascii_whitespace();
    !word.is_empty() && !has_word(whole, &word) && known.any(|known| known.starts_with(&*word))
}

/// Subcommands that read, build and test; those that publish, install or start other programs are left out.
pub const CARGO: Subcommands = Subcommands {
    plain: "build b check c test t run r bench doc d clippy fmt fix clean update tree metadata search info add \
        remove rm version help fetch generate-lockfile locate-project pkgid read-manifest report verify-project \
        new init vendor package nextest audit deny outdated machete udeps expand llvm-cov tarpaulin \
        semver-checks insta miri bloat",
    groups: &[],
    valued: "--color --explain --config -C -Z",
    flags: "-v -vv -q --verbose --quiet --locked --offline --frozen --list -V --version -h --help",
    misleading: "",
    managed: "",
};

pub const KUBECTL: Subcommands = Subcommands {
    plain: "get describe logs top version explain api-resources api-versions cluster-info rollout wait diff apply \
        create delete patch scale label annotate set expose autoscale cordon uncordon drain taint events \
        kustomize completion options replace auth help",
    groups: &[(
        "config",
        "view current-context get-contexts get-clusters get-users",
    )],
    valued: "-n --namespace -l --selector -o --output -v --v --cluster --user --request-timeout --context \
        --kubeconfig -s --server --token --as --as-group --as-uid --cache-dir --certificate-authority \
        --client-certificate --client-key --tls-server-name --password --username --profile --profile-output \
        --log-flush-frequency --vmodule --kuberc",
    flags: "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression -h --help \
        --version -A --all-namespaces",
    misleading: "",
    managed: "",
};

pub const HELM: Subcommands = Subcommands {
    plain: "completion create dependency dep dependencies env get help history hist install lint list ls package pull \
        fetch repo rollback search show inspect status template test uninstall un del delete upgrade verify version",
    groups: &[],
    valued: "-n --namespace --kube-context --burst-limit --qps --kube-as-user --kube-as-group --kube-token",
    flags: "--debug -h --help --kube-insecure-skip-tls-verify",
    misleading: "",
    managed: "",
};

const MANAGED: &str = "up down build start stop restart pull create rm pause unpause wait watch";

/// Subcommands that list and show, on both levels.
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
    valued: "-l --log-level -c --context --config -H --host --tlscacert --tlscert --tlskey -f --file -p \
        --project-name --profile --env-file --project-directory --ansi --progress --parallel",
    flags: "-D --debug --tls --tlsverify -v --version -h --help --dry-run --compatibility --all-resources --verbose \
        -r --remote --syslog --noout",
    misleading: "-f --file --env-file --project-directory",
    managed: MANAGED,
};

pub const DOCKER_COMPOSE: Subcommands = Subcommands {
    plain: SHOWN,
    groups: &[],
    valued: "-f --file -p --project-name --profile --env-file --project-directory --ansi --progress --parallel \
        -H --host -c --context --log-level --tlscacert --tlscert --tlskey",
    flags: "-D --debug --tls --tlsverify -v --version -h --help --dry-run --compatibility --all-resources --verbose --no-ansi",
    misleading: "-f --file --env-file --project-directory -H --host -c --context",
    managed: MANAGED,
};

/// Only viewing, for groups that change the machine or run something.
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
    valued: "-R --repo --hostname",
    flags: "-h --help --version",
    misleading: "",
    managed: "",
};

pub const SYSTEMCTL: Subcommands = Subcommands {
    plain: "status show cat is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets \
        list-dependencies list-jobs get-default show-environment help",
    groups: &[],
    valued: "-t --type --state -n --lines -o --output -p -P --property -H --host -M --machine --root --image -s \
        --signal --job-mode --what --timestamp",
    flags: "-a --all --no-pager --no-legend -l --full --user --system -q --quiet --failed --plain -r --recursive \
        --no-ask-password --global --runtime --reverse --after --before --with-dependencies --value -h --help \
        --version",
    misleading: "",
    managed: "",
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
    flags: "-v --verbose -q --quiet -h --help -V --version",
    misleading: "",
    managed: "",
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
            ("cargo +nightly evil", Some(2)),
            ("cargo +nightly test", None),
            ("cargo", None),
        ] {
            let harms = CARGO.harms(&words(text));
            let places: Vec<usize> = harms.iter().map(|harm| harm.at).collect();
            assert_eq!(places, Vec::from_iter(at), "{text}");
        }
        assert!(DOCKER.harms(&words("docker compose ps")).is_empty());
        let up = DOCKER.harms(&words("docker compose up"));
        assert_eq!(
            up.first().map(|harm| harm.at),
            Some(1),
            "a rule for compose has meant it"
        );
        assert_eq!(
            DOCKER
                .harms(&words("docker compose exec x"))
                .first()
                .map(|harm| harm.at),
            Some(2)
        );
        assert!(
            !DOCKER
                .harms(&words("docker container exec x id"))
                .is_empty()
        );
        assert!(KUBECTL.harms(&words("kubectl -n exec get pods")).is_empty());
        assert!(!KUBECTL.harms(&words("kubectl -n x exec pod")).is_empty());
        assert!(
            !KUBECTL
                .harms(&words("kubectl --new get exec pod"))
                .is_empty()
        );
        assert!(KUBECTL.harms(&words("kubectl -nx get pods")).is_empty());
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
