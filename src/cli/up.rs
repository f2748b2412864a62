use crate::cli::context::Context;
use crate::cli::disk_limit;
use crate::cli::duration;
use crate::cli::failure::{Blame, Failure};
use crate::cli::run;
use crate::cli::settle::{self, FailedSlot, Settled};
use crate::cli::status;
use crate::cli::target::{self, DaemonPlace};
use crate::cli::trust::{self, Folders};
use crate::config::{self, LOG_FILE};
use crate::control::client::CallError;
use crate::core::model::{Fault, Pong};
use crate::core::text::quoting::quoted;
use crate::daemon::{Holder, check_log_directory};
use crate::os::files::same_file;
use crate::os::{files, headroom, remedy};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// How often to look whether the new daemon answers; its socket cannot be awaited before it exists.
const LOOK: Duration = Duration::from_millis(25);
/// A daemon says little: this is years of it. Beyond, a new log is begun with the next daemon.
const MAX_LOG: u64 = 16 * 1024 * 1024;
/// A daemon with no slots has little to do before it answers.
const PATIENCE: Duration = Duration::from_secs(30);
const SESSIONS_ALONE: &[&str] = &["--sessions-alone"];
/// As much of a failed daemon's log as a person will read.
const TAIL: u64 = 16 * 1024;

/// Starts the daemon in the background, and waits for its slots.
///
/// Claude Code works in a folder only after somebody has said that they trust it. Where it would ask, you are asked
/// once, on a terminal; --trust says it beforehand. The answer is given to Claude Code's own question, as by `confirm`.
///
/// Ends with 1 where a slot has failed, and says why; the daemon runs on. Starts nothing where the daemon runs
/// already. With no config it brings back the daemon of sessions that were left behind. What the daemon prints goes to
/// missiond.log in the log directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond up -c slots.toml
  missiond up --trust                    you trust what is in the slots' folders
  missiond up --json")]
pub struct UpArgs {
    /// Give up when the daemon does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    timeout: Duration,

    /// Say that you trust the folders of the slots: Claude Code's question about it is answered with yes, also later
    #[arg(long)]
    trust: bool,
}

#[derive(Debug, Serialize)]
struct UpAnswer<'a> {
    /// False where it ran already.
    started: bool,
    pid: u32,
    name: String,
    socket: PathBuf,
    config: PathBuf,
    log: PathBuf,
    /// The slots that should run and have failed.
    failed: Vec<FailedSlot>,
    /// The slots that have not shown yet that they work.
    starting: Vec<String>,
    /// The slots that wait at a dialog.
    asking: Vec<String>,
    /// What stands on the disk and does not hold, with the next step.
    not_taken: Vec<String>,
    #[serde(flatten)]
    folders: &'a Folders,
}

impl UpArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let file = match target::config_to_run(context) {
            Ok(file) => file,
            Err(failure) => return self.without_config(context, failure).await,
        };
        let place = target::place(context, &file)?;
        match target::ping(&place.socket, self.timeout).await {
            Ok(pong) => return self.finish(context, &place, pong, false).await,
            // It has the place, so that another could not start.
            Err(stuck @ CallError::Silent(_)) => return Err(stuck.into()),
            Err(full) if full.is_full() => return Err(full.into()),
            Err(_) => {}
        }
        // It may listen elsewhere: its config has changed since it was started, or it was given a socket.
        if context.named_socket().is_none()
            && let Some((socket, pong)) = target::running_with(context, &place.config).await
        {
            let place = DaemonPlace { socket, ..place };
            return self.finish(context, &place, pong, false).await;
        }
        // Its socket may have been removed. A second one at another socket is refused by itself.
        let is_its = |holder: &Holder| {
            let is_named = context.named_socket().is_some();
            same_file(&holder.config, &place.config) && (!is_named || holder.socket == place.socket)
        };
        if let Some(Holder { socket, .. }) = target::living(context, is_its) {
            target::made_again(context, &socket).await?;
            if let Ok(pong) = target::ping(&socket, self.timeout).await {
                let place = DaemonPlace { socket, ..place };
                return self.finish(context, &place, pong, false).await;
            }
        }
        // Every fault is told here and now, and not by way of a log.
        config::load(&file)?;
        let (pong, started) = bring_up(context, &place, &[], self.timeout).await?;
        self.finish(context, &place, pong, started).await
    }

    /// The daemon answers; its slots may be at Claude Code's question about trust.
    async fn finish(
        self,
        context: &Context,
        place: &DaemonPlace,
        pong: Pong,
        started: bool,
    ) -> Result<(), Failure> {
        if !same_file(&pong.config, &place.config) {
            return Err(another(place, &pong));
        }
        let (folders, given) =
            trust::settle(context, &place.config, self.trust, self.timeout).await;
        report(context, place, pong, started, &folders).await?;
        given
    }
}

