//! What the policy allows against what a real bash then runs. Commands are put together at random; each one
//! that is allowed is run in an empty directory, in an empty environment, with a PATH of stubs that write down
//! their names. If anything ran that no rule allows, or a file appeared, the policy was wrong.

mod support;

use missiond::core::policy::{Ask, Decision, LexicalPaths, Policy, decide};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::skip;

#[path = "policy_fuzz/files.rs"]
mod files;
#[path = "policy_fuzz/scripts.rs"]
mod scripts;
#[path = "policy_fuzz/spellings.rs"]
mod spellings;

const ALLOWED: &[&str] = &["git", "ls", "grep", "cat", "find", "sort", "echo"];
/// Files that lie where the commands run: a glob may turn one into an option.
const NAMES_LIKE_OPTIONS: &[&str] = &["--output=f", "-exec", "-of", "a", "af"];
/// A directory there with an `ls` of its own: it runs only where somebody has set PATH.
const OTHER_PATH: &str = "p";

/// Looked through by the policy: they may run, but only around what is allowed.
const TRANSPARENT: &[&str] = &["timeout", "nohup", "nice", "xargs"];
const FORBIDDEN: &[&str] = &[
    "rm", "curl", "id", "sh", "bash", "env", "sudo", "touch", "lsof", "gitk", "x",
];

const PIECES: &[&str] = &[
    "git",
    "git status",
    "ls",
    "ls -la",
    "grep",
    "cat",
    "find",
    "find .",
    "sort",
    "echo",
    "echo ok",
    "timeout 5",
    "nohup",
    "nice",
    "nice -n 3",
    "xargs",
    "time",
    "rm",
    "curl",
    "id",
    "sh",
    "sh -c",
    "bash -c",
    "env",
    "sudo",
    "touch",
    "lsof",
    "gitk",
    "x",
    "eval",
    "exec",
    "command",
    "-c",
    "-c alias.x=!id x",
    "-calias.x=!id",
    "'-c' x",
    "--exec-path=id",
    "--output=f",
    "--outp=f",
    "'--output'=f",
    "--out\"put\" f",
    "-Oid",
    "-exec",
    "-exec id ;",
    "-exec id \\;",
    "'-exec' id +",
    "-\"exec\" id",
    "-execdir id",
    "-o",
    "-of",
    "-no f",
    "--compress-program=id",
    "--compress-prog id",
    "f",
    "'a b'",
    "\"a b\"",
    "'",
    "\"",
    "\\",
    "\\ ",
    "\\'",
    "\\\"",
    "'id'",
    "\"id\"",
    "''\\id",
    "a''\\;id",
    "a'';id",
    "'a'\\''b'",
    "\"a$\"",
    "\"$\"id",
    "\"\\$(id)\"",
    "\"\\`id\\`\"",
    "\"\\\\$(id)\"",
    "\\$(id)",
    "$x",
    "\"$x\"",
    "$x$(id)",
    "\"$x`id`\"",
    "$((`id`))",
    "$[`id`]",
    "$\"id\"",
    "!(id)",
    "@(id)",
    "\\;",
    "\\|",
    "\\&",
    ";id",
    "|id",
    "||id",
    "&&id",
    "&id",
    "\nid",
    "#\nid",
    "&>/dev/null",
    "&>/dev/nullf",
    "$(id)",
    "`id`",
    // What these run is allowed; what they put in their place is not.
    "$(echo -delete)",
    "`echo -delete`",
    "$(echo --output=f)",
    "\"$(echo --output=f)\"",
    "\"`echo --output=f`\"",
    "$(echo -of)",
    "$(echo $(echo -of))",
    "${x:--delete}",
    "${x:---output=f}",
    "\"${x:--of}\"",
    "$'\\x2ddelete'",
    "$",
    "${x}",
    "${x:-$(id)}",
    "$'\\151d'",
    "\"$(id)\"",
    "'$(id)'",
    "<(id)",
    ">(id)",
    "(",
    ")",
    "{",
    "}",
    "{id,f}",
    "{-delete,}",
    "{--output=f,}",
    "--out{put,}=f",
    "{ id; }",
    "(id)",
    "if",
    "then",
    "fi",
    "for",
    "do",
    "done",
    "!",
    "[[",
    "]]",
    "[",
    "]",
    "((",
    "))",
    "case",
    "esac",
    "function",
    "f(){ id; }",
    "git(){ id; }",
    "alias",
    "alias git=id",
    "x=1",
    "x=-delete;",
    "PATH=.",
    "PATH=p",
    "GIT_PAGER=id",
    "IFS=i",
    "=",
    ">",
    ">>",
    "<",
    ">f",
    "> f",
    "2>",
    "2>&1",
    "2>/dev/null",
    ">/dev/null",
    "&>f",
    ">&f",
    "<<E",
    "<<<",
    "E",
    ";",
    ";;",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "\n",
    "\t",
    " ",
    "  ",
    "#",
    "# id",
    "\\\n",
    "\r",
    "*",
    "?",
    "~",
    "-",
    "--",
    "-delete",
    "*f",
    "-*",
    "[-]*",
    "?",
    "a*",
    "-la",
    "\u{a0}",
    "é",
    ":",
    ",",
    ".",
    "@",
    "%",
    "^",
    "+",
];

