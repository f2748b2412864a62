//! Which of its arguments a program writes to.

use super::{Names, base_name, has_short, has_word, is_one_of_long, names};
use crate::core::policy::shell::Word;
use std::sync::LazyLock;

/// Programs that change all their arguments.
static CHANGERS: Names = LazyLock::new(|| {
    names(
        "mv ln tee touch mkdir rmdir rm unlink shred truncate chmod chown chgrp mkfifo split csplit rename",
    )
});

/// Programs that write their last argument.
static COPIERS: Names = LazyLock::new(|| names("cp install rsync ditto scp ffmpeg"));

/// Programs that write the file after `-o`.
static COMPILERS: Names =
    LazyLock::new(|| names("go gcc cc g++ c++ clang clang++ ld rustc javac ghc dot"));

/// Programs that rewrite their files, with or without an option.
static FORMATTERS: Names = LazyLock::new(|| {
    names(
        "rustfmt prettier eslint stylelint black isort autopep8 yapf ruff gofmt goimports gofumpt clang-format shfmt \
        stylua taplo biome dprint ktlint swiftformat rubocop standard xo djlint dos2unix unix2dos",
    )
});

pub fn is_writer(program: &str) -> bool {
    let program = base_name(program);
    CHANGERS.contains(program) || COPIERS.contains(program)
}

/// The indexes of the arguments that may be written.
pub fn written(program: &str, arguments: &[Word]) -> Vec<usize> {
    let program = base_name(program);
    let all = 0..arguments.len();
    if CHANGERS.contains(program) {
        return all.collect();
    }
    if COPIERS.contains(program) {
        let links = |word: &Word| {
            has_short(&word.text, "sl", "St")
                || is_one_of_long(&word.text, "--symbolic-link --link")
        };
        let is_all = names_target(program, arguments)
            || makes_directories(program, arguments)
            || program == "cp" && arguments.iter().any(links);
        return match is_all {
            true => all.collect(),
            false => {
                let mut places = copied_to(program, arguments);
                places.extend(other_targets(program, arguments));
                places.retain(|at| program != "scp" || !is_remote(&arguments[*at].text));
                places
            }
        };
    }
    if COMPILERS.contains(program) {
        let follows = |at: &usize| *at > 0 && arguments[*at - 1].text == "-o";
        let attached = |at: &usize| arguments[*at].text.starts_with("-o");
        return all.filter(|at| follows(at) || attached(at)).collect();
    }
    if matches!(program, "tar" | "gtar" | "bsdtar") {
        return archives(arguments);
    }
    if FORMATTERS.contains(program) {
        return operands(arguments);
    }
    if program == "cargo" {
        return formatted_by_cargo(arguments);
    }
    Vec::new()
}

/// `cargo fmt -- FILE`: rustfmt rewrites these files.
fn formatted_by_cargo(arguments: &[Word]) -> Vec<usize> {
    let end = arguments.iter().position(|word| word.text == "--");
    let Some(end) = end else {
        return Vec::new();
    };
    match arguments[..end].iter().any(|word| word.text == "fmt") {
        true => (end + 1..arguments.len()).collect(),
        false => Vec::new(),
    }
}

/// `host:path`
fn is_remote(text: &str) -> bool {
    text.split('/')
        .next()
        .is_some_and(|start| start.contains(':'))
}

/// `-t` names the target directory, and every operand is a source.
fn names_target(program: &str, arguments: &[Word]) -> bool {
    let has_option = matches!(program, "cp" | "mv" | "ln" | "install");
    has_option
        && arguments
            .iter()
            .any(|word| has_short(&word.text, "t", "mogSZ") || word.text.starts_with("--t"))
}

/// `install -d` creates all its operands.
fn makes_directories(program: &str, arguments: &[Word]) -> bool {
    let makes = |word: &Word| has_short(&word.text, "d", "mogStZ") || word.text.starts_with("--di");
    program == "install" && arguments.iter().any(makes)
}

/// The words that are not options; some may be the values of options.
fn operands(arguments: &[Word]) -> Vec<usize> {
    let end_of_options = arguments.iter().position(|word| word.text == "--");
    let is_operand = |at: &usize| {
        let is_behind = end_of_options.is_some_and(|end| *at > end);
        is_behind || !arguments[*at].text.starts_with('-')
    };
    (0..arguments.len()).filter(is_operand).collect()
}

