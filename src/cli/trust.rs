//! Folders that Claude Code does not trust yet: which slots they stop, and a person's word that they are trusted.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::init::{answer, yes_or_no};
use crate::config::{Config, Kind, SlotConfig};
use crate::control::client::Client;
use crate::control::protocol::{Confirm, ConfirmParams, Fault, Select, SlotStatus, Status};
use crate::launch::{environment, process_environment, would_ask};
use crate::paths::Env;
use crate::reading::{DialogKind, State};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often to look whether a slot has come to its question.
const LOOK: Duration = Duration::from_millis(100);

/// The slots whose folder Claude Code asks about, by folder.
pub type Untrusted = BTreeMap<PathBuf, Vec<String>>;

pub fn untrusted(config: &Config, env: &Env) -> Untrusted {
    let socket = env.socket_for(&config.daemon).unwrap_or_default();
    let asks = |slot: &&SlotConfig| {
        let variables = environment(slot, &socket, process_environment());
        slot.kind == Kind::Claude && would_ask(&variables, &slot.cwd)
    };
    let mut folders = Untrusted::new();
    for slot in config.slots.iter().filter(asks) {
        let slots = folders.entry(slot.cwd.clone()).or_default();
        slots.push(slot.name.clone());
    }
    folders
}

/// The folders of the slots, as far as Claude Code did not trust them.
#[derive(Debug, Default, Serialize)]
pub struct Folders {
    /// Those that it still does not trust, with their slots.
    untrusted: Untrusted,
    /// The slots whose question was answered with yes.
    trusted: Vec<String>,
}

impl Folders {
    /// What a person is told; in JSON it stands in the answer itself.
    pub fn tell(&self, context: &Context) -> Result<(), Failure> {
        if context.out.json {
            return Ok(());
        }
        for slot in &self.trusted {
            context.out.done(format!("{slot}: its folder is trusted"))?;
        }
        if !self.untrusted.is_empty() {
            let shown = listed(&self.untrusted).replace('\n', "\n  ");
            context.out.note(format!(
                "Claude Code does not trust these folders yet, and asks before it works there:\n  {shown}\n  \
                 if you trust what is in them: missiond up{} --trust",
                context.target()
            ));
        }
        Ok(())
    }
}

/// Finds the folders that Claude Code asks about, and says yes for the person who trusts them: by the flag, or asked at
/// the terminal. What was done is told also where it failed in the middle.
pub async fn settle(
    context: &Context,
    file: &Path,
    trusts: bool,
    timeout: Duration,
) -> (Folders, Result<(), Failure>) {
    // A fault in the config is told by others.
    let Ok(config) = crate::config::load(file) else {
        return (Folders::default(), Ok(()));
    };
    let mut folders = Folders {
        untrusted: untrusted(&config, &context.env),
        trusted: Vec::new(),
    };
    let wanted = match trusts {
        true => Ok(true),
        false => asked(context, &folders.untrusted),
    };
    let given = match wanted {
        Ok(true) => folders.give(context, &config, timeout).await,
        Ok(false) => Ok(()),
        Err(failure) => Err(failure),
    };
    (folders, given)
}

impl Folders {
    async fn give(
        &mut self,
        context: &Context,
        config: &Config,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let waiting: Vec<&String> = self.untrusted.values().flatten().collect();
        let started = config.slots.iter().filter(|slot| slot.autostart);
        let slots: Vec<String> = started
            .map(|slot| slot.name.clone())
            .filter(|name| waiting.contains(&name))
            .collect();
        if slots.is_empty() {
            return Ok(());
        }
        let mut client = context.connect().await?;
        self.trusted = give(&mut client, &slots, timeout).await?;
        // Claude Code may not have written it down yet.
        let still = untrusted(config, &context.env);
        let trusted = &self.trusted;
        self.untrusted.retain(|folder, slots| {
            still.contains_key(folder) && !slots.iter().any(|slot| trusted.contains(slot))
        });
        Ok(())
    }
}

/// The folders with their slots, a line for each.
pub fn listed(untrusted: &Untrusted) -> String {
    let lines = untrusted
        .iter()
        .map(|(folder, slots)| format!("{} ({})", folder.display(), slots.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Asks the person at the terminal, if there is one; anything but a yes is a no.
fn asked(context: &Context, untrusted: &Untrusted) -> Result<bool, Failure> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if untrusted.is_empty() || !terminal || context.out.json || context.out.quiet {
        return Ok(false);
    }
    let question = format!(
        "Claude Code does not trust these folders yet, and works there only if you do:\n  {}\n\
         Do you trust what is in them?",
        listed(untrusted).replace('\n', "\n  ")
    );
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout());
    answer(
        &mut input,
        &mut output,
        (&question, "no", "  yes or no?"),
        yes_or_no,
    )
}

/// Says yes to the trust question of each of these slots, for the person who has said it; tells who was answered.
async fn give(
    client: &mut Client,
    slots: &[String],
    timeout: Duration,
) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + timeout;
    let mut given = Vec::new();
    for slot in slots {
        if give_one(client, slot, until).await? {
            given.push(slot.clone());
        }
    }
    Ok(given)
}

async fn give_one(client: &mut Client, slot: &str, until: Instant) -> Result<bool, Failure> {
    loop {
        let select = Select {
            slots: vec![slot.to_owned()],
        };
        let status: Vec<SlotStatus> = client.call::<Status>(select).await?;
        let Some(status) = status.into_iter().next() else {
            return Ok(false);
        };
        let last = match (&status.dialog, status.state) {
            (Some(dialog), _) if dialog.kind == DialogKind::Trust => {
                let params = ConfirmParams {
                    slot: slot.to_owned(),
                    answer: Some("yes".to_owned()),
                    text: None,
                    dialog: Some(dialog.id.clone()),
                    reason: None,
                    anyway: false,
                };
                match client.call::<Confirm>(params).await {
                    Ok(_) => return Ok(true),
                    // It has not stood still yet, say.
                    Err(error) => Failure::from(error),
                }
            }
            (None, State::Starting) => late(slot),
            _ => return Ok(false),
        };
        if Instant::now() >= until {
            return Err(last);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn late(slot: &str) -> Failure {
    let text = format!("{slot} has not come to its question about trust in time");
    Failure::new(Blame::Fault(Fault::TimedOut), text).next("try again: missiond up --trust")
}
