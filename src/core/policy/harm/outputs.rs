//! Files that a program writes besides its main result: archives, and files that options name. They may be in the slot's
//! directory, but not outside.

use super::{
    Names, base_name, has_short, has_word, is_one_of_long, languages, names, unversioned, writes,
};
use crate::core::policy::quick::QuickMap;
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::sync::LazyLock;

/// The entry of a program in `tables/outputs.toml`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Outputs {
    names: String,
    short: String,
    long: String,
    starts: String,
    inside: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    builders: String,
    program: Vec<Outputs>,
}

static FILE: LazyLock<File> = LazyLock::new(|| read().unwrap_or_default());

static BY_PROGRAM: LazyLock<QuickMap<&'static str, &'static Outputs>> = LazyLock::new(|| {
    let rows = FILE.program.iter().flat_map(|row| {
        let programs = row.names.split_ascii_whitespace();
        programs.map(move |program| (program, row))
    });
    rows.collect()
});

static BUILDERS: Names = LazyLock::new(|| names(&FILE.builders));

/// A test proves that the file can be parsed.
fn read() -> Result<File, toml::de::Error> {
    toml::from_str(include_str!("../tables/outputs.toml"))
}

/// Whether no argument of a program may lead out of the slot's directory.
pub fn stays_inside(program: &str) -> bool {
    BY_PROGRAM
        .get(base_name(program))
        .is_some_and(|row| row.inside)
}

/// Whether it may also use the directories for temporary files. A build tool may not: it may run what it finds there.
pub fn may_use_temporary(program: &str) -> bool {
    let program = base_name(program);
    !BUILDERS.contains(program) && !BUILDERS.contains(unversioned(program))
}

/// The indexes of the arguments that may be written.
pub fn written(program: &str, arguments: &[Word]) -> Vec<usize> {
    let program = base_name(program);
    let mut places = writes::written(program, arguments);
    let by_family = || {
        let family = unversioned(program);
        (family != program)
            .then(|| BY_PROGRAM.get(family))
            .flatten()
    };
    if let Some(outputs) = BY_PROGRAM.get(program).or_else(by_family) {
        places.extend(values(outputs, arguments));
    }
    places.extend(match program {
        "tar" | "gtar" | "bsdtar" => of_tar(arguments),
        "zip" => of_zip(arguments),
        "7z" | "7za" | "7zz" => of_7z(arguments),
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "lzma" | "unlzma" | "zstd"
        | "unzstd" | "lz4" | "compress" | "uncompress" | "brotli" => of_packers(program, arguments),
        "npx" | "bunx" | "uvx" | "pnpx" => of_tool(0, arguments),
        _ if program.starts_with("python") => of_module(arguments),
        _ => Vec::new(),
    });
    places
}

/// Programs that only read what their arguments name, or whose arguments are not paths.
static LOOK: Names = LazyLock::new(|| {
    names(
        "find fd fdfind sed gsed awk gawk mawk nawk jq gojq jaq yq git gh curl http https xh ps kill \
    pkill killall sleep date cd pushd popd ssh scp rsync wget docker podman nerdctl dig nslookup host ping nc aws gcloud az \
    systemctl journalctl perl bazel bazelisk buck buck2 unzip 7z 7za 7zz gzip gunzip xz unxz zstd tar gtar bsdtar ffmpeg xargs man export read set exit xxd zcat zgrep uniq df free id",
    )
});

