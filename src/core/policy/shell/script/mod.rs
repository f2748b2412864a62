//! The slow path for commands with `if`, loops, groups, here-documents, redirections to files, assignments and plain expansions.
//! It accepts a small part of the language, and only if everything that will run is known: the programs, their words, and the
//! files that they read and write. Everything else goes to the parser, and then a person is asked. `tests/policy_fuzz.rs`
//! compares it with a real bash.

mod conditions;
mod expansions;
mod here;
mod variables;
mod word;

use super::words::Word;
use super::{Redirect, Simple};
use crate::core::policy::harm;
use crate::core::policy::tools::Access;
use here::Here;
use variables::{Value, Variables};
use word::Part;

/// How many levels of nested commands are read: a person would not read more, and each level needs stack.
const DEEPEST: usize = 12;

/// How many commands are read. A loop counts once for each value of its variable.
const MOST_COMMANDS: usize = 256;

/// How many values of one loop's variable are read.
const MOST_VALUES: usize = 32;

/// How often a command is read again because a loop changes a variable.
const MOST_READINGS: usize = 8;

/// What a command does, if it is known.
#[derive(Debug, Default)]
pub struct Proven {
    pub commands: Vec<Simple>,
    /// Every file that the shell itself opens.
    pub redirects: Vec<Redirect>,
    /// The first statement that only sets variables.
    pub statement: Option<String>,
}

/// What a command does; `None` if it has anything unknown.
pub fn read(text: &str) -> Option<Proven> {
    let mut variables = Variables::default();
    for _ in 0..MOST_READINGS {
        let mut reader = Reader::new(text, variables);
        let done = reader.list(&[]);
        let is_whole = reader.at == text.len() && reader.waiting.is_empty();
        let is_script = reader.has_here && reader.runs_scripts();
        variables = reader.variables;
        if variables.begin_again() {
            continue;
        }
        done?;
        return (is_whole && !is_script).then_some(reader.proven);
    }
    None
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// The number of open constructs.
    depth: usize,
    variables: Variables,
    /// Here-documents whose text begins after this line.
    waiting: Vec<Here>,
    has_here: bool,
    proven: Proven,
}

/// Words that begin or end a construct. Those that are not supported here are refused.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "in", "function", "coproc", "declare", "typeset", "export", "readonly", "local",
    "unset", "unsetenv", "{", "}", "!", "[[", "]]", "time",
];

impl<'t> Reader<'t> {
    fn new(text: &'t str, variables: Variables) -> Reader<'t> {
        Reader {
            text,
            at: 0,
            depth: 0,
            variables,
            waiting: Vec::new(),
            has_here: false,
            proven: Proven::default(),
        }
    }

    /// Whether a shell is among the commands, which may get a here-document as its script.
    fn runs_scripts(&self) -> bool {
        let mut commands = self.proven.commands.iter();
        commands.any(|command| {
            let name = command.words.first().map(|name| name.text.as_str());
            name.is_some_and(|name| harm::always(name).is_some() && name != "read" && name != "set")
        })
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let follows = self.rest().starts_with(text);
        self.at += if follows { text.len() } else { 0 };
        follows
    }

    /// Skips spaces, and a backslash after a space at the end of a line.
    fn skip_spaces(&mut self) {
        loop {
            let before = self.text[..self.at].bytes().next_back();
            let is_between = matches!(before, Some(b' ' | b'\t'));
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if is_between && self.rest().starts_with("\\\n") => self.at += 2,
                _ => break,
            }
        }
    }

    /// Skips spaces, empty lines and comments.
    fn skip_lines(&mut self) -> Option<()> {
        loop {
            self.skip_spaces();
            match self.peek() {
                Some(b'\n') => self.end_of_line()?,
                Some(b'#') => self.comment(),
                _ => return Some(()),
            }
        }
    }

    fn comment(&mut self) {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += length;
    }

    /// After a line come the texts of the here-documents that began on it.
    fn end_of_line(&mut self) -> Option<()> {
        self.at += 1;
        for here in std::mem::take(&mut self.waiting) {
            let body = here.body(self.rest())?;
            self.at += body.length;
        }
        Some(())
    }

