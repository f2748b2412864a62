//! Paths that no rule lets a slot write: a write there can make programs run later, or change the rules.

use super::ground::Ground;
use super::paths::{Place, normalise};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Directories that are protected with all their content, in every place.
const DIRECTORIES: &[&str] = &[
    ".git",
    ".claude",
    ".githooks",
    ".git-hooks",
    ".husky",
    ".lefthook",
    ".lefthook-local",
    ".vscode",
    ".idea",
    ".ssh",
    ".gnupg",
    ".cargo",
    "claude-code",
];

/// Files that programs read when they start, in every place.
const FILES: &[&str] = &[
    ".claude.json",
    ".mcp.json",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".envrc",
    ".ripgreprc",
    ".npmrc",
    ".yarnrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".inputrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".xprofile",
    ".xinitrc",
    ".vimrc",
    ".exrc",
    ".netrc",
    ".curlrc",
    ".wgetrc",
    "crontab",
    "config.fish",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".pre-commit-hooks.yaml",
    ".overcommit.yml",
    ".lintstagedrc",
    ".lintstagedrc.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    ".lefthook-local.yml",
    ".lefthook-local.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
];

/// Names that identify the git directory of a bare repository.
const GIT_INTERNALS: &[&str] = &["hooks"];

/// Protected paths in addition to the names that are always protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    places: Vec<PathBuf>,
}

impl Protected {
    pub fn add(&mut self, places: impl IntoIterator<Item = PathBuf>) {
        self.places
            .extend(places.into_iter().map(|place| normalise(&place)));
    }

    /// Whether it protects everything that `other` protects.
    pub fn covers(&self, other: &Protected) -> bool {
        other.places.iter().all(|place| self.places.contains(place))
    }

    /// The paths themselves, without the names that are always protected.
    pub fn places(&self) -> &[PathBuf] {
        &self.places
    }
}

/// Why a slot may not write there; `None` if it may.
pub fn forbids(place: &Place, ground: &Ground<'_>) -> Option<String> {
    let own = |path: &Path| ground.protected().iter().any(|own| path.starts_with(own));
    let path = place
        .ways()
        .find(|path| protected_by_name(path) || own(path))?;
    Some(format!(
        "{} is a protected path: no rule lets a slot write it",
        path.display()
    ))
}

/// Whether something protected is below `place`: moving or removing `place` would move or remove it too.
pub fn lies_below(place: &Place, ground: &Ground<'_>) -> bool {
    place
        .ways()
        .any(|path| ground.protected().iter().any(|own| own.starts_with(path)))
}

/// The first path components from `place` to the protected paths below it.
pub fn names_below<'g>(place: &Place, ground: &'g Ground<'_>) -> Vec<&'g OsStr> {
    let below = |path: &Path| {
        let own = ground.protected().iter();
        own.filter_map(|own| own.strip_prefix(path).ok()?.iter().next())
            .collect::<Vec<_>>()
    };
    place.ways().flat_map(below).collect()
}

/// Whether an unknown name in this directory would be protected.
pub fn protects_names_in(place: &Place) -> bool {
    let is_hooks = |path: &Path| {
        let name = path.file_name();
        name.is_some_and(|name| {
            GIT_INTERNALS
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        })
    };
    place.ways().any(is_hooks)
}

fn protected_by_name(path: &Path) -> bool {
    if !may_be_protected(path) {
        return false;
    }
    let names: Vec<&OsStr> = path.iter().collect();
    // Claude Code keeps whole work trees of a project below its own directory: those are ordinary files.
    let start = names
        .windows(2)
        .position(|pair| pair[0] == ".claude" && pair[1] == "worktrees")
        .map(|at| at + 3)
        .filter(|start| *start < names.len())
        .unwrap_or_default();
    let names = &names[start..];
    let is = |name: &OsStr, list: &[&str]| {
        is_first_letter(name.as_encoded_bytes().first())
            && list.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let last_is_hook = names.len() >= 2
        && is(names[names.len() - 2], GIT_INTERNALS)
        && is_git_hook(names[names.len() - 1]);
    names.iter().any(|name| is(name, DIRECTORIES))
        || names.last().is_some_and(|name| is(name, FILES))
        || last_is_hook
}

/// A cheap test by the first letter, which excludes nearly every name.
fn is_first_letter(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b'.' | b'c' | b'C' | b'h' | b'H' | b'l' | b'L'))
}

fn may_be_protected(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    is_first_letter(bytes.first())
        || bytes
            .windows(2)
            .any(|pair| pair[0] == b'/' && is_first_letter(pair.get(1)))
}

fn is_git_hook(name: &OsStr) -> bool {
    [
        "pre-",
        "post-",
        "prepare-",
        "commit-msg",
        "applypatch-msg",
        "update",
        "fsmonitor-",
    ]
    .iter()
    .any(|start| name.to_string_lossy().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::paths::LexicalPaths;
    use super::*;

    fn forbidden(path: &str) -> bool {
        let mut protected = Protected::default();
        protected.add([
            PathBuf::from("/etc/missiond/slots.toml"),
            PathBuf::from("/var/logs"),
        ]);
        let cwd = Path::new("/proj");
        let ground = Ground::new(&LexicalPaths, cwd, cwd, protected.places());
        forbids(&ground.place(path, cwd), &ground).is_some()
    }

    #[test]
    fn start_up_files_and_own_files_are_protected() {
        for path in [
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".mcp.json",
            "~/.bashrc",
            ".claude/settings.json",
            ".CLAUDE/settings.local.json",
            "/etc/missiond/slots.toml",
            "/var/logs/audit.jsonl",
            "bare/hooks/post-checkout",
            ".githooks/pre-commit",
            ".githooks/lib/any.sh",
            ".husky/pre-push",
            "sub/.pre-commit-config.yaml",
            "lefthook.yml",
            "Lefthook.YML",
            ".lefthook/pre-commit/x.sh",
            "lefthook-local.yml",
            ".overcommit.yml",
            ".claude/worktrees/x/.git",
            "x/../.zshrc",
            ".claude/worktrees",
        ] {
            assert!(forbidden(path), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not() {
        for path in [
            "src/a.rs",
            ".gitignore",
            ".github/workflows/ci.yml",
            ".claude/worktrees/x/src/a.rs",
            "/var/logs2",
            "src/hooks/use.ts",
            "lib/lefthook.rs",
            "docs/githooks/a.md",
        ] {
            assert!(!forbidden(path), "{path}");
        }
    }
}
