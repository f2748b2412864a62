//! Compares missiond's rules with Claude Code's own, on every command in `tests/policy/corpus` and `tests/policy/cases`:
//! `cargo run --example beside -- PROGRAM…`, each PROGRAM the native `claude` of a version. It writes
//! `tests/policy/beside.txt`: what each version decides by itself. Commands that the file has are not measured again: delete
//! their lines for that.
//!
//! Claude Code runs in print mode, in which it refuses what it would ask about, in a bubblewrap without network,
//! capabilities or a file that it could write, against the scripted endpoint. Its shell is a stub: nothing runs.

mod inside;
mod lists;

use inside::{Job, Outcome};
use lists::{Case, List, Measured};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Calls in one run of Claude Code: each request has all those before it.
const CALLS_IN_A_RUN: usize = 400;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        None => Err("usage: beside PROGRAM…, each the native `claude` of a version".into()),
        Some((first, rest)) if first == inside::FLAG => inside::run(rest),
        Some(_) => compare(&arguments),
    }
}

/// Measures the commands that the file does not have yet. With another set of versions, it measures all of them.
fn compare(programs: &[String]) -> Result<()> {
    let lists = lists::all()?;
    let versions: Vec<String> = programs
        .iter()
        .map(|program| version_of(program))
        .collect::<Result<_>>()?;
    let mut measured = Measured::read()?;
    if measured.versions != versions {
        measured = Measured::by(versions);
    }
    measured.keep(&lists);
    for list in &lists {
        measure(programs, list, &mut measured)?;
        // A run that is stopped goes on where it was.
        measured.write()?;
    }
    println!("{} is written", lists::RESULT);
    Ok(())
}

fn measure(programs: &[String], list: &List, measured: &mut Measured) -> Result<()> {
    let mut missing = list.clone();
    missing
        .commands
        .retain(|command| !measured.has(&Case::new(list, command)));
    if missing.commands.is_empty() {
        return Ok(());
    }
    println!("{}: {} commands", list.name, missing.commands.len());
    let mut found: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
    for (program, version) in programs.iter().zip(measured.versions.clone()) {
        for (command, outcome) in judge(program, &version, &missing)? {
            found.entry(command).or_default().push(outcome);
        }
    }
    for (command, outcomes) in found {
        measured.add(Case::new(list, &command), &outcomes);
    }
    Ok(())
}

fn version_of(program: &str) -> Result<String> {
    let output = Command::new(program).arg("--version").output()?;
    let said = String::from_utf8(output.stdout)?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}

fn judge(program: &str, version: &str, list: &List) -> Result<Vec<(String, Outcome)>> {
    let mut outcomes = Vec::new();
    for commands in list.commands.chunks(CALLS_IN_A_RUN) {
        let mut judged: Vec<Option<Outcome>> = vec![None; commands.len()];
        // An older version gives up the calls beside one that it refuses: those are tried again, fewer at once.
        let mut calls_at_once = 20;
        while judged.iter().any(Option::is_none) {
            let open: Vec<usize> = (0..judged.len())
                .filter(|at| judged[*at].is_none())
                .collect();
            let job = Job {
                mode: mode_of(version).to_owned(),
                permissions: list.permissions(),
                commands: open.iter().map(|at| commands[*at].clone()).collect(),
                calls_at_once,
            };
            for (at, outcome) in open.into_iter().zip(in_sandbox(program, &job)?) {
                judged[at] = outcome;
            }
            calls_at_once = 1.max(calls_at_once / 5);
        }
        outcomes.extend(commands.iter().cloned().zip(judged.into_iter().flatten()));
    }
    println!("  {version}: {}", outcomes.len());
    Ok(outcomes)
}

/// Newer versions have another default mode.
fn mode_of(version: &str) -> &'static str {
    let patch = version
        .rsplit('.')
        .next()
        .and_then(|patch| patch.parse().ok());
    match version.starts_with("2.1.") && patch.is_some_and(|patch: u32| patch >= 200) {
        true => "manual",
        false => "default",
    }
}

/// This program again, beside Claude Code, where nothing can be reached or written.
fn in_sandbox(program: &str, job: &Job) -> Result<Vec<Option<Outcome>>> {
    let place = tempfile::tempdir()?;
    let file = |name: &str| place.path().join(name);
    fs::write(file("job"), serde_json::to_string(job)?)?;
    fs::write(file("outcome"), "")?;
    let here = env::current_exe()?;
    let mut sandbox = Command::new("bwrap");
    sandbox
        .args([
            "--unshare-all",
            "--cap-drop",
            "ALL",
            "--die-with-parent",
            "--new-session",
        ])
        .args(["--clearenv", "--setenv", "PATH", "/usr/bin:/bin"])
        .args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"])
        .args([
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
        ])
        .args([
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ])
        .args([
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            "/home",
            "--tmpfs",
            inside::PROJECT,
        ]);
    for (from, to) in [(Path::new(program), inside::CLAUDE), (&here, inside::SELF)] {
        sandbox
            .arg("--ro-bind")
            .arg(fs::canonicalize(from)?)
            .arg(to);
    }
    sandbox.arg("--ro-bind").arg(file("job")).arg(inside::JOB);
    sandbox
        .arg("--bind")
        .arg(file("outcome"))
        .arg(inside::OUTCOME);
    sandbox.args(["--chdir", inside::PROJECT, inside::SELF, inside::FLAG]);
    let status = sandbox.status()?;
    if !status.success() {
        return Err(format!("bwrap: {status}").into());
    }
    Ok(serde_json::from_str(&fs::read_to_string(file("outcome"))?)?)
}
