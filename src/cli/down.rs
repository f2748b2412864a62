use crate::cli::consent;
use crate::cli::context::{ANSWER_LIMIT, Context};
use crate::cli::disk_limit;
use crate::cli::duration;
use crate::cli::failure::{Blame, Failure};
use crate::cli::sanitise;
use crate::control::client::{CallError, Client};
use crate::control::requests::{
    Down as Request, DownParams, Ping, SessionInfo, Sessions, SessionsParams, Status,
};
use crate::core::claude::reading::State;
use crate::core::model::{Fault, Nothing, Pong, Select, SlotStatus};
use crate::os::files::same_file;
use crate::shim;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How often to look whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How long a shim may take to end after the daemon has: on a loaded machine it needs some milliseconds of processor time.
const SHIM_END_LIMIT: Duration = Duration::from_secs(3);

/// Ends the daemon with its slots and sessions.
///
/// Where slots work or wait at a dialog, or sessions run, it says so and asks first. A script, which can't be asked, says --yes; else it is refused (4) and nothing is ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond down
  missiond down --yes      also what is at work, without a question
  missiond down --keep     end the daemon, let slots and sessions run on; the next one finds them")]
pub struct Down {
    /// Leave the slots and sessions running
    #[arg(long)]
    keep: bool,
    /// End also what is at work, without a question
    #[arg(short, long, conflicts_with = "keep")]
    yes: bool,
    /// Stop waiting after this time
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    timeout: Duration,
}

/// What runs in a daemon, as far as its end concerns a person.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct RunningWork {
    slots: Vec<RunningSlot>,
    /// Their ids.
    sessions: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct RunningSlot {
    slot: String,
    state: State,
    /// It works, waits at a dialog, or has something before it.
    at_work: bool,
    /// Messages that wait for their turn: they are dropped with the slot.
    queued: usize,
    background: u32,
    task_id: Option<String>,
    /// The command that a shell waits for.
    foreground: Option<String>,
}

impl RunningWork {
    fn of(slots: &[SlotStatus], sessions: Vec<SessionInfo>) -> RunningWork {
        let runs = |slot: &&SlotStatus| slot.pid.is_some() || slot.queued > 0;
        let running = slots.iter().filter(runs);
        let alive = sessions.into_iter().filter(|session| session.is_alive);
        RunningWork {
            slots: running.map(RunningSlot::of).collect(),
            sessions: alive.map(|session| session.id).collect(),
        }
    }

    /// Keeps only the slots whose work the end of the daemon would cut off.
    fn at_work(mut self) -> RunningWork {
        self.slots.retain(|slot| slot.at_work);
        self
    }

    fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.sessions.is_empty()
    }

    /// `2 slots (coder: thinking, docs: 1 queued message) and 1 running session`.
    fn in_words(&self) -> String {
        let states: Vec<String> = self.slots.iter().map(RunningSlot::in_words).collect();
        let slots = counted(states.len(), "slot") + &format!(" ({})", states.join(", "));
        let sessions = counted(self.sessions.len(), "running session");
        match (self.slots.is_empty(), self.sessions.is_empty()) {
            (_, true) => slots,
            (true, false) => sessions,
            (false, false) => format!("{slots} and {sessions}"),
        }
    }
}

impl RunningSlot {
    fn of(status: &SlotStatus) -> RunningSlot {
        let busy = !matches!(
            status.state,
            State::Starting | State::Idle | State::Exited | State::Error
        );
        RunningSlot {
            slot: status.slot.clone(),
            state: status.state,
            at_work: busy || status.has_work_before_it(),
            queued: status.queued,
            background: status.background,
            task_id: status.task_id.clone(),
            foreground: status.foreground.clone(),
        }
    }

    /// Its state, and what it has before it; what it has before it alone, if it rests.
    fn in_words(&self) -> String {
        let some = |count: usize, what| (count > 0).then(|| counted(count, what));
        let task = self.task_id.as_ref().map(|id| format!("task {id}"));
        let command = self.foreground.as_ref();
        let before = [
            command.map(|command| format!("runs {}", sanitise::one_line(command))),
            task,
            some(self.queued, "queued message"),
            some(self.background as usize, "background command"),
        ];
        let before: Vec<String> = before.into_iter().flatten().collect();
        let rests = self.state == State::Idle && !before.is_empty();
        let state = (!rests).then(|| self.state.name().to_owned());
        let all: Vec<String> = state.into_iter().chain(before).collect();
        format!("{}: {}", self.slot, all.join(" and "))
    }
}