impl UpArgs {
    /// Sessions need no config: their daemon may run, or have left some behind.
    async fn without_config(self, context: &Context, failure: Failure) -> Result<(), Failure> {
        let Some(file) = target::no_config(context) else {
            return Err(failure);
        };
        let place = sessions_place(context, file)?;
        if let Ok(pong) = target::ping(&place.socket, self.timeout).await {
            return report(context, &place, pong, false, &Folders::default()).await;
        }
        if target::sessions_left(context) == 0 {
            return Err(failure);
        }
        let (pong, started) = bring_up(context, &place, SESSIONS_ALONE, self.timeout).await?;
        report(context, &place, pong, started, &Folders::default()).await
    }
}

/// The flags of a daemon with this config; one that was started for sessions may have none.
pub fn flags_for(config: &Path) -> &'static [&'static str] {
    match config.exists() {
        true => &[],
        false => SESSIONS_ALONE,
    }
}

fn sessions_place(context: &Context, file: PathBuf) -> Result<DaemonPlace, Failure> {
    let daemon = config::for_sessions_alone(&file)?.daemon;
    Ok(DaemonPlace {
        socket: daemon.socket_in(&context.env)?,
        logs: daemon.logs,
        config: file,
    })
}

/// A daemon with no slots, for whoever needs no more than sessions and has no config yet; gives its socket. A config
/// that is written later is taken up by it.
pub async fn for_sessions(context: &Context, file: PathBuf) -> Result<PathBuf, Failure> {
    let place = sessions_place(context, file)?;
    let (pong, started) = bring_up(context, &place, SESSIONS_ALONE, PATIENCE).await?;
    if started {
        let text = format!("a daemon for sessions was started, pid {}", pong.pid);
        context.out.note(text + "; end it with: missiond down");
    }
    Ok(place.socket)
}

/// The daemon that answers then, and whether it is this one.
pub async fn bring_up(
    context: &Context,
    place: &DaemonPlace,
    flags: &[&str],
    timeout: Duration,
) -> Result<(Pong, bool), Failure> {
    check_log_directory(&place.logs, &context.env, &[LOG_FILE]).map_err(run::failure)?;
    let (log, begin) = open_log(&place.logs)?;
    let mut child = spawn(place, flags, &log, context.flags.verbose)?;
    let waited = tokio::time::timeout(timeout, until_it_answers(&mut child, place, timeout));
    let Ok(outcome) = waited.await else {
        return Err(give_up(&child, timeout, place));
    };
    match outcome? {
        Started::Answers(pong) => Ok((*pong, true)),
        Started::Ended(status) => match target::ping(&place.socket, timeout).await {
            // Another one was quicker.
            Ok(pong) => Ok((pong, false)),
            Err(_) => Err(ended(status, log, begin, place, context)),
        },
    }
}

enum Started {
    Answers(Box<Pong>),
    Ended(ExitStatus),
}

async fn until_it_answers(
    child: &mut Child,
    place: &DaemonPlace,
    timeout: Duration,
) -> Result<Started, Failure> {
    loop {
        let ended = child.try_wait();
        match ended.map_err(|error| Failure::failed(format!("cannot watch the daemon: {error}")))? {
            Some(status) => return Ok(Started::Ended(status)),
            None => tokio::time::sleep(LOOK).await,
        }
        if let Ok(pong) = target::ping(&place.socket, timeout).await {
            return Ok(Started::Answers(Box::new(pong)));
        }
    }
}

/// The log, and where this daemon's part of it begins.
fn open_log(logs: &Path) -> Result<(File, u64), Failure> {
    let fault = |error: std::io::Error| {
        let shown = logs.display();
        let next = match error.kind() {
            ErrorKind::PermissionDenied => {
                "set `logs` under [daemon] in the config to a directory that you can write"
                    .to_owned()
            }
            _ => format!("{}; then start it again", remedy::of(&error, logs)),
        };
        Failure::failed(format!("cannot write the log in {shown}: {error}")).next(next)
    };
    let private = DirBuilder::new().recursive(true).mode(0o700).create(logs);
    private.map_err(fault)?;
    let file = log_file(logs);
    if file.metadata().is_ok_and(|found| found.len() > MAX_LOG) {
        std::fs::rename(&file, logs.join("missiond.log.1")).map_err(fault)?;
    }
    let log = files::append(&file).map_err(fault)?;
    let begin = log.metadata().map_err(fault)?.len();
    Ok((log, begin))
}

fn log_file(logs: &Path) -> PathBuf {
    logs.join(LOG_FILE)
}

