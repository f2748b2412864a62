//! Well-known secrets, which are protected without a rule. `tables/secrets.txt` lists them.

use super::ground::Ground;
use super::paths::below;
use super::pattern::fits;
use std::path::Path;
use std::sync::LazyLock;

struct Secret {
    /// Only in a home directory.
    at_home: bool,
    names: Vec<&'static str>,
}

static SECRETS: LazyLock<Vec<Secret>> = LazyLock::new(|| {
    let lines = include_str!("tables/secrets.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let secret = |line: &'static str| Secret {
        at_home: line.starts_with("~/"),
        names: line.trim_start_matches("~/").split('/').collect(),
    };
    lines.map(secret).collect()
});

/// Whether a word, or the path in it, names a secret.
pub fn are_named(word: &str) -> bool {
    // A cheap test that excludes nearly every word.
    if !word.starts_with('.') && !word.bytes().any(|byte| byte == b'/') {
        return false;
    }
    let may_be = ["/.", "etc/", "run/", "proc/"]
        .iter()
        .any(|start| word.contains(start));
    if !may_be && !word.starts_with('.') {
        return false;
    }
    let parts = word
        .split(['/', '=', '@', ':'])
        .filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    let home = names_before_home(&parts);
    SECRETS.iter().any(|secret| match secret.at_home {
        true => home.is_some_and(|home| secret.is_named_by(&parts[home..])),
        false => {
            (0..parts.len()).any(|at| may_begin(&parts, at) && secret.is_named_by(&parts[at..]))
        }
    })
}

/// Whether a secret may begin at this part of a word. A glob counts only if it is in a directory and begins with a dot; other
/// globs are programs for jq and the like.
fn may_begin(parts: &[&str], at: usize) -> bool {
    !parts[at].contains(['*', '?', '[']) || at > 0 && parts[at].starts_with('.')
}

/// How many leading components make a home directory: `~`, `$HOME`, `/home/name`, `/root`.
fn names_before_home(parts: &[&str]) -> Option<usize> {
    match parts {
        ["$HOME" | "${HOME}" | "root", ..] => Some(1),
        [first, ..] if first.starts_with('~') => Some(1),
        ["home" | "Users", _, ..] => Some(2),
        _ => None,
    }
}

impl Secret {
    fn is_named_by(&self, way: &[&str]) -> bool {
        let is_named = |(part, name): (&&str, &&str)| {
            let is_glob = part.contains(['*', '?', '[']);
            let any = name
                .strip_suffix('*')
                .is_some_and(|start| part.starts_with(start));
            part == name || any || is_glob && fits(part, name)
        };
        way.len() >= self.names.len() && way.iter().zip(&self.names).all(is_named)
    }
}

/// Whether a path is a secret or below one.
pub fn is_one(path: &Path, ground: &Ground<'_>) -> bool {
    let homes = ground.home().into_iter().flatten();
    let mut below_home = homes.filter_map(|home| below(path, home));
    let at_home = below_home.any(|below| are_named(&format!("~/{}", below.display())));
    at_home || ground.seen_from_cwd(path).to_str().is_some_and(are_named)
}

/// Whether a secret may be below a directory that is not the slot's own.
pub fn may_lie_below(path: &Path, ground: &Ground<'_>) -> bool {
    let is_outside = !ground.cwd.iter().any(|own| path.starts_with(own));
    let is_above = |own: &std::path::PathBuf| own.starts_with(path);
    let holds_home = || ground.home().is_some_and(|home| home.iter().any(is_above));
    let name = path.file_name().and_then(|name| name.to_str());
    let is_first = |secret: &Secret| secret.names.len() > 1 && Some(secret.names[0]) == name;
    is_outside && (ground.cwd.iter().any(is_above) || holds_home() || SECRETS.iter().any(is_first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for word in [
            "~/.ssh/id_rsa",
            "/home/u/.ssh",
            "x/.ssh/a",
            "/etc/shadow",
            "/etc/ssl/private/a.key",
            "/etc/ssh/ssh_host_rsa_key",
            "~/.npmrc",
            "$HOME/.npmrc",
            "/root/.npmrc",
            "/home/u/.npmrc",
            "~/.vault-token",
            "~/.azure/x",
            "/run/secrets/db",
            "/var/run/secrets/x",
            "/proc/1/environ",
            "/proc/self/environ",
            "--file=~/.netrc",
            "@/etc/shadow",
            "~/.config/gh/hosts.yml",
            "~/.cargo/credentials",
            "~/.cargo/credentials.toml",
            "~/.docker/config.json",
            "~/.kube/config",
            "~/.git-credentials",
            "~/.pypirc",
            "/etc/sh*/../etc/shadow",
            "~/.docker/c*",
            "~/.npmr*",
            "~/.[n]pmrc",
            "~/.s*/id_rsa",
        ] {
            assert!(are_named(word), "{word}");
        }
        for word in [
            ".npmrc",
            ".a[]",
            "web/.npmrc",
            "src/.env",
            "/etc/hosts",
            "/etc/ssl/certs/a.pem",
            "/proc/cpuinfo",
            "/proc/1/status",
            "~/.cargo/config.toml",
            ".docker/Dockerfile",
            "src/a.rs",
            ".config/nextest.toml",
            "run/server",
            "~/.config/nvim/init.lua",
        ] {
            assert!(!are_named(word), "{word}");
        }
    }
}