/// `1 slot`, `2 slots`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl Down {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.connect().await?;
        let running = match look(&mut client).await {
            Ok(running) => running,
            // Who has decided already need not know.
            Err(_) if self.keep || self.yes => RunningWork::default(),
            Err(error) => return Err(error.into()),
        };
        let running = match self.keep {
            true => running,
            false => running.at_work(),
        };
        if !self.keep && !self.yes && !running.is_empty() {
            may_end(context, &running)?;
        }
        let pong = end(client, self.keep, self.timeout).await?;
        let left = left_running(&pong, &running, self.keep).await;
        self.report(context, &pong, &running, &left)
    }

    fn report(
        &self,
        context: &Context,
        pong: &Pong,
        running: &RunningWork,
        left: &[String],
    ) -> Result<(), Failure> {
        if context.out.json {
            let what = if self.keep { "kept" } else { "ended" };
            let told = serde_json::json!({
                "name": pong.name, "pid": pong.pid, what: running, "left": left,
            });
            return context.out.json(&told);
        }
        let down = format!("{} is down", pong.name);
        let queued: usize = running.slots.iter().map(|slot| slot.queued).sum();
        let dropped = match queued {
            0 => String::new(),
            _ => format!("; dropped: {}", counted(queued, "queued message")),
        };
        context.out.done(match (running.is_empty(), self.keep) {
            (true, _) => down,
            (false, true) => format!("{down}; still running: {}", running.in_words()),
            (false, false) => format!(
                "{down}; ended while at work: {}{dropped}",
                running.in_words()
            ),
        })?;
        let told = format!(
            "still running, though this daemon did not reach them: {}; missiond up takes them over",
            left.join(", ")
        );
        match (left.is_empty(), self.keep) {
            (true, _) => Ok(()),
            (false, true) => context.out.done(told),
            (false, false) => Err(Failure::failed(told)),
        }
    }
}

/// Ends the daemon that answers there, and waits until its process has gone.
pub async fn end(mut client: Client, keep: bool, timeout: Duration) -> Result<Pong, Failure> {
    let mut pid = None;
    let ending = async {
        let pong = client.call::<Ping>(Nothing {}).await?;
        pid = Some(pong.pid);
        let process = Process::of(pong.pid);
        client.call::<Request>(DownParams { keep }).await?;
        process.ended(client).await;
        Ok::<_, Failure>(pong)
    };
    let ended = tokio::time::timeout(timeout, ending).await;
    ended.unwrap_or_else(|_| {
        let timeout = humantime::format_duration(timeout);
        let why = pid.and_then(disk_limit::waits_for);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let text = format!("the daemon has not ended within {timeout}{why}");
        Err(Failure::timed_out(text).next("it may still be ending its slots: missiond status"))
    })
}

/// The slots and sessions whose shims live on although the daemon did not tell of them: it did not reach them.
///
/// A shim reports the end of its program to the daemon and ends a moment later, so each gets a little time to go.
async fn left_running(pong: &Pong, running: &RunningWork, keep: bool) -> Vec<String> {
    let is_its = |config: &Path| same_file(config, &pong.config);
    let living = shim::Handle::kept_by(|keeper| is_its(&keeper.config));
    // The process table can't be read: nothing is known of them.
    let mut living = living.unwrap_or_default();
    let is_told = |name: &str| {
        let mut slots = running.slots.iter();
        let mut sessions = running.sessions.iter();
        keep && (slots.any(|slot| slot.slot == name) || sessions.any(|session| session == name))
    };
    living.retain(|shim| !is_told(shim.slot()));
    let deadline = tokio::time::Instant::now() + SHIM_END_LIMIT;
    while living.iter().any(shim::Handle::runs) && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
    }
    living.retain(shim::Handle::runs);
    living.iter().map(|shim| shim.slot().to_owned()).collect()
}

async fn look(client: &mut Client) -> Result<RunningWork, CallError> {
    let looking = async {
        let slots = client.call::<Status>(Select::default()).await?;
        let sessions = client.call::<Sessions>(SessionsParams::default()).await?;
        Ok(RunningWork::of(&slots, sessions))
    };
    let looked = tokio::time::timeout(ANSWER_LIMIT, looking).await;
    looked.unwrap_or(Err(CallError::Silent(ANSWER_LIMIT)))
}

/// Asks the person, if there is one; a script has to say it beforehand.
fn may_end(context: &Context, running: &RunningWork) -> Result<(), Failure> {
    let refused = |text: String| Failure::new(Blame::Fault(Fault::Refused), text);
    let words = running.in_words();
    if !consent::can_be_asked(context) {
        let text = format!("this would end {words}, so nothing was done");
        return Err(refused(text).next(
            "end them too: missiond down --yes\n\
             or end the daemon alone: missiond down --keep",
        ));
    }
    let question = format!("this will end {words}: go on? [y/N] ");
    match consent::given(&question)? {
        true => Ok(()),
        false => Err(refused("nothing was ended".to_owned())),
    }
}

/// A process whose end can be seen, reaped by its parent or not.
struct Process {
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

impl Process {
    #[cfg(target_os = "linux")]
    fn of(pid: u32) -> Process {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = Pid::from_raw(pid.cast_signed());
        Process {
            handle: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_pid: u32) -> Process {
        Process {}
    }

    /// The daemon lets go of its connections last; where the system tells, its process is awaited as well.
    async fn ended(self, client: Client) {
        client.closed().await;
        #[cfg(target_os = "linux")]
        while self.handle.as_ref().is_some_and(runs) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The handle of a process can be read once it has ended.
#[cfg(target_os = "linux")]
fn runs(handle: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ended = [PollFd::new(handle, PollFlags::IN)];
    let at_once = Timespec::default();
    matches!(poll(&mut ended, Some(&at_once)), Ok(0))
}
