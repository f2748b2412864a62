//! What a shell command runs. Two tasks: prove that a command consists only of plain commands, and find every command that might
//! run, however it is wrapped.

mod causes;
mod characters;
mod find;
mod plain;
mod script;
mod words;
mod wrappers;

pub use find::{commands_within, scripts_within};
pub use words::{TILDE, Word, names_home};
pub use wrappers::{Stripped, strip};

use crate::core::policy::tools::Access;
use std::cell::RefCell;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// The longest command that is analysed: a person would not read more, and the parser needs little time for it.
pub const LONGEST: usize = 10_000;

/// How often the parser may report progress before it is stopped. It reports about every hundred steps; a command of [`LONGEST`]
/// plain characters needs far fewer.
const MOST_PARSER_REPORTS: usize = 5_000;

/// A parsed command line.
#[derive(Debug, Default)]
pub struct Script {
    /// Every simple command, also those inside substitutions, functions and the like, as written.
    pub commands: Vec<Simple>,
    /// The files that the shell itself opens.
    pub redirects: Vec<Redirect>,
    /// These commands and redirections are all that happens: the rest does nothing by itself.
    pub is_proven: bool,
    /// The first statement that is not a command: a test, an assignment or arithmetic.
    pub statement: Option<String>,
    /// Why it is not proven that exactly these commands run, as written.
    pub doubt: Option<String>,
    /// Whether the parser may have dropped or misplaced words, so that the text itself is searched too.
    misplaced_words: bool,
}

/// A file that the shell opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub access: Access,
    pub target: Word,
}

/// A program and its arguments.
#[derive(Debug, Clone, Default)]
pub struct Simple {
    /// As written.
    pub text: String,
    /// Its position in the whole command.
    pub start: usize,
    pub words: Vec<Word>,
    /// Found in a text that could not be parsed: it may not be a command, so only restrictions count.
    pub guessed: bool,
}

impl Simple {
    /// Whether it must be searched for other commands, or its program has a directory.
    pub fn may_run_others(&self) -> bool {
        self.words
            .first()
            .is_some_and(|name| name.text.contains('/') || find::runs_others(&name.text))
            || wrappers::runs_behind(self.words.iter().map(|word| word.text.as_str())).is_some()
    }

    /// The words as the program would get them, as far as they are literal.
    pub fn literal_words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }
}

pub fn read(text: &str) -> Script {
    let mut script = Script::default();
    if let Some(why) = characters::doubt(text) {
        script.doubt(why);
    }
    if text.chars().count() > LONGEST {
        script.doubt(format!("it is longer than {LONGEST} characters"));
        script.commands = find::crude(text);
        return script;
    }
    if script.doubt.is_some() {
        parse_into(text, &mut script);
    } else {
        read_plain_or_proven(text, &mut script);
    }
    if script.commands.is_empty() {
        script.doubt("there is no command in it");
    }
    script.doubt = script.doubt.take().map(|why| causes::named(&script, why));
    script
}

fn read_plain_or_proven(text: &str, script: &mut Script) {
    let continues = characters::continues_a_line(text);
    let plain = plain::read(text).filter(|_| !continues);
    let is_known = plain.as_ref().is_some_and(|plain| plain.doubt.is_none());
    let proven = match is_known {
        true => None,
        false => script::read(text),
    };
    match (proven, plain) {
        (Some(proven), _) => {
            script.commands = proven.commands;
            script.redirects = proven.redirects;
            script.statement = proven.statement;
            script.is_proven = true;
        }
        (None, Some(plain)) => {
            script.commands = plain.commands;
            script.doubt = plain.doubt.map(str::to_owned);
        }
        (None, None) => {
            if continues {
                script.doubt("it continues a line with a backslash");
            }
            parse_into(text, script);
        }
    }
}

