//! The sentences that say why it is not proven what a command runs. They name what is in the way as it is written.

use super::Script;
use super::words::{EXPANDS, NOT_PLAIN, Word};
use tree_sitter::Node;

/// The most characters of a word that a sentence quotes.
const MOST_QUOTED: usize = 40;

/// Why a node of the parser is more than plain commands.
pub fn of_node(node: Node<'_>, text: &str) -> String {
    let what = match node.kind() {
        "&" => "it starts something in the background",
        "|&" => "it uses `|&`",
        "comment" => "it has a comment",
        "variable_assignment" => return of_assignment(node, text),
        "variable_assignments" => SETS,
        "declaration_command" | "unset_command" => "it changes the shell's variables",
        "command_substitution" => "it substitutes the output of a command",
        "process_substitution" => "it substitutes a process",
        "simple_expansion" | "expansion" | "arithmetic_expansion" => "it expands variables",
        "subshell" => "it starts a subshell",
        "function_definition" => "it defines a function",
        "heredoc_redirect" | "heredoc_body" | "herestring_redirect" => "it has a here-document",
        "file_redirect" => REDIRECTS,
        "ERROR" => "it is not well-formed shell",
        "test_command" => "its test takes values that are not known",
        "case_statement" => "which branch of its `case` runs is not known",
        "for_statement" => return of_loop(node, text),
        "c_style_for_statement" => "it has a `for ((…))`",
        "while_statement" => UNCLEAR_LOOP,
        "if_statement" => UNCLEAR_IF,
        _ => UNCLEAR,
    };
    what.to_owned()
}

const REDIRECTS: &str = "it redirects to or from a file";

/// Whether it says something that a script may do.
pub fn is_weak(why: &str) -> bool {
    why == REDIRECTS || why.starts_with("it sets ")
}

const UNCLEAR: &str = "it is more than plain commands joined by `&&`, `||`, `;` and `|`";
const UNCLEAR_LOOP: &str = "it has a loop that is not plain";
const UNCLEAR_IF: &str = "it has an `if` that is not plain";

const SETS: &str = "it sets variables";

/// A variable may change what the program does. `tables/variables.txt` lists those that do not.
fn of_assignment(node: Node<'_>, text: &str) -> String {
    let name = node.child_by_field_name("name");
    match name.and_then(|name| text.get(name.byte_range())) {
        Some(name) => format!("it sets {}, which may change what runs", quoted(name)),
        None => SETS.to_owned(),
    }
}

/// The values that a `for` goes through may be the cause.
fn of_loop(node: Node<'_>, text: &str) -> String {
    let mut cursor = node.walk();
    let values = node.children_by_field_name("value", &mut cursor);
    let mut values = values.filter_map(|value| text.get(value.byte_range()));
    match values.find(|value| value.contains(['$', '`'])) {
        Some(value) => format!(
            "its `for` takes values that are not known: {}",
            quoted(value)
        ),
        None => UNCLEAR_LOOP.to_owned(),
    }
}

/// The sentence, or a more telling one if a word of a command is what is in the way.
pub fn named(script: &Script, why: String) -> String {
    if ![UNCLEAR, UNCLEAR_LOOP, UNCLEAR_IF, NOT_PLAIN, EXPANDS].contains(&why.as_str()) {
        return why;
    }
    let written = script.commands.iter().filter(|command| !command.guessed);
    let mut words = written.flat_map(|command| &command.words);
    words.find_map(of_word).unwrap_or(why)
}

fn of_word(word: &Word) -> Option<String> {
    let shown = quoted(&word.text);
    match word.doubt? {
        EXPANDS => Some(format!("the value of {shown} is not known")),
        NOT_PLAIN if word.text.contains('`') => {
            Some("a word becomes what the command between its backquotes prints".to_owned())
        }
        NOT_PLAIN if word.text.contains("$((") => {
            Some(format!("the value of {shown} is not known"))
        }
        NOT_PLAIN if word.text.contains("$(") => {
            Some(format!("{shown} becomes what a command prints"))
        }
        NOT_PLAIN if word.text.contains('$') => Some(format!(
            "{shown} is not in quotes, so it may become several words"
        )),
        NOT_PLAIN => Some(format!("{shown} is not plain text")),
        _ => None,
    }
}

/// A part of the command as it is written, on one line.
fn quoted(text: &str) -> String {
    let cut = text.chars().count() > MOST_QUOTED;
    let shown: String = text.chars().take(MOST_QUOTED).collect();
    format!(
        "`{}{}`",
        shown.replace('\n', " "),
        if cut { "…" } else { "" }
    )
}