    /// The next word, if it is a keyword of the shell.
    fn keyword(&self) -> Option<&'static str> {
        let ends = |c: char| " \t\n;|&()<>".contains(c);
        let word = self.rest().split(ends).next().unwrap_or_default();
        RESERVED.iter().find(|known| **known == word).copied()
    }

    fn takes_keyword(&mut self, wanted: &str) -> Option<()> {
        (self.keyword()? == wanted).then(|| self.at += wanted.len())
    }

    /// Commands up to one of these words, to a closing bracket, or to the end.
    fn list(&mut self, ends: &[&str]) -> Option<()> {
        let begin_at = self.at;
        loop {
            self.skip_lines()?;
            let is_end = self.keyword().is_some_and(|word| ends.contains(&word));
            if is_end || matches!(self.peek(), None | Some(b')')) {
                break;
            }
            self.pipes()?;
            self.skip_spaces();
            match self.peek() {
                Some(b';') if !self.rest().starts_with(";;") => self.at += 1,
                Some(b'\n' | b'#' | b')') | None => {}
                _ => return None,
            }
        }
        let has_some = self.at > begin_at || self.depth == 0;
        (self.proven.commands.len() <= MOST_COMMANDS && has_some).then_some(())
    }

    /// Commands joined by `|`, `&&` and `||`.
    fn pipes(&mut self) -> Option<()> {
        let mut is_first = true;
        loop {
            let begin = self.proven.commands.len();
            let depth = self.depth;
            // A command after `&&` may not run, and in a pipe it sets no variables for the rest.
            self.depth += usize::from(!is_first);
            self.command()?;
            self.depth = depth;
            self.skip_spaces();
            let is_piped = self.rest().starts_with('|') && !self.rest().starts_with("||");
            let sets_only = self.proven.commands.len() == begin;
            if self.rest().starts_with("|&") || is_piped && sets_only {
                return None;
            }
            if !(self.takes("&&") || self.takes("||") || self.takes("|")) {
                return Some(());
            }
            is_first = false;
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.keyword() {
            None if self.peek() == Some(b'(') => self.subshell(),
            None => self.simple(),
            Some("time") => self.simple(),
            Some("!") => {
                self.at += 1;
                self.skip_spaces();
                self.command()
            }
            Some("if") => self.nested(Reader::conditional),
            Some("while" | "until") => self.nested(Reader::repeated),
            Some("for") => self.nested(Reader::for_each),
            Some("{") => self.nested(Reader::group),
            Some("[[") => self.nested(Reader::double_test),
            Some("export") => self.export(),
            Some(_) => None,
        }
    }

    /// A construct, and the files that are opened for all of it.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(())?;
        read(self)?;
        self.depth -= 1;
        loop {
            self.skip_spaces();
            match self.peek() {
                Some(b'<' | b'>') => self.redirection()?,
                Some(b'1' | b'2') => self.numbered_redirection()?,
                Some(b'&') if self.rest().starts_with("&>") => self.redirection()?,
                Some(b'&') if self.rest().starts_with("&&") => return Some(()),
                Some(b';' | b'|' | b'\n' | b')') | None => return Some(()),
                _ => return None,
            }
        }
    }

    fn subshell(&mut self) -> Option<()> {
        self.nested(|reader| {
            // `((` is arithmetic.
            (!reader.rest().starts_with("((")).then_some(())?;
            reader.at += 1;
            reader.list(&[])?;
            reader.takes(")").then_some(())
        })
    }

    fn group(&mut self) -> Option<()> {
        self.takes_keyword("{")?;
        self.list(&["}"])?;
        self.takes_keyword("}")
    }

    /// `[[ … ]]` of tests that evaluate nothing, joined by `&&`, `||` and `!`.
    fn double_test(&mut self) -> Option<()> {
        let start = self.at;
        let mark = |at: usize, text: &str| Word {
            text: text.to_owned(),
            start: at,
            length: text.len(),
            ..Word::default()
        };
        let mut words = vec![mark(start, "[[")];
        self.takes_keyword("[[")?;
        loop {
            let mut test = Vec::<Part>::new();
            self.skip_spaces();
            while self.keyword() != Some("]]") && !self.rest().starts_with(['&', '|']) {
                test.push(self.word()?);
                self.skip_spaces();
            }
            conditions::is_plain_double_test(&test).then_some(())?;
            words.extend(test.into_iter().map(|part| part.word));
            if !self.takes("&&") && !self.takes("||") {
                break;
            }
        }
        words.push(mark(self.at, "]]"));
        self.takes_keyword("]]")?;
        self.proven.commands.push(Simple {
            text: self.text[start..self.at].to_owned(),
            start,
            words,
            guessed: false,
        });
        Some(())
    }

    fn conditional(&mut self) -> Option<()> {
        self.takes_keyword("if")?;
        loop {
            self.list(&["then"])?;
            self.takes_keyword("then")?;
            self.list(&["elif", "else", "fi"])?;
            match self.keyword()? {
                "elif" => self.at += "elif".len(),
                "else" => {
                    self.at += "else".len();
                    self.list(&["fi"])?;
                    return self.takes_keyword("fi");
                }
                _ => return self.takes_keyword("fi"),
            }
        }
    }

    fn repeated(&mut self) -> Option<()> {
        self.at += "while".len();
        self.list(&["do"])?;
        self.body()
    }

    fn body(&mut self) -> Option<()> {
        self.takes_keyword("do")?;
        self.list(&["done"])?;
        self.takes_keyword("done")
    }

    /// `for name in words; do …; done`, read once for each value of the variable.
    fn for_each(&mut self) -> Option<()> {
        self.takes_keyword("for")?;
        self.skip_spaces();
        let name = variables::name(self.rest())?;
        self.at += name.len();
        self.skip_spaces();
        self.takes_keyword("in")?;
        let mut values = self.values()?;
        values.dedup();
        self.takes(";");
        self.skip_lines()?;
        let body = self.at;
        (!values.is_empty() && values.len() <= MOST_VALUES).then_some(())?;
        for value in values {
            self.at = body;
            self.variables.set_for_loop(name, value)?;
            self.body()?;
        }
        self.variables.end_of_loop(name);
        Some(())
    }

    /// The values of a loop's variable.
    fn values(&mut self) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        loop {
            self.skip_spaces();
            if matches!(self.peek()?, b';' | b'\n') {
                return Some(values);
            }
            for part in self.words()? {
                values.extend(part.values()?);
            }
        }
    }

    /// `export NAME=value` of a variable that is known to be harmless.
    fn export(&mut self) -> Option<()> {
        self.takes_keyword("export")?;
        self.skip_spaces();
        let name = variables::name(self.rest())?;
        (self.rest().as_bytes().get(name.len()) == Some(&b'=')).then_some(())?;
        let (name, value) = self.assignment(name)?;
        variables::may_be_in_environment(name, &value).then_some(())?;
        self.variables.set(name, value.value()?, self.depth > 0)?;
        self.proven
            .statement
            .get_or_insert_with(|| format!("export {name}=…"));
        self.skip_spaces();
        matches!(self.peek(), None | Some(b';' | b'\n' | b')' | b'&')).then_some(())
    }

    /// A program with its words, files and variables; or only variables.
    fn simple(&mut self) -> Option<()> {
        let start = self.at;
        let (mut settings, mut parts) = (Vec::new(), Vec::<Part>::new());
        let (mut opens, mut reads) = (false, false);
        loop {
            self.skip_spaces();
            match self.peek() {
                None | Some(b';' | b'|' | b'\n' | b')') => break,
                Some(b'&') if self.rest().starts_with("&&") => break,
                Some(b'#') => break,
                Some(b'<') if self.rest().starts_with("<(") => parts.push(self.word()?),
                Some(b'<') => {
                    reads = true;
                    self.redirection()?;
                }
                Some(b'>' | b'&') => self.redirection()?,
                Some(b'1' | b'2') if self.is_numbered_redirection() => {
                    self.numbered_redirection()?;
                }
                _ => {
                    let name = variables::name(self.rest());
                    let is_setting = |name: &&str| {
                        parts.is_empty() && self.rest().as_bytes().get(name.len()) == Some(&b'=')
                    };
                    match name.filter(is_setting) {
                        Some(name) => settings.push(self.assignment(name)?),
                        None if parts.is_empty() => parts.push(self.word()?),
                        None => parts.extend(self.words()?),
                    }
                    continue;
                }
            }
            opens = true;
        }
        // The input of these may be a script.
        let is_given_script =
            |part: &Part| harm::always(&part.word.text).is_some() && part.word.text != "read";
        (!(reads && parts.first().is_some_and(is_given_script))).then_some(())?;
        match parts.is_empty() {
            true => self.set_variables(settings, opens),
            false => self.end_of_command(start, &settings, parts),
        }
    }

    fn set_variables(&mut self, settings: Vec<(&'t str, Part)>, opens: bool) -> Option<()> {
        // A redirection alone empties a file, and no rule for a program covers that.
        (!settings.is_empty() && !opens).then_some(())?;
        let first = settings.first().map(|(name, _)| format!("{name}=…"));
        self.proven.statement = self.proven.statement.take().or(first);
        for (name, part) in settings {
            variables::may_be_set(name).then_some(())?;
            self.variables.set(name, part.value()?, self.depth > 0)?;
        }
        Some(())
    }

    fn end_of_command(
        &mut self,
        start: usize,
        settings: &[(&str, Part)],
        parts: Vec<Part>,
    ) -> Option<()> {
        let is_harmless =
            |(name, part): &(&str, Part)| variables::may_be_in_environment(name, part);
        settings.iter().all(is_harmless).then_some(())?;
        (parts.len() < 1_000).then_some(())?;
        for name in conditions::sets(&parts)? {
            self.variables.set(name, Value::Text, true)?;
        }
        conditions::are_known(&parts)?;
        let changed = parts.iter().any(|part| part.substituted);
        let (first, last) = (parts[0].word.start, &parts[parts.len() - 1].word);
        let words: Vec<_> = parts.iter().map(|part| part.word.clone()).collect();
        let text = match changed {
            false => self.text[first..last.start + last.length].to_owned(),
            true => words
                .iter()
                .map(|word| word.canonical())
                .collect::<Vec<_>>()
                .join(" "),
        };
        self.proven.commands.push(Simple {
            text,
            start: if changed { first } else { start.max(first) },
            words,
            guessed: false,
        });
        Some(())
    }

    fn is_numbered_redirection(&self) -> bool {
        matches!(self.rest().as_bytes(), [b'1' | b'2', b'>', ..])
    }

    fn numbered_redirection(&mut self) -> Option<()> {
        self.is_numbered_redirection().then_some(())?;
        self.at += 1;
        self.redirection()
    }

    /// `> file`, `>> file`, `< file`, `&> file`, `>&2`, `<< delimiter` and `<<< word`.
    fn redirection(&mut self) -> Option<()> {
        if self.takes("<<<") {
            self.skip_spaces();
            return self.word()?.is_one_word().then_some(());
        }
        if self.takes("<<") {
            let here = here::Here::read(self.rest())?;
            self.at += here.length;
            self.waiting.push(here);
            self.has_here = true;
            return Some(());
        }
        if self.takes(">&1") || self.takes(">&2") {
            return self.is_at_end_of_word().then_some(());
        }
        let access = match () {
            () if self.takes("&>>") || self.takes("&>") => Access::Write,
            () if self.takes(">>") || self.takes(">") => Access::Write,
            () if self.takes("<") => Access::Read,
            () => return None,
        };
        // `>|`, `>&`, `<>`, `<(`, `>(`, `>!` and `<&` mean something else.
        (!self.rest().starts_with(['|', '&', '>', '<', '(', '!'])).then_some(())?;
        self.skip_spaces();
        let part = self.word()?;
        // The variable of a loop over files.
        let is_one = !part.word.globs || part.substituted && access == Access::Read;
        let is_plain = part.is_known() && is_one && !part.word.text.is_empty();
        is_plain.then_some(())?;
        let target = part.word;
        if target.text != "/dev/null" {
            self.proven.redirects.push(Redirect { access, target });
        }
        Some(())
    }

    fn is_at_end_of_word(&self) -> bool {
        let next = self.peek();
        next.is_none_or(|byte| b" \t\n;|&)".contains(&byte))
    }
}

#[cfg(test)]
mod tests;
