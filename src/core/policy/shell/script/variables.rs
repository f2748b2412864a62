//! Variables that a command sets, and what is known about their values.

use super::word::Part;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What is known about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Known(String),
    /// One of the files that a glob matches.
    Glob(String),
    /// Digits.
    Number,
    /// Any text.
    Text,
}

impl Value {
    fn is_number(&self) -> bool {
        match self {
            Value::Known(text) => {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            Value::Number => true,
            Value::Glob(_) | Value::Text => false,
        }
    }

    /// What is known about a value that is either of the two.
    fn or(&self, other: &Value) -> Value {
        match self.is_number() && other.is_number() {
            _ if self == other => self.clone(),
            true => Value::Number,
            false => Value::Text,
        }
    }
}

/// The variables that a command has set so far.
#[derive(Debug, Default)]
pub struct Variables {
    values: HashMap<String, Value>,
    /// Variables that a loop or a branch changes, with their combined value, which holds from the beginning.
    changing: HashMap<String, Value>,
    /// A new change was found: what was read before may be wrong.
    outdated: bool,
}

impl Variables {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Whether the value of a variable is digits.
    pub fn is_number(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(Value::is_number)
    }

    /// Records a value. An assignment in a loop or a branch may run once, often or never, so the value is one of several.
    pub fn set(&mut self, name: &str, value: Value, nested: bool) -> Option<()> {
        let value = match (nested, value) {
            (true, value) if value.is_number() => Value::Number,
            (true, _) => Value::Text,
            (false, value) => value,
        };
        let known = self.changing.get(name).or_else(|| self.values.get(name));
        let joined = known.map_or_else(|| value.clone(), |known| known.or(&value));
        if nested && known.is_some_and(|known| *known != joined) {
            self.changing.insert(name.to_owned(), joined);
            self.outdated = true;
            return None;
        }
        let value = match self.changing.get(name) {
            Some(_) if !nested && known != Some(&joined) => {
                self.changing.insert(name.to_owned(), joined);
                self.outdated = true;
                return None;
            }
            Some(changing) => changing.clone(),
            None => value,
        };
        self.values.insert(name.to_owned(), value);
        Some(())
    }

    /// The variable of a loop has one value after the other, and nothing else may set it.
    pub fn set_for_loop(&mut self, name: &str, value: Value) -> Option<()> {
        let is_free = may_be_set(name) && !self.changing.contains_key(name);
        is_free.then(|| {
            self.values.insert(name.to_owned(), value);
        })
    }

    pub fn end_of_loop(&mut self, name: &str) {
        self.values.insert(name.to_owned(), Value::Text);
    }

    /// Whether the command has to be read again from its beginning, with only the changing variables known.
    pub fn begin_again(&mut self) -> bool {
        self.values.clear();
        std::mem::take(&mut self.outdated)
    }
}

/// The name of a variable at the beginning of a text.
pub fn name(text: &str) -> Option<&str> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().take_while(|byte| is_name(byte)).count();
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && length > 0).then(|| &text[..length])
}

/// A name, and the values with which it is harmless; `None` means any value.
type Harmless = (&'static str, Option<Vec<&'static str>>);

/// Names that are harmless in the environment of a program.
static HARMLESS: LazyLock<Vec<Harmless>> = LazyLock::new(|| {
    let lines = include_str!("../../tables/variables.txt").lines();
    let lines = lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(entry).collect()
});

fn entry(line: &'static str) -> Harmless {
    match line.split_once('=') {
        Some((name, values)) => (name, Some(values.split('|').collect())),
        None => (line, None),
    }
}

fn harmless_values(name: &str) -> Option<&'static Option<Vec<&'static str>>> {
    let fits = |known: &str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => known == name,
    };
    let mut entries = HARMLESS.iter();
    entries
        .find(|(known, _)| fits(known))
        .map(|(_, values)| values)
}

/// Whether a variable with this value is harmless in the environment of any program.
pub fn may_be_in_environment(name: &str, part: &Part) -> bool {
    match harmless_values(name) {
        Some(None) => part.is_one_word(),
        Some(Some(values)) => {
            let text = part.word.text.as_str();
            part.is_known() && values.iter().any(|value| is_value(value, text))
        }
        None => false,
    }
}

/// Whether a text is a value of the table, in which `#` means digits and `%` the dotted name of a module.
fn is_value(value: &str, text: &str) -> bool {
    let Some((before, after)) = value.split_once(['#', '%']) else {
        return value == text;
    };
    let is_number = value[before.len()..].starts_with('#');
    let fits = |byte: u8| match is_number {
        true => byte.is_ascii_digit(),
        false => byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.'),
    };
    let middle = text
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after));
    middle.is_some_and(|middle| !middle.is_empty() && middle.bytes().all(fits))
}

/// Names in lower case that a shell or a program reads.
const TAKEN: &[&str] = &[
    "path",
    "fpath",
    "cdpath",
    "mailpath",
    "manpath",
    "fignore",
    "prompt",
    "psvar",
    "watch",
    "histchars",
    "argv",
    "status",
    "pipestatus",
    "signals",
    "commands",
    "functions",
    "aliases",
    "options",
    "module_path",
    "zsh_eval_context",
];

/// Whether a variable may be set for the rest of a command. It may already be in the environment, and then programs see its new
/// value, so it must be harmless there. Names in lower case belong to scripts, except for some that other programs read.
pub fn may_be_set(name: &str) -> bool {
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let belongs = ["_", "npm_", "pip_", "yarn_", "bundle_", "ld_", "dyld_"];
    let is_own = name.bytes().all(is_lower)
        && !belongs.iter().any(|start| name.starts_with(start))
        && !name.ends_with("_proxy")
        && !TAKEN.contains(&name);
    is_own || harmless_values(name).is_some_and(Option::is_none)
}