/// The indexes of the words that a tool may write. It is unknown which of its options and operands it writes, so each of them may
/// be. Words that go to a program of the project do not count.
pub fn perhaps_written(words: &[Word]) -> Vec<usize> {
    let Some((name, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let program = base_name(&name.text);
    let is_own = name.text.contains('/');
    let builds = has_word("docker podman nerdctl", program)
        && arguments.iter().any(|word| word.text == "build");
    let is_known = BY_PROGRAM.contains_key(program) && !stays_inside(program);
    let is_known = is_known || writes::is_writer(program);
    if is_own || super::only_reads(program) || LOOK.contains(program) && !builds || is_known {
        return Vec::new();
    }
    let own = languages::own_words(program, words).len() - 1;
    let is_run = |word: &Word| has_word("run r", &word.text);
    let end = arguments.iter().position(|word| word.text == "--");
    let end = end.filter(|end| program == "cargo" && arguments[..*end].iter().any(is_run));
    (1..=own.min(end.unwrap_or(own))).collect()
}

/// The words with the options, where the value may be the rest of the word, and the next words.
fn values(outputs: &Outputs, arguments: &[Word]) -> Vec<usize> {
    let names_it = |word: &str| {
        let starts = || outputs.starts.split_ascii_whitespace();
        word.starts_with('-')
            && (has_short(word, &outputs.short, "")
                || is_one_of_long(word, &outputs.long)
                || is_one_of_long(&word.to_ascii_lowercase().replace('_', "-"), &outputs.long)
                || starts().any(|start| word.starts_with(start)))
    };
    let found = (0..arguments.len()).filter(|at| names_it(&arguments[*at].text));
    let places = found.flat_map(|at| [at, at + 1]);
    places.filter(|at| *at < arguments.len()).collect()
}

fn is_option(word: &Word) -> bool {
    word.text.starts_with('-') && word.text != "-"
}

/// tar writes snapshots and volume numbers, and `--delete` changes the archive. The meaning of a word depends on the order of
/// letters, so all count.
fn of_tar(arguments: &[Word]) -> Vec<usize> {
    let writes_more = |(at, word): (usize, &Word)| {
        let text = word.text.as_str();
        let is_cluster = !text.starts_with("--") && (at == 0 || text.starts_with('-'));
        is_cluster
            && text
                .trim_start_matches('-')
                .split('/')
                .next()
                .is_some_and(|t| t.contains('g'))
            || is_one_of_long(text, "--listed-incremental --volno-file --delete")
    };
    match arguments.iter().enumerate().any(writes_more) {
        true => (0..arguments.len()).collect(),
        false => Vec::new(),
    }
}

/// The archive is the first operand; a log and the directory for temporary files can be anywhere.
fn of_zip(arguments: &[Word]) -> Vec<usize> {
    const WRITES: &str = "-b --temp-path -lf --logfile-path --log-path";
    /// Options whose value is the next word.
    const VALUED: &str = "-b --temp-path -lf --logfile-path -n --suffixes -t -tt -P --password -s --split-size -x -i";
    let follows = |at: usize, list: &str| at > 0 && has_word(list, &arguments[at - 1].text);
    let operands = (0..arguments.len()).filter(|at| !is_option(&arguments[*at]));
    let archive = operands.clone().find(|at| !follows(*at, VALUED));
    let attached = |at: &usize| {
        let text = &arguments[*at].text;
        text.starts_with("-b") || is_one_of_long(text, WRITES)
    };
    let others = (0..arguments.len()).filter(|at| follows(*at, WRITES) || attached(at));
    archive.into_iter().chain(others).collect()
}

/// `7z a archive …`: its options have their values attached.
fn of_7z(arguments: &[Word]) -> Vec<usize> {
    let operands: Vec<usize> = (0..arguments.len())
        .filter(|at| !is_option(&arguments[*at]))
        .collect();
    match operands.as_slice() {
        [command, archive, ..] if has_word("a u d rn", &arguments[*command].text) => {
            let directories =
                (0..arguments.len()).filter(|at| arguments[*at].text.starts_with("-w"));
            directories.chain([*archive]).collect()
        }
        _ => Vec::new(),
    }
}

/// These programs replace each file by another one, unless they only show or test it.
fn of_packers(program: &str, arguments: &[Word]) -> Vec<usize> {
    let lists = has_word("gzip gunzip xz unxz zstd unzstd", program);
    let only_shows = |word: &Word| {
        has_short(&word.text, if lists { "ctl" } else { "ct" }, "")
            || is_one_of_long(&word.text, "--stdout --to-stdout --list --test")
    };
    match arguments.iter().any(only_shows) {
        true => Vec::new(),
        false => (0..arguments.len()).collect(),
    }
}

/// The ending of the files that such a program creates or unpacks.
pub fn ending_of_packer(program: &str) -> Option<&'static str> {
    Some(match base_name(program) {
        "gzip" | "gunzip" | "pigz" | "unpigz" => ".gz",
        "bzip2" | "bunzip2" => ".bz2",
        "xz" | "unxz" => ".xz",
        "lzma" | "unlzma" => ".lzma",
        "zstd" | "unzstd" => ".zst",
        "lz4" => ".lz4",
        "compress" | "uncompress" => ".Z",
        "brotli" => ".br",
        _ => return None,
    })
}

/// `python3 -m pip …`
fn of_module(arguments: &[Word]) -> Vec<usize> {
    let is_module = |word: &Word| has_short(&word.text, "m", "cmWX") && word.text.ends_with('m');
    let module = arguments.iter().position(is_module);
    module.map_or_else(Vec::new, |at| of_tool(at + 1, arguments))
}

/// What the program writes that begins at this argument.
fn of_tool(at: usize, arguments: &[Word]) -> Vec<usize> {
    match arguments.get(at) {
        Some(tool) if !languages::runs_others(&tool.text) => {
            let of_tool = written(&tool.text, &arguments[at + 1..]);
            of_tool.into_iter().map(|inner| at + 1 + inner).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_each_program_stands_once() {
        let file = read().expect("a good file");
        let names = file.program.iter().flat_map(|row| row.names.split(' '));
        let mut names: Vec<&str> = names.collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(!file.builders.is_empty());
    }
}
