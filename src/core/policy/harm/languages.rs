//! Interpreters and build tools: when they run code that is not a file of the project.

use super::subcommands::CARGO;
use super::{
    Harm, Names, at_words, base_name, has_short, has_word, is_one_of_long, names, unversioned,
};
use crate::core::policy::shell::Word;
use std::sync::LazyLock;

/// Languages that pass the words after the script file to the script.
static RUN_A_FILE: Names = LazyLock::new(|| {
    names("python python2 python3 pypy pypy3 perl ruby node nodejs php lua luajit ts-node")
});

/// The words that the program itself interprets.
pub fn own_words<'w>(program: &str, words: &'w [Word]) -> &'w [Word] {
    let is_file = |word: &Word| {
        let is_plain = !word.globs && !word.text.starts_with('-') && !word.text.is_empty();
        is_plain && !is_django(&word.text)
    };
    let runs_a_file = || RUN_A_FILE.contains(program) || RUN_A_FILE.contains(unversioned(program));
    match words {
        [_, file, _, ..] if is_file(file) && runs_a_file() => &words[..2],
        _ => words,
    }
}

/// File names that mean the input, or another open file.
pub fn open_file_harms(words: &[Word]) -> Vec<Harm> {
    let name = words.first().map_or("", |name| name.text.as_str());
    at_words(words, names_an_open_file)
        .map(|(_, word)| Harm::whole(format!("`{name} {word}` runs what it reads")))
        .collect()
}

fn names_an_open_file(word: &str) -> bool {
    let Some(path) = word.find('/').map(|at| &word[at..]) else {
        return false;
    };
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.last() == Some(&"stdin")
        || matches!(parts.first(), Some(&("dev" | "proc")))
        || parts
            .windows(2)
            .any(|pair| pair[0] == "fd" && is_number(pair[1]))
}

/// An interpreter without a file runs its input.
pub fn input_harms(words: &[Word]) -> Vec<Harm> {
    reads_input(words, "--version -V -v -version --help -h -help --test")
}

/// `tells` are options with which it only prints something, or finds its files by itself.
fn reads_input(words: &[Word], tells: &str) -> Vec<Harm> {
    /// Options whose value is the next word, which is not a file to run.
    const VALUED: &str = "-W -X -E --check-hash-based-pycs --title --input-type --stack-trace-limit --dns-result-order \
        --unhandled-rejections --max-http-header-size --icu-data-dir --secure-heap --secure-heap-min \
        --tls-cipher-list --diagnostic-dir --redirect-warnings --report-dir --report-directory --cpu-prof-dir \
        --heap-prof-dir --disable-warning --localstorage-file --experimental-default-type --watch-path -t";
    let mut texts = words.iter().skip(1).map(|word| word.text.as_str());
    while let Some(text) = texts.next() {
        if has_word(VALUED, text) {
            texts.next();
        } else if !text.starts_with('-') || has_word(tells, text) {
            return Vec::new();
        }
    }
    let name = words.first().map_or("", |name| name.text.as_str());
    let why = format!("{name} without a file runs what it reads");
    vec![Harm::whole(why)]
}

/// Modules that check, test or show; many others run or fetch anything.
const PYTHON_MODULES: &str = "pytest unittest doctest json.tool mypy ruff black isort flake8 pylint pyright bandit \
    compileall py_compile tabnanny venv build pip coverage pycodestyle pydocstyle yapf";

/// The module of `python3 -m module …`, also in a cluster such as `-Im`, and the index of its word.
fn module(words: &[Word]) -> Option<(usize, &str)> {
    let (at, word) = at_words(words, |word| has_short(word, "m", "cmWX")).next()?;
    match word.split_once('m') {
        Some((_, "")) => Some((at + 1, words.get(at + 1)?.text.as_str())),
        attached => Some((at, attached?.1)),
    }
}

/// The script of a Django project: its subcommands are known.
fn is_django(script: &str) -> bool {
    base_name(script) == "manage.py"
}