/// Options of `rsync` that are known to take the next word, and do not write there.
const HARMLESS_VALUES: &str = "--exclude --include --filter --exclude-from --include-from --bwlimit --max-size \
    --min-size --timeout --chmod --chown --compress-level --block-size --port";

/// Options of `rsync` that name directories in which it writes.
const OTHER_TARGETS: &str = "--backup-dir --partial-dir --temp-dir";

/// The last operand. An option may or may not take the next word, so the operand before it may be the last.
fn copied_to(program: &str, arguments: &[Word]) -> Vec<usize> {
    let option_before = |at: usize| {
        let option = at
            .checked_sub(1)
            .map_or("", |at| arguments[at].text.as_str());
        let takes_value = option.starts_with('-') && option != "--" && !option.contains('=');
        takes_value.then_some(option)
    };
    let is_harmless = |option: &str| match program {
        "rsync" => has_word(HARMLESS_VALUES, option),
        "ffmpeg" => option == "-i",
        _ => false,
    };
    let mut found = Vec::new();
    for at in operands(arguments).into_iter().rev() {
        let option = option_before(at);
        if option.is_some_and(is_harmless) {
            continue;
        }
        found.push(at);
        // `ffmpeg` writes each file that does not follow an option.
        if option.is_none() && program != "ffmpeg" {
            break;
        }
    }
    found
}

/// The values of options that name more places to write to.
fn other_targets(program: &str, arguments: &[Word]) -> Vec<usize> {
    let names_one = |at: &usize| {
        let text = arguments[*at].text.as_str();
        program == "rsync" && (is_one_of_long(text, OTHER_TARGETS) || text.starts_with("-T"))
    };
    let at = (0..arguments.len()).filter(names_one);
    at.flat_map(|at| [at, at + 1])
        .filter(|at| *at < arguments.len())
        .collect()
}

/// What a program copies, moves or links, and to where, as far as its words tell.
pub struct Transfer<'w> {
    /// What is copied, moved or linked.
    pub sources: Vec<&'w Word>,
    /// The possible targets; empty means the working directory.
    pub targets: Vec<&'w str>,
    /// Whether a target may match several names.
    pub globs: bool,
    /// Whether it transfers whole directories.
    pub recursive: bool,
    /// Whether the target is never a directory to put something into.
    pub replaces: bool,
    /// Whether the transferred files may be links, or contain links.
    pub brings_links: bool,
    /// Whether it also creates the parent directories of a source there.
    pub keeps_way: bool,
    /// Whether the sources are gone afterwards.
    pub moves: bool,
    /// The suffixes for backup copies of existing files.
    pub suffixes: Vec<&'w str>,
}

impl<'w> Transfer<'w> {
    /// The sources, without the target if it is clear which word that is.
    pub fn taken(&self) -> impl Iterator<Item = &'w Word> {
        let is_target = |word: &&Word| [word.text.as_str()] == self.targets.as_slice();
        let last = self.sources.last().copied().filter(is_target);
        let rest = self.sources.len() - usize::from(last.is_some());
        self.sources[..rest].iter().copied()
    }
}

pub fn transfer<'w>(program: &str, arguments: &'w [Word]) -> Option<Transfer<'w>> {
    let program = base_name(program);
    // `git mv` moves as `mv` does.
    if let ("git", Some((name, arguments))) = (program, arguments.split_first()) {
        return (name.text == "mv").then(|| transfer("mv", arguments))?;
    }
    if !matches!(
        program,
        "cp" | "mv" | "ln" | "install" | "rsync" | "ditto" | "scp"
    ) || makes_directories(program, arguments)
    {
        return None;
    }
    let has = |short: &str, long: &str| {
        let is = |word: &Word| has_short(&word.text, short, "") || is_one_of_long(&word.text, long);
        arguments.iter().any(is)
    };
    let recursive = match program {
        "mv" | "ln" | "ditto" => true,
        "rsync" => has("rad", "--recursive --archive --dirs") || fills_from(arguments),
        "scp" => has("r", ""),
        _ => has("rRa", "--recursive --archive"),
    };
    let (targets, globs) = targets(program, arguments);
    let sources = operands(arguments).into_iter().map(|at| &arguments[at]);
    Some(Transfer {
        sources: sources.collect(),
        targets,
        globs,
        recursive,
        replaces: program != "rsync" && has("T", "--no-target-directory"),
        brings_links: recursive || has("Pdl", "--no-dereference --links --symbolic-link --link"),
        keeps_way: match program {
            "cp" => has("", "--parents"),
            "rsync" => has("R", "--relative"),
            _ => false,
        },
        moves: program == "mv" || has("", "--remove-source-files"),
        suffixes: values(arguments, 'S', "--suffix"),
    })
}

