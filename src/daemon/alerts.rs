//! Fetches a person: runs the command of `[notify]` when a slot has waited or been in doubt too long, gave up, stalled
//! or reached a limit. Once for each of these, a few at a time, and never for long.

use crate::core::machine::about;
use crate::core::model::{Event, What};
use crate::core::settings::NotifyConfig;
use crate::core::text::secrets;
use crate::events::Bus;
use crate::os::peer::RUN_BY;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// Commands that may run at once: a person needs to be fetched once, not for each of a hundred slots.
const AT_ONCE: usize = 4;
/// Notices that may wait for one of them or run: one for each slot of a large house, when all lose their login.
const MAX_NOTICES: usize = 64;
/// A command that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(10);
/// A notice is a line or two, not a file.
const MAX_TEXT: usize = 1000;

/// Something that a person should come for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AlertNotice {
    /// `waits`, `doubtful`, `gave_up` or the name of the trouble.
    event: String,
    slot: String,
    text: String,
}

/// What a slot may wait with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A dialog that nobody has answered yet.
    Answer,
    /// Witnesses that differ. Mostly they agree again by themselves, once the screen was drawn anew.
    Look,
}

impl Need {
    fn event(self) -> &'static str {
        match self {
            Need::Answer => "waits",
            Need::Look => "doubtful",
        }
    }
}

#[derive(Debug)]
struct WaitingAlert {
    /// Of the dialog, if it is one.
    id: Option<String>,
    since: Instant,
    text: String,
    told: bool,
}

/// Which slots wait, and what was told of them.
#[derive(Debug, Default)]
struct WatchedSlot {
    waiting: BTreeMap<(String, Need), WaitingAlert>,
}

/// Listens for as long as the daemon lives; new settings hold at once.
pub fn start(bus: Bus, settings: watch::Receiver<NotifyConfig>, socket: &Path) -> JoinHandle<()> {
    tokio::spawn(run(bus, settings, AlertQueue::new(socket)))
}