/// Small, and the same on every machine for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// Commands that must not be allowed, each for a reason of its own.
const HOSTILE: &[&str] = &[
    "find . -exec id \\;",
    "find . -exec id +",
    "find . -execdir id +",
    "find . -delete",
    "find *",
    "git -c alias.x=!id x",
    "git --exec-path=id log",
    "git log --output=f",
    "git grep -Oid",
    "git log *",
    "sort -o f a",
    "sort -no f a",
    "sort --compress-program=id a",
    "sort *",
    "echo $(id)",
    "echo \"$(id)\"",
    "echo `id`",
    "echo ${x:-$(id)}",
    "cat <(id)",
    "find . $(echo -delete)",
    "find . `echo -delete`",
    "find . \"$(echo -delete)\"",
    "find . ${x:--delete}",
    "find . $'\\055delete'",
    "find . {-delete,}",
    "git log $(echo --output=f)",
    "git log \"`echo --output=f`\"",
    "git log --out{put,}=f",
    "sort $(echo -of)",
    "sort ${x:--of} a",
    "x=--output=f; git log $x",
    "x=-of\nsort $x",
    "for x in -delete; do find . $x; done",
    "PATH=p ls",
    "PATH=p; ls",
    "GIT_PAGER=id git log",
    "$(echo id)",
    "`echo id`",
    "time id",
    "! id",
    "coproc id",
    "[[ -n $(id) ]]",
    "(( $(id) ))",
    "cat <<< $(id)",
    "ls |& id",
    "ls >| f",
    "ls &> f",
    "ls >> f",
    "ls 2> f",
    "ls <> f",
    "> f",
    "function ls { id; }; ls",
    "ls() { id; }; ls",
    "case a in a) id;; esac",
    "while id; do break; done",
    "nohup nice id",
    "env -S id",
    "env -S 'ls; id'",
    "timeout 5 id",
    "timeout -k 1 5 id",
    "nice -n 3 id",
    "nohup id",
    "ls | xargs id",
    "env id",
    "env X=1 id",
    "sudo -u x id",
    "eval id",
    "eval 'ls; id'",
    "command id",
    "exec id",
    "sh -c id",
    "bash -c 'ls; id'",
    "x=1 id",
    "ls; id",
    "ls\nid",
    "ls & id",
    "(id)",
    "{ id; }",
    "if id; then ls; fi",
    "for x in a; do id; done",
    "f() { id; }; f",
    "cat <<E\n$(id)\nE",
    "ls # \\\nid",
    "ls \\\n; id",
    "ls 2>/dev/null; id",
    "ls &>/dev/null; id",
    "ls > f",
    "trap id EXIT",
    "i\\d",
    "$'id'",
];

/// The same to a shell, written in another way.
fn disguised(text: &str, random: &mut Random) -> String {
    let letters: Vec<usize> = (0..text.len())
        .filter(|at| text.as_bytes()[*at].is_ascii_alphabetic())
        .collect();
    let at = letters[random.below(letters.len())];
    let letter = &text[at..=at];
    let other = match random.below(6) {
        0 => format!("'{letter}'"),
        1 => format!("\"{letter}\""),
        2 => format!("\\{letter}"),
        3 => format!("''{letter}"),
        4 => format!("\"\"{letter}"),
        _ => letter.to_owned(),
    };
    format!("{}{other}{}", &text[..at], &text[at + 1..])
}

/// Mostly a sound command with something odd in it: pure noise is never allowed, and teaches nothing.
fn command(random: &mut Random) -> String {
    let mut text = String::new();
    if random.one_in(3) {
        text = disguised(random.of(HOSTILE), random);
        text += random.of(&["", "", " && ", "; ", " | ", "\n"]);
    }
    for part in 0..=random.below(3) {
        if part > 0 {
            text += random.of(&[" && ", " || ", "; ", " | ", "\n", "&&", ";", "|"]);
        }
        text += random.of(ALLOWED);
        for _ in 0..random.below(4) {
            text += random.of(&[" ", " ", " ", "\t", ""]);
            text += match random.one_in(3) {
                true => random.of(PIECES),
                false => random.of(&[
                    "-la",
                    "f",
                    "'a b'",
                    "\"c\"",
                    "status",
                    "--",
                    "-n",
                    "a.b",
                    "2>/dev/null",
                ]),
            };
        }
    }
    if random.one_in(3) {
        insert_one(&mut text, PIECES, random);
    }
    text
}

