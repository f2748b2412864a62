//! Programs that run another program: which of them are transparent for rules that allow, and where in their arguments the other
//! program may be.

use super::Word;
use crate::core::policy::harm;
use crate::core::policy::quick::QuickMap;
use std::sync::LazyLock;

/// A command without the harmless wrappers in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripped<'a> {
    pub words: &'a [Word],
    /// `xargs` adds words that are unknown here.
    pub more_words_follow: bool,
}

/// Removes `timeout 30`, `time`, `nice -n 5`, `nohup`, `stdbuf -oL` and a bare `xargs`: they run the rest unchanged and do
/// nothing else.
pub fn strip(words: &[Word]) -> Stripped<'_> {
    let mut stripped = Stripped {
        words,
        more_words_follow: false,
    };
    while let Some((name, rest)) = stripped.words.split_first() {
        let Some(taken) = harmless_wrapper(&name.text, rest) else {
            break;
        };
        stripped.more_words_follow |= name.text == "xargs";
        stripped.words = &rest[taken..];
    }
    stripped
}

/// How many words belong to the wrapper itself, if it is one and a command follows.
fn harmless_wrapper(name: &str, rest: &[Word]) -> Option<usize> {
    let text = |at: usize| rest.get(at).map(|word| word.text.as_str());
    let taken = match name {
        "timeout" => timeout_words(rest)?,
        "time" => usize::from(text(0) == Some("-p")),
        "nohup" => 0,
        // The only options that change nothing but how the input is split.
        "xargs" => rest
            .iter()
            .take_while(|word| matches!(word.text.as_str(), "-0" | "--null" | "-r"))
            .count(),
        "nice" => match text(0)? {
            "-n" if is_number(text(1)?) => 2,
            option if option.strip_prefix("-n").is_some_and(is_number) => 1,
            option if option.strip_prefix('-').is_some_and(is_number) => 1,
            _ => 0,
        },
        "stdbuf" => rest
            .iter()
            .take_while(|word| is_buffer_option(&word.text))
            .count(),
        _ => return None,
    };
    let next = rest.get(taken)?;
    (!next.text.starts_with('-') && next.doubt.is_none() && !next.globs).then_some(taken)
}

fn timeout_words(rest: &[Word]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = rest.get(at)?.text.as_str();
        at += match word {
            "--preserve-status" | "--foreground" | "-v" | "--verbose" => 1,
            "-k" | "-s" => 2,
            _ if word.starts_with("--kill-after=") || word.starts_with("--signal=") => 1,
            _ => break,
        };
    }
    is_duration(&rest.get(at)?.text).then_some(at + 1)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

fn is_buffer_option(text: &str) -> bool {
    ["-i", "-o", "-e"].iter().any(|option| {
        text.strip_prefix(option)
            .is_some_and(|mode| mode == "L" || is_number(mode))
    })
}

/// Programs that run the program named in their arguments.
const RUNNERS: &str = "env sudo doas pkexec nohup nice ionice timeout time command builtin exec stdbuf setsid watch xargs \
    parallel busybox toybox strace ltrace unshare nsenter systemd-run systemd-inhibit noglob nocorrect \
    coproc unbuffer rlwrap caffeinate xvfb-run dbus-run-session entr hyperfine firejail bwrap npx bunx \
    uvx su runuser script trap proxychains proxychains4 torsocks torify linux64 linux32 prlimit cgexec \
    daemonize start-stop-daemon setpriv numactl catchsegv fakeroot proot valgrind cpulimit tini \
    dumb-init chronic ifne ccache sccache nodemon at batch ! - then do else if while until";

/// Programs that run another one after a subcommand or an option, with the list of those words.
const RUN_BEHIND: &[(&str, &str)] = &[
    (
        "uv poetry pdm hatch rye pipenv conda mamba micromamba heroku nix flox devbox pixi",
        "run shell exec develop -c --command",
    ),
    (
        "bundle rbenv pyenv nodenv asdf mise direnv volta rtx",
        "exec run x",
    ),
    (
        "docker podman nerdctl docker-compose podman-compose",
        "exec run",
    ),
    ("kubectl oc k3s minikube", "exec run debug ssh"),
    (
        "git",
        "run foreach -x --exec --tree-filter --index-filter --msg-filter --env-filter filter-branch",
    ),
    ("npm pnpm yarn bun", "exec x dlx"),
    ("cargo", "watch -x -s"),
    ("tox nox", "--"),
    (
        "concurrently npm-run-all run-p run-s turbo lerna nx wsl vagrant fly flyctl gcloud watchexec",
        "",
    ),
];

static MARKS: LazyLock<QuickMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let rows = RUN_BEHIND.iter();
    rows.flat_map(|(names, marks)| {
        names
            .split_ascii_whitespace()
            .map(move |name| (name, marks.split_ascii_whitespace().collect()))
    })
    .collect()
});

/// Whether a command may run another one that its words name, and after which word.
pub fn runs_behind<'w>(words: impl Iterator<Item = &'w str>) -> Option<usize> {
    let mut words = words.enumerate();
    let (_, name) = words.next()?;
    let marks = MARKS.get(name.rsplit('/').next()?)?;
    match marks.is_empty() {
        true => Some(0),
        false => {
            let mut rest = words.map(|(_, word)| word);
            if !name.ends_with("pnpm") {
                return rest.position(|word| marks.contains(&word)).map(|at| at + 1);
            }
            let rest: Vec<&str> = rest.collect();
            let marked = rest.iter().position(|word| marks.contains(word));
            marked.map(|at| at + 1).or_else(|| harm::run_by_pnpm(&rest))
        }
    }
}

/// The same after an operand of their own.
const RUNNERS_BEHIND_ONE: &str = "flock chroot taskset chrt faketime ssh setarch gosu su-exec perf";

static OPERANDS: LazyLock<QuickMap<&'static str, usize>> = LazyLock::new(|| {
    let of = |list: &'static str, operands| {
        list.split_ascii_whitespace()
            .map(move |name| (name, operands))
    };
    of(RUNNERS, 0).chain(of(RUNNERS_BEHIND_ONE, 1)).collect()
});

/// How many operands of its own a program takes before the program that it runs.
pub fn runner_operands(name: &str) -> Option<usize> {
    OPERANDS.get(name).copied()
}

pub fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "mksh"
            | "ash"
            | "fish"
            | "rbash"
            | "csh"
            | "tcsh"
            | "pwsh"
    )
}

/// The possible positions of the program that a runner runs. An option may or may not take the next word, so there can be
/// several.
pub fn inner_starts(words: &[String], operands: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut own_left = operands;
    let mut after_option = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.starts_with('-') && word.len() > 1 {
            after_option = !word.contains('=');
            continue;
        }
        starts.push(at);
        let surely_the_program =
            !after_option && !is_assignment(word) && !is_duration(word) && !word.starts_with('{');
        after_option = false;
        if surely_the_program {
            if own_left == 0 {
                break;
            }
            own_left -= 1;
        }
    }
    starts
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}