fn parse_into(text: &str, script: &mut Script) {
    let Some(tree) = parse(text) else {
        script.doubt("it could not be parsed in time");
        script.commands = find::crude(text);
        return;
    };
    Walk { text, script }.whole(&tree);
    if tree.root_node().has_error() {
        script.doubt("it is not well-formed shell");
        script.misplaced_words = true;
    }
    if script.misplaced_words {
        script.commands.extend(find::crude(text));
    }
}

thread_local! {
    /// Creating a parser costs as much as parsing a short command.
    static PARSER: RefCell<Option<Parser>> = RefCell::new(parser());
}

fn parser() -> Option<Parser> {
    let mut parser = Parser::new();
    let language = tree_sitter_bash::LANGUAGE.into();
    parser.set_language(&language).ok().map(|()| parser)
}

fn parse(text: &str) -> Option<Tree> {
    let mut reports = 0;
    let mut progress = |_: &_| {
        reports += 1;
        if reports > MOST_PARSER_REPORTS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut input = |offset: usize, _| text.as_bytes().get(offset..).unwrap_or_default();
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        // The state of a stopped parser must not leak into the next command.
        parser.reset();
        parser.parse_with_options(&mut input, None, Some(options))
    })
}

impl Script {
    /// Records a doubt; the first one is reported.
    fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert_with(|| why.into());
    }
}

struct Walk<'t> {
    text: &'t str,
    script: &'t mut Script,
}

impl<'t> Walk<'t> {
    /// Uses an explicit stack: a hostile command can nest deeper than the program's stack allows.
    fn whole(&mut self, tree: &'t Tree) {
        let mut waiting = vec![tree.root_node()];
        while let Some(node) = waiting.pop() {
            let first = waiting.len();
            self.node(node, &mut waiting);
            waiting[first..].reverse();
        }
    }

    fn node(&mut self, node: Node<'t>, waiting: &mut Vec<Node<'t>>) {
        match node.kind() {
            "program" | "list" | "pipeline" | "redirected_statement" => {
                self.statements(node, waiting);
            }
            "&&" | "||" | ";" | "|" | "\n" if !node.is_named() => {}
            "command" => self.command(node, waiting),
            "comment" if self.is_between_commands(node) => {}
            "file_redirect" if self.is_harmless_redirect(node) => {}
            kind => {
                self.script.misplaced_words |= may_hide_words(node);
                if is_statement(node) {
                    let text = || self.text[node.byte_range()].to_owned();
                    self.script.statement.get_or_insert_with(text);
                }
                let why = causes::of_node(node, self.text);
                // What stands before it is no obstacle by itself.
                if kind == "&" && self.script.doubt.as_deref().is_some_and(causes::is_weak) {
                    self.script.doubt = None;
                }
                self.script.doubt(why);
                if kind == "file_redirect" {
                    self.redirect(node);
                }
                waiting.extend(node.children(&mut node.walk()));
            }
        }
    }

