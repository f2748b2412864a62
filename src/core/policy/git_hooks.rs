//! Reads git's settings for the programs that git runs: the directory of the hooks, and settings that name a program.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// The programs that git looks for in its hooks directory.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// A setting in a git config file that makes git run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// `core.hooksPath`.
    HooksPath(String),
    /// The name of a setting whose value git runs, such as `diff.external`.
    Program(String),
    /// Another config file. Its condition is not evaluated: it counts as true.
    Include(String),
}

/// The protected paths of a hooks directory: the whole directory, or only the hooks if the slot works in it.
pub fn protected_in(hooks: PathBuf, cwd: &Path) -> Vec<PathBuf> {
    match cwd.starts_with(&hooks) {
        true => HOOKS.iter().map(|hook| hooks.join(hook)).collect(),
        false => vec![hooks],
    }
}

/// Reads a git config file. Lines that are not settings are skipped.
pub fn settings(text: &str) -> Vec<Setting> {
    let mut chars = text.chars().peekable();
    let mut section = String::new();
    let mut found = Vec::new();
    while let Some(next) = chars.next() {
        match next {
            '[' => section = section_name(&mut chars),
            '#' | ';' => skip_line(&mut chars),
            letter if letter.is_ascii_alphabetic() => {
                let key = key(letter, &mut chars);
                let value = value(&mut chars);
                found.extend(setting(&section, &key, value));
            }
            _ => {}
        }
    }
    found
}

fn setting(section: &str, key: &str, value: String) -> Option<Setting> {
    match (section, key) {
        _ if value.is_empty() => None,
        ("core", "hookspath") => Some(Setting::HooksPath(value)),
        ("include" | "includeif", "path") => Some(Setting::Include(value)),
        _ if runs(section, key, &value) => Some(Setting::Program(format!("{section}.{key}"))),
        _ => None,
    }
}

/// Whether everyday git commands run the value of this setting. The pager is not included, because the commands of a slot do not
/// write to a terminal; nor are aliases, because a rule never matches a subcommand that may be an alias.
fn runs(section: &str, key: &str, value: &str) -> bool {
    const SWITCHES: &[&str] = &["true", "false", "yes", "no", "on", "off", "1", "0"];
    match (section, key) {
        ("core", "fsmonitor") => !SWITCHES.iter().any(|word| value.eq_ignore_ascii_case(word)),
        ("core", "sshcommand" | "gitproxy" | "askpass" | "editor")
        | ("diff", "external" | "command" | "textconv")
        | ("merge", "driver")
        | ("gpg", "program")
        | ("credential", "helper")
        | ("sequence", "editor")
        | ("interactive", "difffilter")
        | ("remote", "uploadpack" | "receivepack" | "vcs") => true,
        ("filter", "clean" | "smudge" | "process") => !value.starts_with("git-lfs "),
        ("submodule", "update") => value.starts_with('!'),
        _ => false,
    }
}

/// The name of a section without its subsection: `[includeIf "gitdir:~/x"]` is `includeif`.
fn section_name(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut header = String::new();
    let mut quoted = false;
    while let Some(next) = chars.next() {
        match next {
            '\\' => drop(chars.next()),
            '"' => quoted = !quoted,
            ']' if !quoted => break,
            '\n' => break,
            other => header.push(other),
        }
    }
    let name = header.split([' ', '\t', '.']).next().unwrap_or_default();
    name.to_ascii_lowercase()
}

fn key(first: char, chars: &mut Peekable<Chars<'_>>) -> String {
    let mut key = String::from(first.to_ascii_lowercase());
    while let Some(next) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
        key.push(next.to_ascii_lowercase());
    }
    key
}

/// The rest of the line after a key, with its continuation lines; empty if there is no `=`.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let is_blank = |c: &char| matches!(c, ' ' | '\t' | '\r');
    while chars.next_if(is_blank).is_some() {}
    if chars.next_if_eq(&'=').is_none() {
        return String::new();
    }
    while chars.next_if(is_blank).is_some() {}
    let (mut value, mut quoted, mut end) = (String::new(), false, 0);
    while let Some(next) = chars.next() {
        match next {
            '\n' => break,
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            '\\' => {
                value.extend(escaped(chars));
                end = value.len();
            }
            other => {
                value.push(other);
                if quoted || !is_blank(&other) {
                    end = value.len();
                }
            }
        }
    }
    value.truncate(end);
    value
}

/// The character that a backslash and the next character mean; none at the end of a line.
fn escaped(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    chars.next_if_eq(&'\r');
    match chars.next()? {
        '\n' => None,
        'n' => Some('\n'),
        't' => Some('\t'),
        'b' => Some('\u{8}'),
        other => Some(other),
    }
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    for next in chars {
        if next == '\n' {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let hooks = |path: &str| vec![Setting::HooksPath(path.to_owned())];
        for (text, path) in [
            ("[core]\n\thooksPath = tools/hooks\n", "tools/hooks"),
            ("[CORE] HooksPath=a b \t # why\n", "a b"),
            ("[core]\r\nhooksPath = a\r\n[x]\r\n", "a"),
            (
                "[core]\nbare\nhookspath = \" a;\\\"b\\\\\" ; c\n",
                " a;\"b\\",
            ),
            ("[core]\nhooksPath = a\\\n/b\n", "a/b"),
            ("[core]\n# x \\\nhooksPath = ~/h", "~/h"),
            ("[other \"[core]\"]\nx = 1\n[core]\nhooksPath = a", "a"),
        ] {
            assert_eq!(settings(text), hooks(path), "{text}");
        }
        for text in [
            "",
            "[core]\nhooksPath\n",
            "[core]\n# hooksPath = a\n",
            "[x]\nhooksPath = a\n",
            "[core]\nx = \"\\\nhooksPath = a\"\n",
        ] {
            assert_eq!(settings(text), [], "{text}");
        }
        let included = "[include]\npath = a\n[includeIf \"gitdir:/x]\"]\npath = b";
        let include = |path: &str| Setting::Include(path.to_owned());
        assert_eq!(settings(included), [include("a"), include("b")]);
    }
}