fn spawn(place: &DaemonPlace, flags: &[&str], log: &File, verbose: u8) -> Result<Child, Failure> {
    let fault = |error| {
        let why = headroom::why_not_made(&error);
        Failure::failed(format!("cannot start the daemon: {why}"))
    };
    Command::new(std::env::current_exe().map_err(fault)?)
        .args(["run", "--detached", "-c"])
        .arg(&place.config)
        .arg("--socket")
        .arg(&place.socket)
        .args(flags)
        .args((0..verbose).map(|_| "-v"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(fault)?)
        .stderr(log.try_clone().map_err(fault)?)
        .spawn()
        .map_err(fault)
}

async fn report(
    context: &Context,
    place: &DaemonPlace,
    pong: Pong,
    started: bool,
    folders: &Folders,
) -> Result<(), Failure> {
    if !same_file(&pong.config, &place.config) {
        return Err(another(place, &pong));
    }
    let settled = settle::settled(context, place).await?;
    let not_taken = status::not_taken(&pong, &context.target());
    let remarks = settled.remarks(&context.target());
    let Settled {
        total,
        failed,
        starting,
        asking,
    } = settled;
    let runs = format!("{} runs, pid {}", pong.name, pong.pid);
    let failure =
        (!failed.is_empty()).then(|| settle::in_words(&runs, total, &failed, &context.target()));
    if context.out.json {
        context.out.json(&UpAnswer {
            started,
            pid: pong.pid,
            name: pong.name,
            socket: place.socket.clone(),
            config: pong.config,
            log: log_file(&pong.logs),
            failed,
            starting,
            asking,
            not_taken,
            folders,
        })?;
    } else if failure.is_none() {
        let how = if started { "is up" } else { "was up already" };
        let up = format!("{} {how}, pid {}", pong.name, pong.pid);
        context.out.done(up)?;
        let remarks = remarks.iter().chain(&not_taken);
        remarks
            .into_iter()
            .try_for_each(|text| context.out.done(text))?;
    }
    folders.tell(context)?;
    failure.map_or(Ok(()), Err)
}

fn another(place: &DaemonPlace, pong: &Pong) -> Failure {
    let (config, theirs) = (place.config.display(), pong.config.display());
    let socket = quoted(&place.socket.display().to_string());
    let text = format!(
        "{config} was not started: a daemon named `{}` runs already at its socket, with {theirs}",
        pong.name
    );
    Failure::new(Blame::Fault(Fault::Refused), text).next(format!(
        "set another `name` under [daemon] in {config}\nor end that daemon: missiond down --socket {socket}"
    ))
}

/// A daemon that started something ends it in order when it is told to.
fn give_up(child: &Child, timeout: Duration, place: &DaemonPlace) -> Failure {
    let waits_for = child.id().and_then(disk_limit::waits_for);
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        // It may just have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    let timeout = humantime::format_duration(timeout);
    let why = waits_for.map_or_else(String::new, |why| format!(": {why}"));
    Failure::timed_out(format!(
        "the daemon has not answered within {timeout}{why}; it was told to end"
    ))
    .next(format!("see {}", log_file(&place.logs).display()))
}

/// The daemon's own error is the best there is to show.
fn ended(
    status: ExitStatus,
    log: File,
    begin: u64,
    place: &DaemonPlace,
    context: &Context,
) -> Failure {
    let blame = Blame::Fault(match status.code() {
        Some(2) => Fault::Usage,
        Some(4) => Fault::Refused,
        _ => Fault::Failed,
    });
    let said = tail(log, begin).unwrap_or_default();
    Failure::told_in(&said, blame).unwrap_or_else(|| {
        let state = context.env.state_dir().unwrap_or_default();
        let full = [place.logs.as_path(), &state];
        if let Some(full) = full.into_iter().find(|place| headroom::is_disk_full(place)) {
            // Its log had no room for what it had to say.
            let full = full.display();
            let text = format!("the daemon ended as it started: the disk of {full} is full");
            let config = quoted(&place.config.display().to_string());
            let next = format!("make room on it, then start it again: missiond up -c {config}");
            return Failure::new(blame, text).next(next);
        }
        let next = match said.is_empty() {
            true => format!(
                "see what it says: missiond run -c {}",
                quoted(&place.config.display().to_string())
            ),
            false => format!("see {}", log_file(&place.logs).display()),
        };
        Failure::new(blame, format!("the daemon ended as it started ({status})")).next(next)
    })
}

fn tail(mut log: File, begin: u64) -> std::io::Result<String> {
    let end = log.metadata()?.len();
    log.seek(SeekFrom::Start(begin.max(end.saturating_sub(TAIL))))?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes)?;
    Ok(anstream::adapter::strip_str(&String::from_utf8_lossy(&bytes)).to_string())
}