    /// A comment on its own line or after a finished command runs nothing.
    fn is_between_commands(&self, node: Node<'t>) -> bool {
        let before = self.text[..node.start_byte()].bytes().next_back();
        let text = &self.text[node.byte_range()];
        let at_top = node
            .parent()
            .is_some_and(|parent| parent.kind() == "program");
        at_top
            && text.starts_with('#')
            && !text.contains('\n')
            && before.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';'))
    }

    /// Between the nodes of the parser there may be only spaces.
    fn statements(&mut self, node: Node<'t>, waiting: &mut Vec<Node<'t>>) {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.check_gap(end, child.start_byte());
            end = child.end_byte();
            waiting.push(child);
        }
        self.check_gap(end, node.end_byte());
    }

    fn check_gap(&mut self, from: usize, to: usize) {
        let gap = self.text.get(from..to).unwrap_or("?");
        if !gap.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\n')) {
            self.script.doubt("it is not well-formed shell");
        }
    }

    fn command(&mut self, node: Node<'t>, waiting: &mut Vec<Node<'t>>) {
        let mut simple = Simple {
            text: self.text[node.byte_range()].to_owned(),
            start: node.start_byte(),
            ..Simple::default()
        };
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.check_gap(end, child.start_byte());
            let touches = child.start_byte() == std::mem::replace(&mut end, child.end_byte());
            match child.kind() {
                "variable_assignment"
                | "file_redirect"
                | "herestring_redirect"
                | "heredoc_redirect"
                | "subshell" => waiting.push(child),
                kind => {
                    // `''\a` is one word to a shell, and two to the parser.
                    if touches && !simple.words.is_empty() {
                        self.script.doubt("the boundaries of its words are unclear");
                    }
                    simple.words.push(self.word(child, simple.words.is_empty()));
                    if kind != "word" {
                        push_substitutions(child, waiting);
                    }
                }
            }
        }
        self.check_gap(end, node.end_byte());
        if !simple.text.is_empty() {
            self.script.commands.push(simple);
        }
    }

    fn word(&mut self, node: Node<'t>, first: bool) -> Word {
        let node = if node.kind() == "command_name" {
            node.child(0).unwrap_or(node)
        } else {
            node
        };
        let word = words::read(node, self.text);
        if let Some(why) = word.doubt {
            self.script.doubt(why);
        }
        if first && !word.is_plain_name() {
            self.script
                .doubt("the program is not written as one plain word");
        }
        word
    }

    fn redirect(&mut self, node: Node<'t>) {
        let reads = node
            .children(&mut node.walk())
            .any(|child| child.kind() == "<");
        let access = if reads { Access::Read } else { Access::Write };
        let mut cursor = node.walk();
        for target in node.children_by_field_name("destination", &mut cursor) {
            let target = words::read(target, self.text);
            self.script.redirects.push(Redirect { access, target });
        }
    }

    /// `2>/dev/null`, `>/dev/null` and `2>&1` write no file.
    fn is_harmless_redirect(&self, node: Node<'t>) -> bool {
        let mut cursor = node.walk();
        let parts: Vec<&str> = node
            .children(&mut cursor)
            .map(|child| &self.text[child.byte_range()])
            .collect();
        let parts = match parts.split_first() {
            Some((descriptor, rest)) if matches!(*descriptor, "0" | "1" | "2") => rest,
            _ => &parts[..],
        };
        matches!(
            parts,
            [">" | ">>" | "&>" | "&>>" | "<", "/dev/null"] | [">&", "1" | "2"]
        )
    }
}

/// Substitutions inside a word are searched for commands as well.
fn push_substitutions<'t>(word: Node<'t>, waiting: &mut Vec<Node<'t>>) {
    let mut cursor = word.walk();
    for child in word.named_children(&mut cursor) {
        match child.kind() {
            // These nest at most three levels: a string in a concatenation in a name.
            "string" | "concatenation" | "translated_string" => push_substitutions(child, waiting),
            "word" | "number" | "raw_string" | "ansi_c_string" | "string_content" => {}
            _ => waiting.push(child),
        }
    }
}

/// Whether it runs by itself and is not a command. An assignment on the same line belongs to the command after it: the parser
/// would attach two assignments on their own line to the command on the next line.
fn is_statement(node: Node<'_>) -> bool {
    match node.kind() {
        "test_command" | "declaration_command" | "unset_command" | "variable_assignments" => true,
        "variable_assignment" => node.parent().is_none_or(|parent| {
            let belongs = match parent.kind() {
                "command" => {
                    let name = parent.child_by_field_name("name");
                    name.is_none_or(|name| name.start_position().row == node.end_position().row)
                }
                kind => ["declaration_command", "variable_assignments"].contains(&kind),
            };
            !belongs
        }),
        "compound_statement" => node.child(0).is_some_and(|first| first.kind() == "(("),
        _ => false,
    }
}

/// A redirection swallows the words after its target, and a here-document may be a script.
fn may_hide_words(node: Node<'_>) -> bool {
    match node.kind() {
        "file_redirect" => {
            node.children_by_field_name("destination", &mut node.walk())
                .count()
                > 1
        }
        "heredoc_redirect" | "heredoc_body" | "herestring_redirect" => true,
        _ => false,
    }
}
