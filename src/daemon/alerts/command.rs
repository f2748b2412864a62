//! Runs the command of `[notify]`, with a bound on how many run at once and for how long.

use crate::core::alerts::Alert;
use crate::core::model::EventKind;
use crate::events::Bus;
use crate::os::peer::RUN_BY;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// The maximum of commands that run at once: a person needs to be called once, not for each of a hundred slots.
const AT_ONCE: usize = 4;
/// The maximum of alerts that wait or run: one for each slot of a large installation, when all lose their login.
const MAX_WAITING: usize = 64;
/// A command that takes longer is stuck.
const LONGEST: Duration = Duration::from_secs(10);

/// The queue of alerts for the command.
#[derive(Debug, Clone)]
pub struct CommandRunner {
    places: Arc<Semaphore>,
    runners: Arc<Semaphore>,
    /// The daemon's socket. It marks the processes that the daemon runs, which are not a person.
    socket: PathBuf,
}

impl CommandRunner {
    pub fn new(socket: &Path) -> CommandRunner {
        CommandRunner {
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            runners: Arc::new(Semaphore::new(AT_ONCE)),
            socket: socket.to_owned(),
        }
    }

    /// Runs the command as soon as its turn comes. A failure is published as an event, and has no other effect.
    pub fn tell(&self, bus: &Bus, command: Vec<String>, alert: Alert) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!(slot = %alert.slot, "not notified: {MAX_WAITING} notices wait already");
            return;
        };
        let (bus, runner) = (bus.clone(), self.clone());
        tokio::spawn(async move {
            if let Err(error) = runner.run(&command, &alert).await {
                let text = format!("[notify] {}: {error}", command[0]);
                tracing::warn!(slot = %alert.slot, "{text}");
                bus.publish(Some(&alert.slot), EventKind::Warning { text });
            }
            drop(place);
        });
    }

    /// Runs the command to its end, when its turn comes.
    pub async fn run(&self, command: &[String], alert: &Alert) -> Result<(), String> {
        let _turn = self.runners.acquire().await;
        run_command(command, alert, &self.socket).await
    }
}

async fn run_command(command: &[String], alert: &Alert, socket: &Path) -> Result<(), String> {
    let text = format!("{}: {}: {}", alert.slot, alert.event, alert.text);
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .arg(&text)
        .env_clear()
        .envs(
            crate::launch::process_environment()
                .into_iter()
                .filter(|(name, _)| !is_secret(name)),
        )
        .env(RUN_BY, socket)
        .env("MISSIOND_EVENT", &alert.event)
        .env("MISSIOND_SLOT", &alert.slot)
        .env("MISSIOND_TEXT", &alert.text)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    match tokio::time::timeout(LONGEST, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            if let Some(group) = group {
                // A command that has just ended needs no kill.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            Err(format!("killed after {} s", LONGEST.as_secs()))
        }
    }
}

/// Variables that a desktop notice does not need.
fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::alerts::test_alert;

    #[test]
    fn the_command_gets_no_secret_of_the_environment() {
        assert!(is_secret("ANTHROPIC_API_KEY") && !is_secret("DBUS_SESSION_BUS_ADDRESS"));
    }

    /// All slots may need a person at once.
    #[tokio::test]
    async fn more_than_can_run_at_once_are_all_told_in_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told");
        let script = "sleep 0.05; echo \"$MISSIOND_SLOT\" >> \"$0\"";
        let command = ["sh", "-c", script, &file.display().to_string()].map(str::to_owned);
        let (bus, runner) = (Bus::default(), CommandRunner::new(Path::new("/run/a.sock")));
        let count = 3 * AT_ONCE;
        for n in 0..count {
            let alert = Alert {
                slot: n.to_string(),
                ..test_alert()
            };
            runner.tell(&bus, command.to_vec(), alert);
        }
        let all = runner.places.acquire_many(MAX_WAITING as u32).await;
        assert!(all.is_ok());
        let told = std::fs::read_to_string(&file).unwrap();
        assert_eq!(told.lines().count(), count, "{told}");
    }
}