/// Puts one of these pieces somewhere into the text.
fn insert_one(text: &mut String, pieces: &[&str], random: &mut Random) {
    let at = random.below(text.chars().count() + 1);
    let mut places = text.char_indices().map(|(byte, _)| byte);
    let byte = places.nth(at).unwrap_or(text.len());
    text.insert_str(byte, random.of(pieces));
}

struct Bash {
    directory: tempfile::TempDir,
}

impl Bash {
    fn new() -> Bash {
        let bash = Bash {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        fs::create_dir(bash.path("bin")).expect("a directory for the stubs");
        fs::create_dir(bash.path("cwd")).expect("a directory to run in");
        for name in ALLOWED.iter().chain(FORBIDDEN) {
            bash.stub(name, "");
        }
        for (name, skip) in [
            ("timeout", "shift"),
            ("nohup", ""),
            ("nice", "[ \"$1\" = -n ] && shift 2"),
            ("xargs", "set -- \"$@\" from-stdin"),
        ] {
            bash.stub(name, &format!("{skip}\n\"$@\""));
        }
        bash.stub(
            "env",
            "[ \"$1\" = -S ] && { shift; eval \"$@\"; exit; }; \"$@\"",
        );
        bash.stub("sudo", "\"$@\"");
        bash.stub(
            "find",
            "while [ $# -gt 0 ]; do case $1 in -exec|-execdir) shift; \"$@\"; exit;; -delete) : > deleted;; esac; shift; done",
        );
        // What the real programs would do with these options.
        bash.stub(
            "git",
            "$GIT_PAGER; case \"$1\" in -c*|--exec-path*) id;; esac; for word; do case $word in --outp|--outp=*|--output|--output=*) : > out;; esac; case $1$word in grep-O*) id;; esac; done",
        );
        bash.stub(
            "sort",
            "for word; do case $word in --compress-prog|--compress-prog=*|--compress-program|--compress-program=*) id;; -o*|-no*) : > out;; esac; done",
        );
        for name in NAMES_LIKE_OPTIONS {
            fs::write(bash.path("cwd").join(name), "").expect("a file");
        }
        let other = bash.path("cwd").join(OTHER_PATH);
        fs::create_dir(&other).expect("a directory");
        bash.stub_at(&other.join("ls"), "x", "");
        bash
    }

    /// The files in the directory that a command has made.
    fn new_files(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("cwd")).expect("the directory");
        let names = files.map(|file| file.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut new: Vec<String> = names
            .filter(|name| !NAMES_LIKE_OPTIONS.contains(&name.as_str()) && name != OTHER_PATH)
            .collect();
        new.sort();
        new
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn stub(&self, name: &str, then: &str) {
        self.stub_at(&self.path("bin").join(name), name, then);
    }

    fn stub_at(&self, file: &Path, name: &str, then: &str) {
        let log = self.path("log");
        let text = format!("#!/bin/sh\necho '{name}' >> {}\n{then}\n", log.display());
        fs::write(file, text).expect("a stub");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("an executable stub");
    }

    /// Without a network, capabilities or any file but its own to write, if this machine can do that.
    fn sandboxed(&self) -> Command {
        let Some(bwrap) = bwrap() else {
            return Command::new("/usr/bin/env");
        };
        let mut command = Command::new(bwrap);
        let own = self.directory.path();
        command.args(SANDBOX).arg("--bind").args([own, own]);
        command.arg("--chdir").arg(self.path("cwd")).arg("--");
        command
    }

    /// The programs that ran, and the files that appeared.
    fn run(&self, command: &str) -> (BTreeSet<String>, Vec<String>) {
        let log = self.path("log");
        fs::write(&log, "").expect("an empty log");
        let out = fs::File::create(self.path("out")).expect("a file for what is shown");
        let mut child = self
            .sandboxed()
            .args(["/bin/bash", "--noprofile", "--norc", "-c", command])
            .env_clear()
            .env("PATH", self.path("bin"))
            .current_dir(self.path("cwd"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(Stdio::null())
            .spawn()
            .expect("bash");
        wait(&mut child, command);
        let ran = fs::read_to_string(&log)
            .expect("the log")
            .lines()
            .map(str::to_owned)
            .collect();
        (ran, self.new_files())
    }
}

const SANDBOX: &[&str] = &[
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--unshare-all",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
];

/// The program that makes a sandbox, if there is one and it works here.
fn bwrap() -> Option<&'static Path> {
    static BWRAP: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let directories = std::env::var_os("PATH")?;
        let programs = std::env::split_paths(&directories).map(|path| path.join("bwrap"));
        let works = |program: &PathBuf| {
            let tried = Command::new(program).args(SANDBOX).arg("true").output();
            tried.is_ok_and(|output| output.status.success())
        };
        let mut programs = programs;
        programs.find(works)
    });
    BWRAP.as_deref()
}

fn wait(child: &mut std::process::Child, command: &str) {
    let limit = Instant::now() + Duration::from_secs(3);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > limit {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
            println!("bash was ended on {command:?}");
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn policy() -> Policy {
    let rules: Vec<String> = ALLOWED
        .iter()
        .map(|name| format!("Bash({name} *)"))
        .collect();
    Policy::parse(
        &format!("allow = {rules:?}"),
        Path::new("fuzz.toml"),
        Path::new("/proj"),
    )
    .expect("a good policy")
}

/// A path outside the directory is never run for real, whatever the policy says.
fn is_local(command: &str) -> bool {
    !command.replace("/dev/null", "").contains(['/', '~'])
}

fn seed() -> u64 {
    let given = std::env::var("MISSIOND_FUZZ_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.expect("a clock").as_nanos() as u64 | 1
    });
    println!("to run it again: MISSIOND_FUZZ_SEED={seed}");
    seed
}

/// Runs what the policy allows of many commands, and looks at what ran and which files appeared.
fn run_what_is_allowed(policy: &Policy, may_run: impl Fn(&str) -> bool, may_write: bool) {
    let seed = seed();
    let (bash, mut random) = (Bash::new(), Random(seed));
    let end = Instant::now() + Duration::from_secs(4);
    let mut runs = 0;
    while Instant::now() < end {
        let text = command(&mut random);
        let ask = Ask::bash(&text, "/proj");
        if decide(policy, &ask, &LexicalPaths).decision != Decision::Allow || !is_local(&text) {
            continue;
        }
        runs += 1;
        let (ran, files) = bash.run(&text);
        let wrong: Vec<&String> = ran.iter().filter(|name| !may_run(name)).collect();
        assert!(
            wrong.is_empty(),
            "{text:?} was allowed and ran {wrong:?} (seed {seed})"
        );
        assert!(
            files.is_empty() || may_write,
            "{text:?} was allowed and wrote {files:?} (seed {seed})"
        );
    }
    assert!(
        runs >= 20,
        "only {runs} commands were allowed: this tests nothing (seed {seed})"
    );
    println!("{runs} allowed commands were run");
}

#[test]
fn t55_what_is_allowed_runs_nothing_else() {
    let known = |name: &str| ALLOWED.contains(&name) || TRANSPARENT.contains(&name);
    run_what_is_allowed(&policy(), known, false);
}

#[test]
fn what_is_denied_never_runs_whatever_else_is_allowed() {
    let rules = "allow = [\"Bash\"]\ndeny = [\"Bash(id *)\"]";
    let policy = Policy::parse(rules, Path::new("fuzz.toml"), Path::new("/proj"));
    // Programs that write are allowed here; what they are told to run is not.
    run_what_is_allowed(&policy.expect("a good policy"), |name| name != "id", true);
}

#[test]
fn the_stubs_would_catch_a_wrong_verdict() {
    let bash = Bash::new();
    for (command, program) in [
        ("git $(id)", "id"),
        ("timeout 5 rm f", "rm"),
        ("find . -exec id \\;", "id"),
        ("git status; x", "x"),
        ("git -c alias.x=!id x", "id"),
        ("sort --compress-program=id a", "id"),
        ("GIT_PAGER=id git log", "id"),
        ("PATH=p ls", "x"),
        ("env -S 'ls; id'", "id"),
        ("ls\nid", "id"),
    ] {
        assert!(bash.run(command).0.contains(program), "{command}");
    }
    for (command, file) in [
        ("find . $(echo -delete)", "deleted"),
        ("sort {-of,}", "out"),
        ("git log ${x:---output=f}", "out"),
    ] {
        let bash = Bash::new();
        assert_eq!(bash.run(command).1, [file], "{command}");
    }
    assert_eq!(bash.run("echo a > f").1, ["f"]);
    assert_eq!(
        bash.run("git log *").1,
        ["f", "out"],
        "a name became an option"
    );
}
