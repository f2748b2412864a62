//! `awk` programs that start processes, or read and write files of their own choice.

use super::{Harm, at_words, has_short, is_one_of_long};
use crate::core::policy::shell::Word;

pub fn harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--file --exec --include --load --extension --profile --dump-variables --debug \
        --pretty-print --source";
    const CODE: &str = "system getline @ close fflush ARGV ARGC ENVIRON";
    // `-W` spells a long option, or names a file to run.
    let harmful = |word: &str| {
        has_short(word, "fiElpdDoeW", "vF")
            || is_one_of_long(word, LONG)
            || CODE
                .split_ascii_whitespace()
                .any(|text| word.contains(text))
            || has_output(word)
    };
    at_words(words, harmful)
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` may let awk run programs, read or write files"),
            )
        })
        .collect()
}

/// Whether `>` or `|` may redirect printed output, and is not a comparison or `||`.
fn has_output(program: &str) -> bool {
    let Some(code) = without_strings(program) else {
        return program.contains(['>', '|']);
    };
    code.replace("||", "").contains('|') || code.contains('>') && prints_into(&code)
}

/// Whether a `>` may belong to a preceding `print`.
fn prints_into(code: &str) -> bool {
    let prints = code.match_indices("print");
    let mut behind = prints.map(|(at, print)| &code[at + print.len()..]);
    behind.any(|text| statement(text).contains('>'))
}

/// The text that may belong to the first statement. It ends at `;` or a brace, unless that may be part of a regular expression,
/// or at the end of a line on which it is complete. After a possible comment nothing is certain.
fn statement(text: &str) -> &str {
    let mut start = 0;
    for line in text.split('\n') {
        let certain = line.split(['/', '#']).next().unwrap_or_default();
        if let Some(end) = certain.find([';', '{', '}']) {
            return &text[..start + end];
        }
        if line.contains('#') {
            return text;
        }
        let is_print_alone = start == 0 && line.trim().is_empty();
        start += line.len();
        if is_print_alone || is_complete(line) {
            return &text[..start];
        }
        start += 1;
    }
    text
}

/// Whether a statement can't continue after this line.
fn is_complete(line: &str) -> bool {
    let end = line.trim_end_matches([' ', '\t']).chars().next_back();
    end.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ')' | ']'))
}

/// The program without its double-quoted strings; `None` if a quote may be part of a regular expression or a comment.
fn without_strings(program: &str) -> Option<String> {
    if !program.contains('"') {
        return Some(program.to_owned());
    }
    if program.contains(['/', '#']) {
        return None;
    }
    let (mut code, mut inside, mut escaped) = (String::new(), false, false);
    for c in program.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => inside = !inside,
            _ if inside => {}
            _ => code.push(c),
        }
    }
    (!inside).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_compares_is_harmless() {
        for program in [
            "NR>=10 && NR<=20",
            "length > 80",
            "$3 > 5 {print $1}",
            "{print $1 \"|\" $2}",
            "$1 == \"a\" || $2 == \"b\"",
            "/a/ || /b/",
            "{print \"a > b\"}",
            "{print $1} $3 > 5",
            "{print $1\nif (a > b) c++}",
            "{print}\n$1 / 2 > 5",
        ] {
            assert!(!has_output(program), "{program}");
        }
    }

    #[test]
    fn a_program_that_prints_elsewhere_is_not() {
        for program in [
            "{print > \"f\"}",
            "{print|\"sh\"}",
            "{print \"a\" | c}",
            "{printf \"x\" >> f}",
            "/\"/ {print > \"f\"}",
            "# \"\n{print > \"f\"}",
            "{print \"\\\"\" > \"f\"}",
            "{if (1) print $1 > f}",
            "{print $1,\n$2 > $3}",
            "{print \"a\",\n\"b\" > o}",
            "{printf(\"%s\",\n1) > \"f\"}",
            "{print $1 ~ /}/ > $2}",
            "{print $1 ~ /;/ > $2}",
            "{print $1, # a\n$2 > $3}",
            "{print $1 ?\n2 : 3 > $3}",
            "{print $1 \\\n$2 > $3}",
            "{print $1 ~ /a/ ||\n/;/ > $3}",
            "{print $1 ~ /print;/ > $2}",
            "{print $1,\n\n$2 > $3}",
        ] {
            assert!(has_output(program), "{program}");
        }
    }
}