async fn run(bus: Bus, mut settings: watch::Receiver<NotifyConfig>, desk: AlertQueue) {
    let mut events = bus.listen().events;
    let mut watch = WatchedSlot::default();
    loop {
        let after = settings.borrow_and_update().notify_after;
        let notices = tokio::select! {
            told = events.next() => match told {
                Some(Ok(told)) => watch.hear(&told.event, Instant::now()).into_iter().collect(),
                // What was missed is in the logs; what waits is told of again by its slot or not at all.
                Some(Err(_)) => Vec::new(),
                None => return,
            },
            () = until(watch.due(after)) => watch.take_due(after, Instant::now()),
            changed = settings.changed() => match changed {
                Ok(()) => Vec::new(),
                Err(_) => return,
            },
        };
        let command = settings.borrow().command.clone();
        for notice in notices.into_iter().filter(|_| !command.is_empty()) {
            tell(&bus, &desk, command.clone(), notice);
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

impl WatchedSlot {
    fn hear(&mut self, event: &Event, now: Instant) -> Option<AlertNotice> {
        let slot = event.slot.clone()?;
        let notice = |event: &str, text: &str| {
            Some(AlertNotice {
                event: event.to_owned(),
                slot: slot.clone(),
                text: bounded(text),
            })
        };
        match &event.what {
            What::Dialog { dialog } => {
                self.wait((slot, Need::Answer), Some(&dialog.id), &about(dialog), now)
            }
            What::Doubtful { why } => self.wait((slot, Need::Look), None, why, now),
            What::DialogGone { id } => {
                let key = (slot, Need::Answer);
                let waiting = self.waiting.get(&key);
                if waiting.is_some_and(|waiting| waiting.id.as_ref() == Some(id)) {
                    self.waiting.remove(&key);
                }
                None
            }
            What::DoubtGone => {
                self.waiting.remove(&(slot, Need::Look));
                None
            }
            What::Exit { .. } | What::Spawned { .. } => {
                self.waiting.retain(|(waiting, _), _| *waiting != slot);
                None
            }
            What::GaveUp { reason } => notice("gave_up", reason),
            What::Trouble { cause, text } => notice(cause, text),
            _ => None,
        }
    }

    /// There is nothing to tell yet.
    fn wait(
        &mut self,
        key: (String, Need),
        id: Option<&str>,
        text: &str,
        since: Instant,
    ) -> Option<AlertNotice> {
        let waiting = WaitingAlert {
            id: id.map(str::to_owned),
            since,
            text: bounded(text),
            told: false,
        };
        self.waiting.insert(key, waiting);
        None
    }

    fn due(&self, after: Option<Duration>) -> Option<Instant> {
        let untold = self.waiting.values().filter(|waiting| !waiting.told);
        Some(untold.map(|waiting| waiting.since).min()? + after?)
    }

    /// Those that have waited for long enough, each once.
    fn take_due(&mut self, after: Option<Duration>, now: Instant) -> Vec<AlertNotice> {
        let Some(after) = after else {
            return Vec::new();
        };
        let due = self
            .waiting
            .iter_mut()
            .filter(|(_, waiting)| !waiting.told && waiting.since + after <= now);
        due.map(|((slot, need), waiting)| {
            waiting.told = true;
            AlertNotice {
                event: need.event().to_owned(),
                slot: slot.clone(),
                text: waiting.text.clone(),
            }
        })
        .collect()
    }
}

/// Nothing secret and nothing long leaves for another program.
fn bounded(text: &str) -> String {
    secrets::mask(text).chars().take(MAX_TEXT).collect()
}

/// Where notices wait for their turn.
#[derive(Debug, Clone)]
struct AlertQueue {
    places: Arc<Semaphore>,
    runners: Arc<Semaphore>,
    /// The daemon's, by which what it runs is known: that is no person.
    socket: PathBuf,
}

impl AlertQueue {
    fn new(socket: &Path) -> AlertQueue {
        AlertQueue {
            places: Arc::new(Semaphore::new(MAX_NOTICES)),
            runners: Arc::new(Semaphore::new(AT_ONCE)),
            socket: socket.to_owned(),
        }
    }
}

/// Runs the command, as soon as fewer run than may. A failure is an event, not more.
fn tell(bus: &Bus, desk: &AlertQueue, command: Vec<String>, notice: AlertNotice) {
    let Ok(place) = desk.places.clone().try_acquire_owned() else {
        tracing::warn!(slot = %notice.slot, "not notified: {MAX_NOTICES} notices wait already");
        return;
    };
    let (bus, runners, socket) = (bus.clone(), desk.runners.clone(), desk.socket.clone());
    tokio::spawn(async move {
        let turn = runners.acquire_owned().await;
        if let Err(error) = run_command(&command, &notice, &socket).await {
            let text = format!("[notify] {}: {error}", command[0]);
            tracing::warn!(slot = %notice.slot, "{text}");
            bus.publish(Some(&notice.slot), What::Warning { text });
        }
        drop((turn, place));
    });
}

async fn run_command(
    command: &[String],
    notice: &AlertNotice,
    socket: &Path,
) -> Result<(), String> {
    let text = format!("{}: {}: {}", notice.slot, notice.event, notice.text);
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
        .env("MISSIOND_EVENT", &notice.event)
        .env("MISSIOND_SLOT", &notice.slot)
        .env("MISSIOND_TEXT", &notice.text)
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
                // One that has just ended needs no kill.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            Err(format!("killed after {} s", LONGEST.as_secs()))
        }
    }
}

/// Variables that a desktop notice has no need of.
fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::{Dialog, DialogKind};

    fn dialog(id: &str) -> What {
        What::Dialog {
            dialog: Dialog {
                id: id.into(),
                kind: DialogKind::Question,
                tool: None,
                input: None,
                text: "Which one?".into(),
                options: Vec::new(),
                selected: None,
                complete: true,
                several_rows: false,
                digits: Default::default(),
                request: None,
            },
        }
    }

    #[test]
    fn a_dialog_is_told_of_once_and_only_when_it_has_waited() {
        let (mut watch, start) = (WatchedSlot::default(), Instant::now());
        let after = Some(Duration::from_secs(60));
        assert_eq!(watch.hear(&Event::sample(dialog("d1")), start), None);
        let due = watch.due(after).unwrap();
        assert_eq!(due, start + Duration::from_secs(60));
        assert_eq!(watch.take_due(after, due - Duration::from_secs(1)), []);
        let told = watch.take_due(after, due);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].event.as_str(), told[0].text.as_str()),
            ("waits", "Which one?")
        );
        assert_eq!(watch.take_due(after, due + Duration::from_secs(600)), []);
        assert_eq!(watch.due(after), None);
    }

    #[test]
    fn one_that_was_answered_in_time_is_not_told_of() {
        let (mut watch, start) = (WatchedSlot::default(), Instant::now());
        let after = Some(Duration::from_secs(60));
        watch.hear(&Event::sample(dialog("d1")), start);
        watch.hear(&Event::sample(What::DialogGone { id: "d0".into() }), start);
        assert!(watch.due(after).is_some(), "another one went");
        watch.hear(&Event::sample(What::DialogGone { id: "d1".into() }), start);
        assert_eq!(watch.due(after), None);
        watch.hear(&Event::sample(dialog("d2")), start);
        assert_eq!(watch.due(None), None, "switched off");
    }

    #[test]
    fn a_doubt_is_told_of_beside_a_dialog_unless_it_goes_in_time() {
        let (mut watch, start) = (WatchedSlot::default(), Instant::now());
        let after = Some(Duration::from_secs(60));
        let doubt = || Event::sample(What::Doubtful { why: "why".into() });
        watch.hear(&doubt(), start);
        watch.hear(&Event::sample(What::DoubtGone), start);
        assert_eq!(watch.due(after), None, "it went");
        watch.hear(&doubt(), start);
        watch.hear(&Event::sample(dialog("d1")), start);
        watch.hear(&Event::sample(What::DialogGone { id: "d1".into() }), start);
        let due = watch.due(after).unwrap();
        let told = watch.take_due(after, due);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            (told[0].event.as_str(), told[0].text.as_str()),
            ("doubtful", "why")
        );
        assert_eq!(watch.take_due(after, due), [], "once");
    }

    #[test]
    fn what_is_told_holds_no_secret_and_has_an_end() {
        let reason = format!("sk-ant-api03-abcdefghijkl {}", "x".repeat(5000));
        let notice =
            WatchedSlot::default().hear(&Event::sample(What::GaveUp { reason }), Instant::now());
        let text = notice.unwrap().text;
        assert!(text.contains("[masked]") && text.chars().count() <= MAX_TEXT);
        assert!(is_secret("ANTHROPIC_API_KEY") && !is_secret("DBUS_SESSION_BUS_ADDRESS"));
    }

    /// All slots may need a person at once.
    #[tokio::test]
    async fn more_than_can_run_at_once_are_all_told_in_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told");
        let script = "sleep 0.05; echo \"$MISSIOND_SLOT\" >> \"$0\"";
        let command = ["sh", "-c", script, &file.display().to_string()].map(str::to_owned);
        let (bus, desk) = (Bus::default(), AlertQueue::new(Path::new("/run/a.sock")));
        let count = 3 * AT_ONCE;
        for n in 0..count {
            let notice = AlertNotice {
                event: "gave_up".into(),
                slot: n.to_string(),
                text: "it failed".into(),
            };
            tell(&bus, &desk, command.to_vec(), notice);
        }
        let all = desk.places.acquire_many(MAX_NOTICES as u32).await;
        assert!(all.is_ok());
        let told = std::fs::read_to_string(&file).unwrap();
        assert_eq!(told.lines().count(), count, "{told}");
    }
}
