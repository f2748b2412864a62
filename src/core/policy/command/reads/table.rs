//! Programs that only read the files in their operands, with their harmless options. Options that follow links, write a file, run
//! a program, or read file names from a file are left out.

use crate::core::policy::harm::has_word;
use crate::core::policy::shell::Word;

/// What the operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    Files,
    /// The first is the pattern, unless an option gives it.
    PatternThenFiles,
    /// The program opens no file.
    Text,
}

pub struct Program {
    /// Names, separated by spaces, as in every list of this table.
    names: &'static str,
    /// Letters of options without a value; `#` means a number, as in `-20`.
    flags: &'static str,
    /// Letters of options whose value is the rest of the word, or the next word. None of them names a file.
    valued: &'static str,
    /// Long options without a value, or with `=value`.
    long: &'static str,
    /// Long options whose value may be the next word.
    long_valued: &'static str,
    pub operands: Operands,
}

/// Options that give a search its pattern, or make it unnecessary.
const GIVE_PATTERN: &str = "--regexp --files";

const fn program(names: &'static str, flags: &'static str, valued: &'static str) -> Program {
    Program {
        names,
        flags,
        valued,
        long: "",
        long_valued: "",
        operands: Operands::Files,
    }
}

const TABLE: &[Program] = &[
    Program {
        operands: Operands::Text,
        ..program(
            "echo printf seq true false pwd whoami uname nproc arch sleep expr basename dirname which type tr",
            "",
            "",
        )
    },
    Program {
        long: "--all --almost-all --author --directory --classify --file-type --full-time \
            --group-directories-first --human-readable --si --inode --no-group --numeric-uid-gid --reverse \
            --recursive --size --color",
        long_valued: "--sort --time --time-style --format --width --ignore --hide --block-size",
        ..program("ls", "1aAbBcCdfFghiklmnNopqQrRsStuUvxXG", "wIT")
    },
    Program {
        long: "--number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank",
        ..program("cat", "AbeEnstTuv", "")
    },
    Program {
        long: "--quiet --silent --verbose",
        long_valued: "--lines --bytes",
        ..program("head tail", "qv#", "nc")
    },
    Program {
        long: "--lines --words --bytes --chars --max-line-length",
        ..program("wc", "clmwL", "")
    },
    Program {
        long: "--recursive --ignore-case --line-number --count --files-with-matches --files-without-match \
            --invert-match --word-regexp --line-regexp --extended-regexp --fixed-strings --perl-regexp \
            --basic-regexp --only-matching --quiet --no-messages --with-filename --no-filename --color --text",
        long_valued: "--regexp --after-context --before-context --context --max-count --include --exclude \
            --exclude-dir --binary-files",
        operands: Operands::PatternThenFiles,
        ..program("grep egrep fgrep", "aEFGPbcHhiIlLnoqrsvwxyzZ#", "eABCm")
    },
    Program {
        long: "--ignore-case --smart-case --case-sensitive --line-number --no-line-number --files-with-matches \
            --files-without-match --count --count-matches --only-matching --word-regexp --invert-match \
            --fixed-strings --line-regexp --multiline --quiet --pretty --with-filename --no-filename --hidden \
            --no-ignore --no-ignore-vcs --files --json --heading --no-heading --vimgrep --stats --trim --column",
        long_valued: "--regexp --glob --iglob --type --type-not --max-count --after-context --before-context \
            --context --max-depth --sort --sortr --max-columns --threads --color",
        operands: Operands::PatternThenFiles,
        ..program("rg", "iSsnNlcowvFxUqpHIuPa0.", "eABCmgtTMjdr")
    },
    Program {
        long: "--dirsfirst --noreport --du --si --prune --gitignore --inodes",
        ..program("tree", "adfhipsugDFqQNCnrtvUSA", "LPI")
    },
    Program {
        long: "--all --summarize --human-readable --total --apparent-size --bytes",
        long_valued: "--max-depth --block-size --exclude --threshold",
        ..program("du", "abchkmsSx0", "dBt")
    },
    Program {
        long: "--brief --mime --mime-type --mime-encoding",
        ..program("file", "bi", "")
    },
    Program {
        long: "--terse",
        long_valued: "--format --printf",
        ..program("stat", "t", "c")
    },
    Program {
        long: "--numeric-sort --reverse --unique --human-numeric-sort --version-sort --ignore-case --check --stable",
        long_valued: "--key --field-separator",
        ..program("sort", "bdfghiMnrVcCmsuz", "kt")
    },
    Program {
        long: "--complement --only-delimited",
        long_valued: "--bytes --characters --delimiter --fields --output-delimiter",
        ..program("cut", "sz", "bcdf")
    },
    program("realpath readlink", "efmnqsvz", ""),
    program(
        "sha1sum sha224sum sha256sum sha384sum sha512sum md5sum b2sum cksum",
        "bt",
        "",
    ),
    program("od", "abcdfhilosxv", "AjNStw"),
    program("hexdump", "bcCdovx", "ens"),
    program("base64 base32", "di", "w"),
    program("nl", "p", "bdfhilnsvw"),
    program("tac", "br", "s"),
    program("rev cd", "", ""),
    program("column", "tnx", "sco"),
    program("cmp", "bls", "in"),
    program("comm", "#", ""),
    // `-eq` and the like are single options, not letters.
    program("test [ [[", "abcdefghklmnopqrstuwxzGLNOS", ""),
];

