//! The values of `$…` expansions.

use super::super::words::Word;
use super::here::Here;
use super::variables::{self, Value};
use super::{DEEPEST, Reader};
use crate::core::policy::shell::Simple;

/// Variables that never hold a secret: their values may be shown.
const SHOWN: &str = "PATH USER LOGNAME SHELL LANG TERM HOSTNAME OLDPWD TMPDIR EDITOR PAGER RANDOM SECONDS LINENO UID EUID PPID \
    BASH_VERSION GOPATH GOROOT PYTHONPATH NODE_ENV NODE_PATH VIRTUAL_ENV CONDA_PREFIX CARGO_HOME RUSTUP_HOME JAVA_HOME CI \
    DEBUG RUST_LOG RUST_BACKTRACE RUSTFLAGS CC CXX CFLAGS CXXFLAGS LDFLAGS LD_LIBRARY_PATH PKG_CONFIG_PATH XDG_RUNTIME_DIR \
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME DISPLAY COLUMNS LINES TZ ARCH OS OSTYPE HOSTTYPE MACHTYPE";

impl Reader<'_> {
    /// The expansion after a `$`.
    pub fn expansion(&mut self) -> Option<Value> {
        if self.rest().starts_with("$((") {
            return self.arithmetic();
        }
        if self.takes("$(") {
            return self.substitution();
        }
        if ["$?", "$$", "$#", "$!"].iter().any(|mark| self.takes(mark)) {
            return Some(Value::Number);
        }
        let braced = self.rest().starts_with("${");
        self.at += 1 + usize::from(braced);
        let name = variables::name(self.rest())?;
        self.at += name.len();
        let mut value = self.variable(name);
        if braced && self.takes(":-") {
            let or = self.rest().split('}').next()?;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,/ -".contains(&byte);
            or.bytes().all(is_plain).then_some(())?;
            self.at += or.len();
            value = value.map(|_| Value::Text);
        }
        (!braced || self.takes("}")).then_some(())?;
        value
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let own = self.variables.get(name).cloned();
        let known = || match name {
            "HOME" => Some(Value::Known("~".to_owned())),
            "PWD" => Some(Value::Known(".".to_owned())),
            _ => {
                let mut shown = SHOWN.split_ascii_whitespace();
                shown.any(|known| known == name).then_some(Value::Text)
            }
        };
        own.or_else(known)
    }

    /// `$((…))` of digits, signs, and names whose values are digits: other values could contain commands.
    fn arithmetic(&mut self) -> Option<Value> {
        self.at += "$((".len();
        let end = self.rest().find("))")?;
        let inside = &self.rest()[..end];
        let mut rest = inside;
        while let Some(next) = rest.chars().next() {
            let named = rest.strip_prefix('$').unwrap_or(rest);
            let length = match variables::name(named) {
                Some(name) if self.variables.is_number(name) => {
                    name.len() + rest.len() - named.len()
                }
                Some(_) => return None,
                None if " +-*/%<>()".contains(next) || next.is_ascii_digit() => 1,
                None => return None,
            };
            rest = &rest[length..];
        }
        self.at += end + 2;
        Some(Value::Number)
    }

    /// `$(…)`, after its opening.
    fn substitution(&mut self) -> Option<Value> {
        self.waiting.is_empty().then_some(())?;
        if let Some(text) = self.here_text() {
            return Some(Value::Known(text));
        }
        let begin = self.proven.commands.len();
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(())?;
        self.list(&[])?;
        self.depth -= 1;
        (self.waiting.is_empty() && self.takes(")")).then_some(())?;
        let commands = &self.proven.commands[begin..];
        Some(match commands {
            [only] if prints_numbers(only) => Value::Number,
            _ => Value::Text,
        })
    }

    /// The text of `cat <<'EOF'`, as the program gets it.
    fn here_text(&mut self) -> Option<String> {
        let begin = self.at;
        let rest = self.rest();
        let rest = rest.trim_start_matches([' ', '\n']);
        let start = self.at + self.rest().len() - rest.len();
        let behind = rest.strip_prefix("cat")?.trim_start_matches(' ');
        let behind = behind
            .strip_prefix("<<")
            .filter(|rest| !rest.starts_with('<'))?;
        let here = Here::read(behind)?;
        let line = behind[here.length..].trim_start_matches(' ');
        let text = line.strip_prefix('\n')?;
        let body = here.body(text)?;
        let after = text[body.length..].trim_start_matches([' ', '\n']);
        let after = after.strip_prefix(')')?;
        self.at += self.rest().len() - after.len();
        let content = here.content(&body);
        (!content.contains('\0') && self.at > begin).then_some(())?;
        self.proven.commands.push(Simple {
            text: "cat".to_owned(),
            start,
            words: vec![Word {
                text: "cat".to_owned(),
                start,
                length: 3,
                ..Word::default()
            }],
            guessed: false,
        });
        Some(content.trim_end_matches('\n').to_owned())
    }
}

/// Whether a command prints only digits, or the hash of a commit.
fn prints_numbers(command: &Simple) -> bool {
    let words: Vec<&str> = command
        .words
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let is_number =
        |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match words.as_slice() {
        ["nproc"] | ["date", "+%s"] | ["wc", "-l" | "-c" | "-w"] => true,
        ["seq", rest @ ..] => rest.iter().all(is_number),
        ["git", "rev-list", "--count", _] => true,
        // The hash of a commit: as harmless as a number.
        ["git", "merge-base", first, second] => !first.starts_with('-') && !second.starts_with('-'),
        ["git", "rev-parse", "HEAD"] | ["git", "rev-parse", "--short", "HEAD"] => true,
        _ => false,
    }
}
