//! The steps of the demo, in order: through the control socket, like `missiond send`, `confirm` and `wait`.

use super::DemoError;
use super::person::DemoPerson;
use super::scenario::{self, CODER, READER, REVIEWER};
use super::stage::DemoStage;
use super::told::short;
use super::view::View;
use crate::control::client::{CallError, Client, Notice};
use crate::control::requests::*;
use crate::core::claude::reading::{DialogKind, State};
use crate::core::model::*;
use crate::os::local_time;
use futures_util::StreamExt;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// The timeout of each step. A step takes some seconds, more on a loaded machine.
const PATIENCE_MS: u64 = 120_000;
/// A pause to look at what was just shown.
const GLANCE: Duration = Duration::from_secs(1);

/// Plays all steps, and shows the events meanwhile.
pub async fn play(stage: &mut DemoStage, view: &View, person: DemoPerson) -> Result<(), DemoError> {
    let listener = stage.client().await?;
    let client = stage.client().await?;
    let mut run = DemoRun {
        stage,
        view,
        person,
        client,
    };
    let work = run.stage.all_work();
    tokio::select! {
        told = run.tell() => told,
        heard = listen(listener, view, &work) => heard,
    }
}

/// Shows every event until the daemon closes the connection.
async fn listen(client: Client, view: &View, work: &Path) -> Result<(), DemoError> {
    let mut events = std::pin::pin!(client.events(Select::default()).await?);
    while let Some(notice) = events.next().await {
        if let Notice::Event(event) = notice? {
            view.heard(&event, work)?;
        }
    }
    Err(CallError::Protocol("the daemon has gone".to_owned()).into())
}

struct DemoRun<'a> {
    stage: &'a DemoStage,
    view: &'a View,
    person: DemoPerson,
    client: Client,
}

