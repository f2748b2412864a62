use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::client::Client;
use crate::control::protocol::{Down as Request, DownParams, Nothing, Ping};
use std::time::Duration;

/// How often to look whether the process has ended, after it closed its connections.
#[cfg(target_os = "linux")]
const LOOK: Duration = Duration::from_millis(10);

/// Ends the daemon and its slots; returns when it has ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond down
  missiond down --keep     end the daemon, let the slots run on; the next one finds them")]
pub struct Down {
    /// Leave the slots running
    #[arg(long)]
    keep: bool,
    /// Stop waiting after this time
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

impl Down {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.connect().await?;
        let ending = async {
            let pong = client.call::<Ping>(Nothing {}).await?;
            let process = Process::of(pong.pid);
            client
                .call::<Request>(DownParams { keep: self.keep })
                .await?;
            process.ended(client).await;
            Ok::<_, Failure>(pong)
        };
        let Ok(pong) = tokio::time::timeout(self.timeout, ending).await else {
            let timeout = humantime::format_duration(self.timeout);
            return Err(
                Failure::timed_out(format!("the daemon has not ended within {timeout}"))
                    .next("it may still be ending its slots: missiond status"),
            );
        };
        let pong = pong?;
        if context.out.json {
            return context
                .out
                .json(&serde_json::json!({ "name": pong.name, "pid": pong.pid }));
        }
        context.out.done(format!("{} is down", pong.name))
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
