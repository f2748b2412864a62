//! `doctor --rehearse`: the installed program goes through every scene, and the result is remembered.

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::sanitise;
use crate::cli::target::config_to_run;
use crate::config;
use crate::core::claude::Version;
use crate::core::settings::{Kind, SlotConfig};
use crate::lab::rehearsal::{self, Company, SceneOutcome, SceneProgress, SceneVerdict};
use crate::launch::rehearsed::{self, RehearsedProgram};
use crate::launch::{environment, installed_version, process_environment, resolve_program};
use crate::os::paths::ensure_private_dir;
use anstyle::{AnsiColor, Style};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The program to rehearse: the one that was named, else that of the first slot, else `claude` in PATH.
struct Chosen {
    /// The program, with its full path, and its first arguments.
    command: Vec<String>,
    version: Version,
}

pub async fn run(context: &Context, named: &[String]) -> Result<(), Failure> {
    let began = Instant::now();
    let chosen = choose(context, named).await?;
    // Before the rehearsal: a program that is replaced meanwhile was not rehearsed.
    let words = chosen.command.join(" ");
    let program = RehearsedProgram::new(chosen.version, &chosen.command)
        .map_err(|error| Failure::failed(format!("{words}: {error}")))?;
    let said = format!("rehearsing {words}, {}", chosen.version);
    context.out.note(sanitise::text(&said));
    let outcomes = play(context, &chosen).await?;
    let seconds = began.elapsed().as_secs();
    let holds = rehearsal::holds(&outcomes);
    if context.out.json {
        context.out.json(&json!({
            "ok": holds, "program": words, "version": chosen.version.to_string(),
            "seconds": seconds, "scenes": outcomes,
        }))?;
    }
    keep(context, program, &outcomes)?;
    if !holds {
        let text = format!("{} reads wrongly in places: see above", chosen.version);
        let next = "missiond asks you where it must not trust the screen, and hooks hold as before";
        return Err(Failure::failed(text).next(next));
    }
    let held = outcomes.len();
    context.out.note(format!(
        "{held} scenes in {seconds} s; remembered for this program"
    ));
    Ok(())
}

async fn choose(context: &Context, named: &[String]) -> Result<Chosen, Failure> {
    let (path, args) = match named.split_first() {
        Some((program, args)) => {
            let args = args.iter().map(|arg| absolute(arg, &context.env.cwd));
            (named_program(program, &context.env.cwd)?, args.collect())
        }
        None => installed(context)?,
    };
    let environment = process_environment();
    let version = installed_version(&path, &args, &environment, Path::new("/")).await;
    let version = version.map_err(|why| {
        let text = format!("{} does not tell its version: {why}", path.display());
        Failure::failed(text).next(format!("try: {} --version", path.display()))
    })?;
    let program = path.to_string_lossy().into_owned();
    Ok(Chosen {
        command: [program].into_iter().chain(args).collect(),
        version,
    })
}

/// As a slot would find it.
fn installed(context: &Context) -> Result<(PathBuf, Vec<String>), Failure> {
    let config = config_to_run(context)
        .ok()
        .and_then(|file| config::load(&file).ok());
    let slot = config.and_then(|config| {
        let mut slots = config.slots.into_iter();
        slots.find(|slot: &SlotConfig| slot.kind == Kind::Claude)
    });
    let Some(slot) = slot else {
        let path = std::env::var("PATH").unwrap_or_default();
        let program = found("claude", &path, &context.env.cwd)?;
        return Ok((program, vec![]));
    };
    let variables = environment(&slot, Path::new(""), process_environment());
    let path = variables.iter().find(|(name, _)| name == "PATH");
    let command = slot.command.first().map_or("claude", String::as_str);
    let path = path.map_or("", |(_, path)| path.as_str());
    let program = found(command, path, &slot.cwd)?;
    Ok((program, slot.command.get(1..).unwrap_or_default().to_vec()))
}

/// Named by a person: a file here, else one in PATH.
fn named_program(program: &str, cwd: &Path) -> Result<PathBuf, Failure> {
    let here = cwd.join(program);
    let path = std::env::var("PATH").unwrap_or_default();
    match here.is_file() {
        true => found(&here.to_string_lossy(), &path, cwd),
        false => found(program, &path, cwd),
    }
}

/// A file is named from here, while the program will run elsewhere.
fn absolute(arg: &str, cwd: &Path) -> String {
    let file = cwd.join(arg);
    match file.is_file() {
        true => file.to_string_lossy().into_owned(),
        false => arg.to_owned(),
    }
}

fn found(program: &str, path: &str, cwd: &Path) -> Result<PathBuf, Failure> {
    resolve_program(program, Some(path), cwd).map_err(|error| {
        Failure::usage(error.to_string()).next("missiond doctor --rehearse --claude PROGRAM")
    })
}

/// Rehearses until the end or a signal; either way nothing is left behind.
async fn play(context: &Context, chosen: &Chosen) -> Result<Vec<SceneOutcome>, Failure> {
    let missiond = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("this program's own path is unknown: {error}")))?;
    let cancel = CancellationToken::new();
    let company = Company {
        command: chosen.command.clone(),
        version: chosen.version,
        missiond,
        cancel: cancel.clone(),
    };
    let listening = tokio::spawn(cancel_at_signal(cancel));
    let played = rehearsal::rehearse(&company, |progress| show(context, progress)).await;
    listening.abort();
    played.map_err(Failure::failed)
}

async fn cancel_at_signal(cancel: CancellationToken) {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    cancel.cancel();
}

fn keep(
    context: &Context,
    program: RehearsedProgram,
    outcomes: &[SceneOutcome],
) -> Result<(), Failure> {
    let state = context
        .env
        .state_dir()
        .map_err(|error| Failure::failed(error.to_string()))?;
    ensure_private_dir(&state).map_err(|error| Failure::failed(error.to_string()))?;
    let (holds, failed) = (rehearsal::holds(outcomes), rehearsal::failed(outcomes));
    rehearsed::remember(&state, program, holds, failed).map_err(|error| {
        Failure::failed(format!("the result could not be remembered: {error}"))
            .next(format!("look into {}", state.display()))
    })
}

/// On a terminal the scene that goes on is shown, and replaced by its result.
fn show(context: &Context, progress: SceneProgress<'_>) {
    if context.out.json {
        return;
    }
    let mut stdout = anstream::stdout().lock();
    let live = std::io::stdout().is_terminal();
    // Whoever does not read any more will see the exit code.
    let _ = match progress {
        SceneProgress::Begins(scene) if live => write!(stdout, "  …   {scene}\r"),
        SceneProgress::Begins(_) => Ok(()),
        SceneProgress::Ended(outcome) => writeln!(stdout, "{}", line(outcome)),
    };
    let _ = stdout.flush();
}

fn line(outcome: &SceneOutcome) -> String {
    let (word, colour) = match (outcome.result, outcome.needed) {
        (SceneVerdict::Holds, _) => ("ok  ", AnsiColor::Green),
        (SceneVerdict::Fails, true) => ("fail", AnsiColor::Red),
        (SceneVerdict::Fails, false) => ("warn", AnsiColor::Yellow),
        (SceneVerdict::NotTried, _) => ("skip", AnsiColor::Yellow),
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let why = match &outcome.why {
        Some(why) => format!("\n      {}", sanitise::text(why)),
        None => String::new(),
    };
    let (scene, seconds) = (outcome.scene, outcome.seconds);
    format!("{style}{word}{style:#}  {scene:<24}{seconds:>5.1} s{why}")
}
