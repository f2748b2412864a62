use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::tail::{Since, Tail};
use crate::cli::{complete, sanitise, target};
use crate::config;
use chrono::{DateTime, Utc};
use notify::{RecursiveMode, Watcher};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many lines `-f` begins with, as tail does.
const LINES_BEFORE_FOLLOWING: usize = 10;
/// Some file systems tell nothing about their changes: look by ourselves as well.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Shows a slot's log; works with the daemon down.
///
/// The log directory is that of the config (-c or $MISSIOND_CONFIG), else that of the daemon that answers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond logs coder
  missiond logs coder -f
  missiond logs coder --since 10m
  missiond logs coder -n 20 --json       the events of the slot, as JSON lines")]
pub struct Logs {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// Go on with what is added
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines [default: all, 10 with -f]
    #[arg(short = 'n', long, visible_alias = "tail", value_name = "N")]
    lines: Option<usize>,
    /// Only what is newer: 10m, 2h, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<DateTime<Utc>>,
    /// Control characters as they are
    #[arg(long)]
    raw: bool,
}

impl Logs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let directory = directory(context).await?;
        let file = self.file(&directory, context.out.json)?;
        let changes = self.follow.then(|| Changes::watch(&directory));
        let mut tail = Tail::open(&file).map_err(|error| unreadable(&file, &error))?;
        self.print_what_is_there(context, &mut tail)?;
        let Some(mut changes) = changes else {
            return Ok(());
        };
        loop {
            changes.next().await;
            each_line(&mut tail, |line| self.print(context, &line))?;
        }
    }

    fn file(&self, directory: &Path, json: bool) -> Result<PathBuf, Failure> {
        let extension = if json { "events.jsonl" } else { "log" };
        let file = directory.join(format!("{}.{extension}", self.slot));
        // The name becomes part of a path.
        if config::is_name(&self.slot) && file.exists() {
            return Ok(file);
        }
        Err(Failure::usage(format!(
            "no log of a slot `{}` in {}",
            self.slot,
            directory.display()
        ))
        .next(known_logs(directory)))
    }

    fn print_what_is_there(&self, context: &Context, tail: &mut Tail) -> Result<(), Failure> {
        let default = if self.follow {
            LINES_BEFORE_FOLLOWING
        } else {
            usize::MAX
        };
        let wanted = self.lines.unwrap_or(default);
        let mut since = Since::new(self.since);
        let mut last: VecDeque<String> = VecDeque::new();
        each_line(tail, |line| {
            if !since.keeps(&line) {
                return Ok(());
            }
            if wanted == usize::MAX {
                return self.print(context, &line);
            }
            last.push_back(line);
            if last.len() > wanted {
                last.pop_front();
            }
            Ok(())
        })?;
        last.iter().try_for_each(|line| self.print(context, line))
    }

    fn print(&self, context: &Context, line: &str) -> Result<(), Failure> {
        let line = match (self.raw, context.out.json) {
            (true, _) => line.to_string(),
            (false, true) => sanitise::json(line),
            (false, false) => sanitise::text(line).into_owned(),
        };
        context.out.raw(format!("{line}\n").as_bytes())
    }
}

/// Everything that is written by now.
fn each_line(
    tail: &mut Tail,
    mut use_it: impl FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let lines = tail
            .lines()
            .map_err(|error| unreadable(tail.path(), &error))?;
        if lines.is_empty() {
            return Ok(());
        }
        lines.into_iter().try_for_each(&mut use_it)?;
    }
}

/// Where the logs are: as the named daemon or config says, else as any daemon or config says.
async fn directory(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(socket) = context.named_socket()
        && let Ok(pong) = target::ping(&socket).await
    {
        return Ok(pong.logs);
    }
    if let Some(config) = context.named_config() {
        return Ok(target::place(context, config)?.logs);
    }
    let failure = match target::socket(context).await {
        Ok(socket) => match target::ping(&socket).await {
            Ok(pong) => return Ok(pong.logs),
            Err(error) => target::unreached(context, error),
        },
        Err(failure) => failure,
    };
    match target::config_to_run(context) {
        Ok(config) => Ok(target::place(context, &config)?.logs),
        Err(_) if failure.blame == Blame::NoDaemon => Err(Failure {
            next: Some("say whose logs: missiond logs SLOT -c slots.toml".into()),
            message: "no daemon answers and no config says where the logs are".into(),
            ..failure
        }),
        Err(_) => Err(failure),
    }
}

fn known_logs(directory: &Path) -> String {
    let mut slots: Vec<String> = directory
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".events.jsonl")?.to_string()))
        .collect();
    slots.sort();
    match slots.len() {
        0 => "no slot has a log there yet; name another config with -c FILE".into(),
        _ => format!("there are logs of: {}", slots.join(", ")),
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", file.display()))
}

/// Tells when something happened in a directory.
struct Changes {
    happened: mpsc::Receiver<()>,
    /// Kept for as long as the directory is watched; `None` where that cannot be.
    _watcher: Option<notify::RecommendedWatcher>,
}

impl Changes {
    fn watch(directory: &Path) -> Changes {
        // One is enough: it says "look", and a look sees everything.
        let (tell, happened) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading is an event too, and must not wake us.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                let _ = tell.try_send(());
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        Changes {
            happened,
            _watcher: watcher.ok(),
        }
    }

    async fn next(&mut self) {
        match tokio::time::timeout(LOOK_ANYWAY, self.happened.recv()).await {
            Ok(Some(())) | Err(_) => {}
            // There is no watcher: only the clock tells.
            Ok(None) => tokio::time::sleep(LOOK_ANYWAY).await,
        }
    }
}

fn parse_since(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let ago = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    chrono::Duration::from_std(ago)
        .ok()
        .and_then(|ago| Utc::now().checked_sub_signed(ago))
        .ok_or_else(|| "too long ago".to_string())
}