impl DemoRun<'_> {
    async fn tell(&mut self) -> Result<(), DemoError> {
        self.begin().await?;
        self.allowed().await?;
        let asked = self.denied_and_asked().await? && self.question().await?;
        // A person who ends the demo at a question does not want to see more.
        if asked {
            self.crash().await?;
        }
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), DemoError> {
        let root = self.stage.root().display();
        self.view
            .say(&format!("A daemon with three slots, in {root}"))?;
        let missiond = self.stage.missiond().display();
        self.view.say(&format!("`missiond` below is {missiond}"))?;
        self.view
            .by_hand(&format!("export MISSIOND_SOCKET={root}/demo.sock"))?;
        self.view
            .by_hand("missiond status     in another terminal, while this runs")?;
        for slot in [READER, CODER, REVIEWER] {
            self.wait(slot, State::Idle).await?;
        }
        self.glance().await
    }

    /// Pauses, so that the last step can be read before the next begins.
    async fn glance(&self) -> Result<(), DemoError> {
        tokio::time::sleep(GLANCE).await;
        Ok(())
    }

    async fn allowed(&mut self) -> Result<(), DemoError> {
        self.view.act("a rule says yes")?;
        self.view.by_hand(&format!(
            "missiond send {READER} \"{}\"",
            scenario::SUMMARISE
        ))?;
        self.send(READER, scenario::SUMMARISE, true).await?;
        self.wait(READER, State::Idle).await?;
        self.glance().await
    }

    /// Returns whether the person wants to see more.
    async fn denied_and_asked(&mut self) -> Result<bool, DemoError> {
        self.view.act("a rule says no, and a rule asks you")?;
        self.view
            .by_hand(&format!("missiond send {CODER} \"{}\"", scenario::PUBLISH))?;
        let sent = self.send(CODER, scenario::PUBLISH, true).await?;
        if !self
            .answer(sent, &format!("missiond confirm {CODER} yes"))
            .await?
        {
            return Ok(false);
        }
        self.wait(CODER, State::Idle).await?;
        self.glance().await?;
        let work = self.stage.work(CODER);
        let there = |name: &str| match work.join(name).exists() {
            true => "is there",
            false => "is not there",
        };
        let (kept, made) = (there("build"), there("published"));
        let seen = format!("on disk: build/ {kept}; the file that publish.sh writes {made}");
        self.view.say(&seen)?;
        Ok(true)
    }

    async fn question(&mut self) -> Result<bool, DemoError> {
        self.view.act("a question for you")?;
        self.view.by_hand(&format!(
            "missiond send {REVIEWER} \"{}\"",
            scenario::REVIEW
        ))?;
        let sent = self.send(REVIEWER, scenario::REVIEW, true).await?;
        let by_hand = format!("missiond pending; missiond confirm {REVIEWER} Thorough");
        if !self.answer(sent, &by_hand).await? {
            return Ok(false);
        }
        self.wait(REVIEWER, State::Idle).await?;
        self.glance().await?;
        Ok(true)
    }

    /// Answers the dialog that a message led to, with the person's choice.
    async fn answer(&mut self, sent: SendAnswer, by_hand: &str) -> Result<bool, DemoError> {
        let Some(dialog) = sent.dialog else {
            return Ok(true);
        };
        self.view.by_hand(by_hand)?;
        let written = dialog.free_line().unwrap_or(dialog.options.len());
        let labels = dialog
            .options
            .iter()
            .take(written)
            .map(|option| option.label.as_str());
        let labels: Vec<&str> = labels.collect();
        let usual = usize::from(dialog.kind == DialogKind::Question);
        let Some(chosen) = self.person.choose(self.view, &labels, usual).await? else {
            return Ok(false);
        };
        let params = ConfirmParams {
            slot: sent.slot,
            answer: Some(labels.get(chosen).copied().unwrap_or("no").to_owned()),
            dialog: Some(dialog.id.clone()),
            ..ConfirmParams::default()
        };
        let answer = self.client.call::<Confirm>(params).await?;
        self.view
            .say(&format!("{:<9} answered: {}", answer.slot, answer.chosen))?;
        Ok(true)
    }

    /// Kills a program in the middle of its work, which is resumed in its conversation.
    async fn crash(&mut self) -> Result<(), DemoError> {
        self.view.act("a crash")?;
        self.send(REVIEWER, scenario::LONG, false).await?;
        self.wait(REVIEWER, State::Thinking).await?;
        self.glance().await?;
        let before = self.status(REVIEWER).await?;
        if let Some(pid) = before.as_ref().and_then(|status| status.pid) {
            self.view.by_hand(&format!("kill -9 {pid}"))?;
            kill(pid);
        }
        self.wait(REVIEWER, State::Idle).await?;
        let after = self.status(REVIEWER).await?;
        let session = |status: Option<SlotStatus>| status.and_then(|status| status.session_id);
        let restarts = after.as_ref().map_or(0, |status| status.restarts);
        let (before, after) = (session(before), session(after));
        let same = if before == after {
            "the same"
        } else {
            "another"
        };
        let id = after.unwrap_or_default();
        let turns = self.history(REVIEWER).await?;
        self.view.say(&format!(
            "restarts: {restarts}; it is in {same} conversation {}, which has {turns} entries so far",
            short(&id)
        ))?;
        self.view.by_hand(&format!("missiond history {REVIEWER}"))
    }

    async fn send(&mut self, slot: &str, text: &str, wait: bool) -> Result<SendAnswer, DemoError> {
        let params = SendParams {
            slot: slot.to_owned(),
            text: text.to_owned(),
            wait,
            timeout_ms: Some(PATIENCE_MS),
            shell: false,
            slash: false,
            id: None,
        };
        Ok(self.client.call::<Send>(params).await?)
    }

    async fn wait(&mut self, slot: &str, state: State) -> Result<(), DemoError> {
        let params = WaitParams {
            slot: slot.to_owned(),
            states: vec![state],
            exit: false,
            quiet_ms: None,
            prompt: false,
            output: None,
            timeout_ms: Some(PATIENCE_MS),
        };
        self.client.call::<Wait>(params).await?;
        Ok(())
    }

    async fn status(&mut self, slot: &str) -> Result<Option<SlotStatus>, DemoError> {
        let select = Select {
            slots: vec![slot.to_owned()],
        };
        Ok(self.client.call::<Status>(select).await?.pop())
    }

    async fn history(&mut self, slot: &str) -> Result<usize, DemoError> {
        let params = HistoryParams {
            slot: slot.to_owned(),
            last: None,
        };
        Ok(self.client.call::<History>(params).await?.turns.len())
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // If it has just ended by itself, that is a crash as well.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Shows the paths of the logs, and the next commands.
pub fn last_words(stage: &DemoStage, view: &View, keep: bool) -> Result<(), DemoError> {
    let logs = stage.logs();
    view.act("what was written down")?;
    view.say(&format!("logs: {}", logs.display()))?;
    for (name, what) in LOGS {
        view.say(&format!("  {name:<22} {what}"))?;
    }
    let root = format!("{}/", stage.root().display());
    for line in last_verdicts(&logs) {
        view.say(&format!("  | {}", line.replace(&root, "")))?;
    }
    view.by_hand(&format!("missiond logs {CODER} -f; missiond audit tail"))?;
    view.act("on your own")?;
    view.say("missiond init        writes slots.toml and policies for three roles")?;
    view.say("missiond doctor      what is installed, and what would go wrong")?;
    view.say("missiond up          the daemon in the background; then: missiond status")?;
    match keep {
        true => view.say(&format!(
            "Kept: {root}; its daemon again: missiond up -c {root}slots.toml"
        )),
        false => Ok(()),
    }
}

const LOGS: &[(&str, &str)] = &[
    ("coder.log", "what a person tails"),
    ("coder.events.jsonl", "the same for programs"),
    (
        "coder.cast",
        "the terminal, for asciinema and missiond replay",
    ),
    (
        "audit.jsonl",
        "every verdict and key, each line chained to the one before",
    ),
];

/// The last verdicts in the readable log, as a person would see them.
fn last_verdicts(logs: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(logs.join("coder.log")).unwrap_or_default();
    let verdicts: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("policies/"))
        .collect();
    verdicts
        .iter()
        .rev()
        .take(3)
        .rev()
        .map(|line| local_time::in_line(line).into_owned())
        .collect()
}