/// `rsync from/ to` puts the content of `from` there.
fn fills_from(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.text.ends_with('/'))
}

fn targets<'w>(program: &str, arguments: &'w [Word]) -> (Vec<&'w str>, bool) {
    if names_target(program, arguments) {
        return (values(arguments, 't', "--target-directory"), false);
    }
    // `ln a/b` puts the link into the working directory.
    if program == "ln" && operands(arguments).len() == 1 {
        return (Vec::new(), false);
    }
    let at = copied_to(program, arguments);
    let globs = at.iter().any(|at| arguments[*at].globs);
    let texts = at.into_iter().map(|at| arguments[at].text.as_str());
    (texts.collect(), globs)
}

/// The value of an option: attached to it, or in the next word.
fn values<'w>(arguments: &'w [Word], letter: char, long: &str) -> Vec<&'w str> {
    let value = |(at, word): (usize, &'w Word)| {
        let text = word.text.as_str();
        let behind = || arguments.get(at + 1).map(|word| word.text.as_str());
        if text.starts_with("--") {
            return match text.split_once('=') {
                Some((_, value)) => is_one_of_long(text, long).then_some(value),
                None if is_one_of_long(text, long) => behind(),
                None => None,
            };
        }
        let cluster = text.strip_prefix('-')?;
        match cluster.split_once(letter)? {
            (_, "") => behind(),
            (_, attached) => Some(attached),
        }
    };
    arguments.iter().enumerate().filter_map(value).collect()
}

/// Whether `tar` or another packer puts its files into an archive.
pub fn packs(program: &str, arguments: &[Word]) -> bool {
    let first = arguments.first().map_or("", |word| word.text.as_str());
    match base_name(program) {
        "tar" | "gtar" | "bsdtar" => makes_archive(arguments),
        "zip" => arguments
            .iter()
            .any(|word| has_short(&word.text, "rR", "") || word.text.starts_with("--rec")),
        "7z" | "7za" | "7zz" | "7zr" | "rar" => matches!(first, "a" | "u"),
        "jar" => makes_archive(arguments),
        _ => false,
    }
}

/// Whether a word is a cluster of letters; the first may be one without a dash.
fn is_cluster(arguments: &[Word], at: usize) -> bool {
    match arguments[at].text.strip_prefix('-') {
        Some(letters) => !letters.starts_with('-'),
        None => at == 0,
    }
}

fn makes_archive(arguments: &[Word]) -> bool {
    const MAKES: &[&str] = &["--cr", "--app", "--up", "--cat", "--con"];
    let makes = |at: usize| {
        let text = arguments[at].text.as_str();
        match is_cluster(arguments, at) {
            true => text.contains(['c', 'r', 'u', 'A']),
            false => MAKES.iter().any(|start| text.starts_with(start)),
        }
    };
    (0..arguments.len()).any(makes)
}

/// The archive that `tar` creates: the word after `f`, with or without a dash.
fn archives(arguments: &[Word]) -> Vec<usize> {
    if !makes_archive(arguments) {
        return Vec::new();
    }
    let text = |at: usize| arguments[at].text.as_str();
    let names_it = |at: &usize| match is_cluster(arguments, *at) {
        true => text(*at).contains('f'),
        false => text(*at).starts_with("--fil"),
    };
    // The name may be the rest of the word.
    let places = (0..arguments.len())
        .filter(names_it)
        .flat_map(|at| [at, at + 1]);
    places.filter(|at| *at < arguments.len()).collect()
}