/// Subcommands of `manage.py` that run code from the command line, and options with which all of them run other code.
fn django_harms(words: &[Word]) -> Vec<Harm> {
    const RUN: &str = "shell shell_plus dbshell runscript startapp startproject";
    let harmful = |word: &str| {
        has_word(RUN, word) || is_one_of_long(word, "--pythonpath --settings --command --output")
    };
    let found = at_words(words, harmful);
    found
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` lets manage.py run other code or write a file"),
            )
        })
        .collect()
}

/// `coverage run -m module` runs a module as python does.
pub fn coverage_harms(words: &[Word]) -> Vec<Harm> {
    if !words.iter().any(|word| word.text == "run") {
        return Vec::new();
    }
    if module(words).is_some() {
        return python_harms(words);
    }
    let leaves =
        |word: &str| word.starts_with(['/', '~']) || word.split('/').any(|name| name == "..");
    at_words(words, leaves)
        .map(|(at, word)| Harm::at(at, format!("`{word}` is code from another directory")))
        .collect()
}

/// A rule has to name the module.
pub fn python_harms(words: &[Word]) -> Vec<Harm> {
    if words.get(1).is_some_and(|script| is_django(&script.text)) {
        return django_harms(words);
    }
    let Some((at, module)) = module(words) else {
        return reads_input(words, "--version -V -VV --help -h");
    };
    let is_known = has_word(PYTHON_MODULES, module);
    let is_remedy = module == "pip"
        && has_word(
            "install download wheel config",
            subcommand(&words[at + 1..]),
        );
    let mut harms = harms_of_module(&words[at..], module, at);
    if !(is_known && !is_remedy || only_from_file(&words[at + 1..]) && module == "pip") {
        let why = format!("`-m {module}` runs a module that can do anything");
        harms.push(Harm::at(at, why));
    }
    harms
}

/// The harms of the module, as if it were a program.
fn harms_of_module(words: &[Word], module: &str, at: usize) -> Vec<Harm> {
    let mut words = words.to_vec();
    module.clone_into(&mut words[0].text);
    harms_within(&words, at)
}

/// Whether the harm depends on the program in the arguments.
pub fn runs_others(program: &str) -> bool {
    let program = base_name(program);
    unversioned(program) == "python" || has_word("npx bunx uvx pnpx", program)
}

/// The harms of a command inside another one, from this word on.
pub fn harms_within(words: &[Word], at: usize) -> Vec<Harm> {
    // Nesting is unusual, and could go on for long.
    if let Some(name) = words.first().filter(|name| runs_others(&name.text)) {
        return vec![Harm::whole(format!("{} runs other programs", name.text))];
    }
    let mut harms = super::harms(words);
    for harm in &mut harms {
        harm.move_by(at);
    }
    harms
}

fn subcommand(words: &[Word]) -> &str {
    let mut texts = words.iter().map(|word| word.text.as_str());
    texts
        .find(|text| !text.starts_with('-'))
        .unwrap_or_default()
}

/// `pip install -r requirements.txt`: the project's own dependencies.
fn only_from_file(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    matches!(texts.as_slice(), ["install", "-r" | "--requirement", file] if !file.contains("://"))
}

/// Options of cargo itself, up to `--`; clippy and fix pass the rest to the compiler.
pub fn cargo_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--config --manifest-path --target-dir --artifact-dir --out-dir --root --path --lockfile-path \
        --linker --config-file --tool-config-file";
    let compiles = words.iter().any(|word| has_word("clippy fix", &word.text));
    let end = words.iter().position(|word| word.text == "--");
    let end = end.filter(|_| !compiles).unwrap_or(words.len());
    // cargo does not accept abbreviated options.
    let harmful = |word: &str| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        has_short(word, "CZ", "jpF") || has_word(LONG, name) || is_other_toolchain(word)
    };
    let mut harms: Vec<Harm> = CARGO.harms(&words[..end]);
    harms.extend(at_words(&words[..end], harmful).map(|(at, word)| {
        Harm::at(
            at,
            format!("`{word}` lets cargo run another program or write a file"),
        )
    }));
    harms
}

/// `+name` runs the cargo of another toolchain. The official Rust toolchains do not count as another program.
fn is_other_toolchain(word: &str) -> bool {
    let Some(name) = word.strip_prefix('+') else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |text: &str| text.split('.').count() <= 3 && text.split('.').all(is_number);
    let is_date = |text: &str| text.split('-').count() == 3 && text.split('-').all(is_number);
    let (channel, date) = name.split_once('-').unwrap_or((name, ""));
    let is_channel = has_word("stable beta nightly", channel) || is_version(channel);
    !(is_channel && (date.is_empty() && name == channel || is_date(date)))
}

/// `go run` of a remote package, and options that run or write.
pub fn go_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str =
        "-exec -toolexec -overlay -modfile -C -vettool -fixtool -pkgdir -ldflags -gcflags -replace";
    let runs = subcommand(&words[1..]) == "run";
    let harmful = |word: &str| {
        is_one_of_long(word, LONG) || runs && (word.contains('@') || word.contains("://"))
    };
    let mut harms: Vec<Harm> = at_words(words, harmful)
        .filter(|(at, word)| !are_plain_linker_flags(word, words.get(at + 1)))
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` lets go run another program or write a file"),
            )
        })
        .collect();
    harms.extend(go_tool_harm(words));
    harms
}

