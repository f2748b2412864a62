use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::target;
use crate::config::{self, Config};
use crate::control;
use crate::core::model::Fault;
use crate::core::text::quoting::quoted;
use crate::daemon::{DaemonError, Holder, Host};
use crate::os::allocator;
use crate::os::paths::Env;
use crate::os::write_queue::WriteQueue;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing_subscriber::EnvFilter;

/// Runs the daemon in the foreground (also without a verb).
///
/// The config is that of -c, else $MISSIOND_CONFIG, else $XDG_CONFIG_HOME/missiond/slots.toml. A
/// slots.toml in the current directory is never taken unasked: a cloned repository must not bring its
/// own approvals.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  missiond run -c slots.toml
  missiond -c slots.toml -v")]
pub struct Run {
    /// Leave the terminal's session first; `up` starts the daemon so
    #[arg(long, hide = true)]
    pub detached: bool,
    /// With no slots, where there is no config yet; `spawn` starts the daemon so
    #[arg(long, hide = true)]
    pub sessions_alone: bool,
}

impl Run {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        allocator::begin_as_daemon();
        let config = target::config_to_run(context)?;
        if self.detached {
            rustix::process::setsid()
                .map_err(|error| Failure::failed(format!("cannot leave the terminal: {error}")))?;
        }
        let log = LogWriter::start()?;
        log_to_stderr(context, &log);
        let config = match self.sessions_alone && !config.exists() {
            true => config::for_sessions_alone(&config)?,
            false => config::load(&config)?,
        };
        let ended = daemon(config, &context.env);
        log.flush();
        ended
    }
}

/// Writes to standard error on a thread: the daemon's log may be on a disk that does not answer.
#[derive(Clone)]
struct LogWriter {
    queue: WriteQueue,
    /// Lines that had no room.
    missing: Arc<AtomicU64>,
}

/// Lines that may wait for the disk.
const ROOM: usize = 1 << 20;

impl LogWriter {
    fn start() -> Result<LogWriter, Failure> {
        let queue = WriteQueue::start("missiond-stderr", ROOM);
        let queue = queue.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
        let missing = Arc::default();
        Ok(LogWriter { queue, missing })
    }

    /// Returns when all is written, or if the disk does not answer.
    fn flush(&self) {
        if let Some(last) = self.queue.push(0, || ()) {
            self.queue.wait_for(last);
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (line, missing) = (bytes.to_vec(), self.missing.clone());
        let given = self.queue.push(bytes.len(), move || {
            let mut stderr = std::io::stderr();
            let count = missing.swap(0, Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(
                    stderr,
                    "{count} lines are missing here: the disk did not answer"
                );
            }
            // A line that can't be written is lost.
            let _ = stderr.write_all(&line);
        });
        if given.is_none() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The daemon's own log; what the slots do is in their files.
fn log_to_stderr(context: &Context, writer: &LogWriter) {
    let level = match (context.flags.quiet, context.flags.verbose) {
        (true, _) => "warn",
        (false, 0) => "info",
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_env("MISSIOND_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("warn,missiond={level}")));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A line that can't be written is lost. To say so on the same stream would panic.
        .log_internal_errors(false)
        .with_writer({
            let writer = writer.clone();
            move || writer.clone()
        });
    // A second subscriber in one process is only possible in tests, where the first serves.
    let _ = if context.out.json {
        log.json().try_init()
    } else {
        let choice = anstream::AutoStream::choice(&std::io::stderr());
        let colour = choice != anstream::ColorChoice::Never;
        log.with_ansi(colour).with_target(false).try_init()
    };
}

/// The one place where the daemon begins.
fn daemon(config: Config, env: &Env) -> Result<(), Failure> {
    let host = Host::own().map_err(failure)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?
        .block_on(control::run(host, config, env))
        .map_err(failure)
}

/// The commands that reach the daemon which has the place; the config that was named here is not its own.
fn how_to_reach(holder: Option<&Holder>) -> String {
    let socket = holder.map_or_else(String::new, |holder| {
        format!(" --socket {}", quoted(&holder.socket.display().to_string()))
    });
    format!("see it with: missiond status{socket}\nend it with: missiond down{socket}")
}

pub(super) fn failure(error: DaemonError) -> Failure {
    let message = error.to_string();
    match error {
        DaemonError::Config(error) => error.into(),
        DaemonError::Taken { holder, .. } => {
            Failure::new(Blame::Fault(Fault::Refused), message).next(how_to_reach(holder.as_ref()))
        }
        DaemonError::Foreign { theirs, ours, .. } => {
            let theirs = quoted(&theirs.display().to_string());
            let next = format!(
                "take them up with their own config: missiond up -c {theirs}\n\
                 or end them: missiond up -c {theirs} && missiond down -c {theirs}\n\
                 or set another `name` under [daemon] in {}",
                ours.display()
            );
            Failure::new(Blame::Fault(Fault::Refused), message).next(next)
        }
        DaemonError::StateOfAnother { theirs, ours, .. } => {
            let theirs = quoted(&theirs.display().to_string());
            let next = format!(
                "set another `name` under [daemon] in {}\n\
                 or, if it takes the place of the other one, move that one away: {theirs}",
                ours.display()
            );
            Failure::new(Blame::Fault(Fault::Refused), message).next(next)
        }
        DaemonError::Inside { .. } => Failure::new(Blame::Fault(Fault::Refused), message)
            .next("start it outside of its slots, in a terminal of your own: missiond up"),
        DaemonError::Place { next, .. } => Failure {
            next,
            ..Failure::failed(message)
        },
    }
}
