//! Folders that Claude Code does not trust yet: which slots they stop, and a person's word that they are trusted.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::init::{answer, yes_or_no};
use crate::config::Config;
use crate::control::client::Client;
use crate::control::requests::{Confirm, Status};
use crate::core::claude::reading::{DialogKind, State};
use crate::core::model::{ConfirmParams, Fault, Select, SlotStatus};
use crate::core::settings::{Kind, SlotConfig};
use crate::launch::{environment, process_environment, would_ask};
use crate::os::paths::Env;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often to look whether a slot has come to its question.
const LOOK: Duration = Duration::from_millis(100);
/// Another dialog that has stood this long is not a page on the way: a person has to answer it.
const STANDS: Duration = Duration::from_secs(1);

/// The slots whose folder Claude Code asks about, by folder.
pub type Untrusted = BTreeMap<PathBuf, Vec<String>>;

pub fn untrusted(config: &Config, env: &Env) -> Untrusted {
    let socket = config.daemon.socket_in(env).unwrap_or_default();
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
    /// Whether the person has said that they trust all of them.
    #[serde(skip)]
    said: bool,
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
            let target = context.target();
            let next = match self.said {
                true => format!(
                    "it has not asked about them yet, and your word is kept: missiond up{target} gives it when it asks; what comes first: missiond pending{target}"
                ),
                false => {
                    format!("if you trust what is in them: missiond up{target} --trust")
                }
            };
            context.out.note(format!(
                "Claude Code does not trust these folders yet, and asks before it works there:\n  {shown}\n  {next}"
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
        said: trusts,
    };
    let given = folders.settle(context, &config, timeout).await;
    (folders, given)
}

impl Folders {
    async fn settle(
        &mut self,
        context: &Context,
        config: &Config,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let all = self.untrusted.clone();
        forget_agreed(&context.env, config, &all)?;
        let agreed = agreed(&context.env);
        let is_known = |folder: &PathBuf| self.said || agreed.contains(folder);
        let (known, others): (Untrusted, Untrusted) = all
            .clone()
            .into_iter()
            .partition(|(folder, _)| is_known(folder));
        self.said |= asked(context, &others)?;
        let given = if self.said { all } else { known };
        // Kept before it is given: its question may come when nobody waits for it any more.
        if self.said {
            agree(&context.env, given.keys().cloned())?;
        }
        self.give(context, config, &given, timeout).await
    }
}

/// The file of the folders that a person trusts and that Claude Code has not asked about yet.
fn agreed_file(env: &Env) -> Result<PathBuf, Failure> {
    let state = env.state_dir()?;
    crate::os::paths::ensure_private_dir(&state)?;
    Ok(state.join("trusted-folders.json"))
}

fn agreed(env: &Env) -> BTreeSet<PathBuf> {
    let file = agreed_file(env).ok();
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// Remembers a person's word that they trust these folders: the next `up` gives it to Claude Code's own question.
pub fn agree(env: &Env, folders: impl IntoIterator<Item = PathBuf>) -> Result<(), Failure> {
    let before = agreed(env);
    let mut known = before.clone();
    known.extend(folders);
    match known == before {
        true => Ok(()),
        false => save_agreed(env, &known),
    }
}

/// Claude Code has the word for those of its folders that it trusts by now. It is kept no longer: whoever takes the trust
/// back there must be asked again.
fn forget_agreed(env: &Env, config: &Config, untrusted: &Untrusted) -> Result<(), Failure> {
    let mut folders = agreed(env);
    let before = folders.len();
    let is_ours = |folder: &PathBuf| config.slots.iter().any(|slot| slot.cwd == *folder);
    folders.retain(|folder| !is_ours(folder) || untrusted.contains_key(folder));
    match folders.len() < before {
        true => save_agreed(env, &folders),
        false => Ok(()),
    }
}

fn save_agreed(env: &Env, folders: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let file = agreed_file(env)?;
    crate::os::files::replace(&file, &serde_json::json!(folders).to_string()).map_err(|error| {
        let text = format!(
            "that you trust a folder can't be written to {}: {error}",
            file.display()
        );
        Failure::failed(text)
    })
}

/// Whether Claude Code would ask about this folder, with the environment of this process.
pub fn asks_about(folder: &Path) -> bool {
    would_ask(&process_environment(), folder)
}

impl Folders {
    async fn give(
        &mut self,
        context: &Context,
        config: &Config,
        given: &Untrusted,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let slots: Vec<String> = given.values().flatten().cloned().collect();
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
        forget_agreed(&context.env, config, &self.untrusted)
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
    ask(
        untrusted,
        &mut std::io::stdin().lock(),
        &mut std::io::stdout(),
    )
}

/// Whether the person trusts these folders.
pub fn ask(
    untrusted: &Untrusted,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<bool, Failure> {
    let question = format!(
        "Claude Code does not trust these folders yet, and works there only if you do:\n  {}\n\
         Do you trust what is in them?",
        listed(untrusted).replace('\n', "\n  ")
    );
    answer(input, output, (&question, "no", "  yes or no?"), yes_or_no)
}

/// Says yes to the trust question of each of these slots, for the person who has said it; tells who was answered. A slot
/// at another dialog is looked at again as long as there is one to wait for.
async fn give(
    client: &mut Client,
    slots: &[String],
    timeout: Duration,
) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + timeout;
    let mut given = Vec::new();
    let mut left: Vec<(&String, Instant)> =
        slots.iter().map(|slot| (slot, Instant::now())).collect();
    loop {
        let mut last = None;
        let mut next = Vec::new();
        for (slot, since) in left {
            match look(client, slot).await? {
                TrustLook::Given => given.push(slot.clone()),
                TrustLook::NotAsked => {}
                TrustLook::Another => {
                    let stands = since.elapsed() >= STANDS;
                    last = last.or_else(|| (!stands).then(|| late(slot)));
                    next.push((slot, since));
                }
                TrustLook::NotYet(failure) => {
                    last = Some(failure);
                    next.push((slot, Instant::now()));
                }
            }
        }
        left = next;
        match last {
            None => return Ok(given),
            Some(failure) if Instant::now() >= until => return Err(failure),
            Some(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// What a slot has come to.
enum TrustLook {
    /// Its question was answered.
    Given,
    /// It runs without a question, or does not run.
    NotAsked,
    /// A person has to answer something else first.
    Another,
    /// It may still come to it.
    NotYet(Failure),
}

async fn look(client: &mut Client, slot: &str) -> Result<TrustLook, Failure> {
    let slots = vec![slot.to_owned()];
    let status: Vec<SlotStatus> = client.call::<Status>(Select { slots }).await?;
    let Some(status) = status.into_iter().next() else {
        return Ok(TrustLook::NotAsked);
    };
    Ok(match (status.dialog, status.state) {
        (Some(dialog), _) if dialog.kind == DialogKind::Trust => {
            let params = ConfirmParams {
                slot: slot.to_owned(),
                answer: Some("yes".to_owned()),
                dialog: Some(dialog.id),
                ..ConfirmParams::default()
            };
            match client.call::<Confirm>(params).await {
                Ok(_) => TrustLook::Given,
                // It has not stood still yet, say.
                Err(error) => TrustLook::NotYet(Failure::from(error)),
            }
        }
        (Some(_), _) => TrustLook::Another,
        (None, State::Starting) => TrustLook::NotYet(late(slot)),
        (None, _) => TrustLook::NotAsked,
    })
}

fn late(slot: &str) -> Failure {
    let text = format!("{slot} has not come to its question about trust in time");
    Failure::new(Blame::Fault(Fault::TimedOut), text)
        .next("your word is kept; try again: missiond up")
}