/// `-ldflags "-s -w -X main.version=1.2"`: without symbols, and with the values of some variables.
fn are_plain_linker_flags(word: &str, next: Option<&Word>) -> bool {
    let Some(value) = word.trim_start_matches('-').strip_prefix("ldflags") else {
        return false;
    };
    let value = match value.strip_prefix('=') {
        Some(value) => value,
        None if value.is_empty() => next.map_or("", |next| next.text.as_str()),
        None => return false,
    };
    let is_value = |byte: u8| byte.is_ascii_alphanumeric() || b"./_-=+".contains(&byte);
    let is_set = |flag: &str| {
        let (name, value) = flag.split_once('=').unwrap_or_default();
        !name.is_empty()
            && !name.starts_with('-')
            && flag.bytes().all(is_value)
            && !value.is_empty()
    };
    let mut flags = value.split_ascii_whitespace();
    while let Some(flag) = flags.next() {
        let is_plain = match flag {
            "-s" | "-w" => true,
            "-X" => flags.next().is_some_and(is_set),
            _ => false,
        };
        if !is_plain {
            return false;
        }
    }
    !value.is_empty()
}

/// `go env` shows settings and may change them; `go tool` runs one of many programs.
fn go_tool_harm(words: &[Word]) -> Option<Harm> {
    let texts: Vec<&str> = words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
    let is_harmful = match texts.as_slice() {
        ["env", rest @ ..] => rest
            .iter()
            .any(|word| word.starts_with('-') && *word != "-json"),
        ["tool", "cover", rest @ ..] => !rest.iter().any(|word| word.starts_with("-func")),
        ["tool", "pprof", rest @ ..] => {
            !rest.iter().any(|word| *word == "-top" || *word == "-text")
        }
        ["tool", ..] => true,
        [first, ..] if first.starts_with('-') => {
            texts.iter().any(|word| has_word("env tool", word))
        }
        _ => false,
    };
    let why = || format!("`go {}` changes settings or runs other programs", texts[0]);
    is_harmful.then(|| Harm::at(1, why()))
}

/// cmake's scripts and tools, and definitions that name programs.
pub fn cmake_harms(words: &[Word]) -> Vec<Harm> {
    const PROGRAMS: &str =
        "COMPILER LAUNCHER LINKER TOOLCHAIN PROGRAM RULE COMMAND EXECUTABLE INCLUDE PREFIX";
    let defines = |word: &str| {
        // It only writes `compile_commands.json` into the build directory.
        let rest = word.replace("CMAKE_EXPORT_COMPILE_COMMANDS", "");
        PROGRAMS
            .split_ascii_whitespace()
            .any(|name| rest.contains(name))
    };
    let native = words
        .iter()
        .position(|word| word.text == "--")
        .unwrap_or(words.len());
    let harmful = |word: &str| {
        ["-P", "-E", "-C"]
            .iter()
            .any(|start| word.starts_with(start))
            || word.starts_with("--install")
            || word.contains('=') && !word.starts_with("--") && defines(word)
    };
    let mut harms: Vec<Harm> = at_words(&words[..native], harmful)
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` lets cmake run another program or write a file"),
            )
        })
        .collect();
    // The words after `--` go to make or ninja.
    harms.extend(
        at_words(words, |_| true)
            .filter(|(at, _)| *at > native)
            .filter_map(|(at, word)| {
                let bad = word.contains('=') || has_short(word, "fCI", "j");
                bad.then(|| Harm::at(at, format!("`{word}` changes what is run to build")))
            }),
    );
    harms
}
