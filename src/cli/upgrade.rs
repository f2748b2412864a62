use crate::cli::context::{Context, call};
use crate::cli::failure::{Blame, Failure};
use crate::cli::target::{DaemonPlace, Target};
use crate::cli::{down, duration, up};
use crate::config;
use crate::control::client::Client;
use crate::control::requests::{Ping, Sessions, SessionsParams, Status};
use crate::core::model::{Fault, Nothing, Pong, Select};
use crate::core::text::quoting::quoted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often to look whether the new daemon has taken over a slot.
const LOOK: Duration = Duration::from_millis(50);

/// Replaces the running daemon by this program; slots run on.
///
/// The daemon ends, and one of this program begins with the same config at the same socket and takes over what runs. A `send`
/// that waits goes on. It has succeeded (exit code 0) when every program that ran runs on under the new daemon. A config that
/// this program does not read is told before anything is ended. The new daemon has the environment of this command. A daemon
/// that systemd has started is left to systemd (exit code 4, with the command).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond upgrade
  ~/new/missiond upgrade -c slots.toml")]
pub struct Upgrade {
    /// Stop waiting after this time
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    timeout: Duration,
}

/// What ran before, and what became of it.
#[derive(Debug, Serialize)]
struct Upgraded {
    name: String,
    /// The versions.
    from: String,
    to: String,
    pid: u32,
    /// The slots and sessions that run on.
    adopted: Vec<String>,
    /// Those that ran, and that the new daemon does not have as the same process.
    lost: Vec<String>,
}

impl Upgrade {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.connect().await?;
        let old = call::<Ping>(&mut client, Nothing {}, Some(self.timeout)).await?;
        let place = place_of(&old)?;
        let flags = up::flags_for(&place.config);
        if flags.is_empty() {
            config::load(&place.config)?;
        }
        let program = program_of(old.pid);
        let before = running(&mut client, self.timeout).await?;
        let old = down::end(client, true, self.timeout).await?;
        let brought = up::bring_up(context, &place, flags, self.timeout).await;
        let (new, _) = brought.map_err(|failure| not_started(failure, program, &place))?;
        let after = self.adopted(context, &place, &before).await?;
        report(context, &old, &new, &before, &after)
    }

    /// Waits until the new daemon has all that ran, or the time is over.
    async fn adopted(
        &self,
        context: &Context,
        place: &DaemonPlace,
        before: &BTreeMap<String, u32>,
    ) -> Result<BTreeMap<String, u32>, Failure> {
        let deadline = tokio::time::Instant::now() + self.timeout;
        loop {
            let mut client = context.connect_to(Target::at(place.socket.clone())).await?;
            let after = running(&mut client, self.timeout).await?;
            let is_there = before.iter().all(|one| after.get(one.0) == Some(one.1));
            if is_there || tokio::time::Instant::now() >= deadline {
                return Ok(after);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Where a daemon is, as it says itself.
fn place_of(pong: &Pong) -> Result<DaemonPlace, Failure> {
    if let Some(unit) = unit_of(pong.pid) {
        let text = format!("the daemon {} belongs to {unit} of systemd", pong.name);
        let next = format!(
            "let the unit name the new program, then: systemctl --user restart {}",
            quoted(&unit)
        );
        return Err(Failure::new(Blame::Fault(Fault::Refused), text).next(next));
    }
    let Some(socket) = pong.socket.clone() else {
        let text = format!(
            "the daemon of version {} does not tell its socket",
            pong.version
        );
        return Err(Failure::failed(text).next("missiond down --keep && missiond up"));
    };
    Ok(DaemonPlace {
        config: pong.config.clone(),
        socket,
        logs: pong.logs.clone(),
    })
}

/// The unit that a process is the service of.
fn unit_of(pid: u32) -> Option<String> {
    unit_in(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// missiond's own unit in a path such as `/user.slice/…/app.slice/missiond.service/daemon`.
fn unit_in(groups: &str) -> Option<String> {
    let mut parts = groups.lines().flat_map(|line| line.split('/'));
    let unit = parts.find(|part| part.starts_with("missiond") && part.ends_with(".service"));
    unit.map(str::to_owned)
}

/// The program of a process, as it was started.
fn program_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The process of each slot and session that has one.
async fn running(client: &mut Client, limit: Duration) -> Result<BTreeMap<String, u32>, Failure> {
    let slots = call::<Status>(client, Select::default(), Some(limit)).await?;
    let sessions = call::<Sessions>(client, SessionsParams::default(), Some(limit)).await?;
    let slots = slots.into_iter().map(|one| (one.slot, one.pid));
    let sessions = sessions.into_iter().filter(|one| one.is_alive);
    let sessions = sessions.map(|one| (one.id, one.pid));
    let all = slots.chain(sessions);
    Ok(all.filter_map(|(name, pid)| Some((name, pid?))).collect())
}

/// The old daemon has gone and the new one does not start: the slots live, and the old program can take them back.
fn not_started(failure: Failure, program: Option<PathBuf>, place: &DaemonPlace) -> Failure {
    let word = |path: &Path| quoted(&path.display().to_string());
    // A program that was replaced is still named by its path, with a remark.
    let program = program.filter(|program| program.exists());
    let program = program.map_or("the earlier missiond".to_owned(), |program| word(&program));
    let (config, socket) = (word(&place.config), word(&place.socket));
    let next = failure.next.clone().unwrap_or_default();
    let text = format!(
        "the slots run on without a daemon, since the new one did not start: {}",
        failure.message
    );
    let back = format!("go back with: {program} up -c {config} --socket {socket}");
    Failure::new(failure.blame, text).next(format!("{next}\n{back}").trim_start())
}

fn report(
    context: &Context,
    old: &Pong,
    new: &Pong,
    before: &BTreeMap<String, u32>,
    after: &BTreeMap<String, u32>,
) -> Result<(), Failure> {
    let is_same = |name: &&String| after.get(*name) == before.get(*name);
    let (adopted, lost): (Vec<_>, Vec<_>) = before.keys().partition(is_same);
    let owned = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    let upgraded = Upgraded {
        name: new.name.clone(),
        from: old.version.clone(),
        to: new.version.clone(),
        pid: new.pid,
        adopted: owned(adopted),
        lost: owned(lost),
    };
    let Upgraded { from, to, .. } = &upgraded;
    let versions = match from == to {
        true => format!("{to} again"),
        false => format!("{to}, was {from}"),
    };
    if context.out.json {
        context.out.json(&upgraded)?;
    } else {
        let (name, pid) = (&upgraded.name, upgraded.pid);
        context
            .out
            .done(format!("{name} is {versions}, pid {pid}"))?;
        let list = upgraded.adopted.join(", ");
        let kept = match upgraded.adopted.is_empty() {
            true => "no slot ran".to_owned(),
            false => format!("run on: {list}"),
        };
        context.out.done(kept)?;
    }
    if upgraded.lost.is_empty() {
        return Ok(());
    }
    let text = format!("not taken over: {}", upgraded.lost.join(", "));
    Err(Failure::failed(text)
        .next("see what they do: missiond status\nand why: missiond logs -n 20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_unit_of_missiond_is_one() {
        for (groups, expected) in [
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/missiond.service/daemon\n",
                Some("missiond.service"),
            ),
            (
                "0::/system.slice/missiond@work.service\n",
                Some("missiond@work.service"),
            ),
            (
                "0::/user.slice/user@1000.service/app.slice/vte-spawn-1.scope\n",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(unit_in(groups).as_deref(), expected, "{groups}");
        }
    }
}