/// The entry for a program, by its bare name.
pub fn of(name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| has_word(program.names, name))
}

impl Program {
    /// The words that are neither options nor their values; `None` if an option is unknown.
    pub fn operands_among<'w>(
        &self,
        arguments: &'w [Word],
    ) -> Option<std::vec::IntoIter<&'w Word>> {
        let mut operands = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" {
                operands.extend(words);
                break;
            }
            if !text.starts_with('-') || text == "-" {
                operands.push(word);
                continue;
            }
            match self.option(word)? {
                Value::WithIt => {}
                Value::NextWord => {
                    words.next().filter(|value| !value.globs)?;
                }
            }
        }
        Some(operands.into_iter())
    }

    /// The place of an option's value, if it has one; `None` if the option is unknown.
    fn option(&self, word: &Word) -> Option<Value> {
        let text = word.text.as_str();
        if text.starts_with("--") {
            let (name, has_value) = match text.split_once('=') {
                Some((name, _)) => (name, true),
                None => (text, false),
            };
            // `--include=*.rs` is harmless, whatever the glob matches.
            if word.globs && (!has_value || name.contains(['*', '?', '['])) {
                return None;
            }
            let needs_next = has_word(self.long_valued, name) && !has_value;
            let is_known = has_word(self.long, name) || has_word(self.long_valued, name);
            return is_known.then_some(match needs_next {
                true => Value::NextWord,
                false => Value::WithIt,
            });
        }
        if word.globs {
            return None;
        }
        self.cluster(&text[1..])
    }

    fn cluster(&self, letters: &str) -> Option<Value> {
        if letters.bytes().all(|byte| byte.is_ascii_digit()) && self.flags.contains('#') {
            return Some(Value::WithIt);
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                let is_last = at + letter.len_utf8() == letters.len();
                return Some(match is_last {
                    true => Value::NextWord,
                    false => Value::WithIt,
                });
            }
            if letter == '#' || !self.flags.contains(letter) {
                return None;
            }
        }
        Some(Value::WithIt)
    }

    /// Whether an option gives the pattern, so that every operand is a file.
    pub fn is_given_pattern(&self, arguments: &[Word]) -> bool {
        let options = arguments.iter().take_while(|word| word.text != "--");
        options
            .map(|word| word.text.as_str())
            .filter(|text| text.starts_with('-'))
            .any(|text| match text.starts_with("--") {
                true => has_word(GIVE_PATTERN, text.split('=').next().unwrap_or_default()),
                false => text.contains('e'),
            })
    }
}

enum Value {
    /// In the same word, or there is none.
    WithIt,
    NextWord,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_stands_once() {
        let mut names: Vec<&str> = TABLE
            .iter()
            .flat_map(|program| program.names.split_ascii_whitespace())
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
