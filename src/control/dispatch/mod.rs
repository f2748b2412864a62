//! What each request means: from a method and its params to the slots, and back.

mod session;
mod task;
mod tools;
mod wait;

use wait::within;

use super::peer::{Marks, Origin, Peer};
use super::permission;
use super::protocol::*;
use crate::audit::Record;
use crate::daemon::{DaemonHandle, Order};
use crate::events::Bus;
use crate::hook::HookEvent;
use crate::keys;
use crate::reading::State;
use crate::slot::machine::{Confirmation, Input, Message, Reply};
use crate::slot::{Command, SlotHandle};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::future::Future;
use std::time::{Duration, Instant};

/// A regex that is larger than this when compiled is an attack or a mistake.
const MAX_REGEX: usize = 1 << 20;
/// Matches that `search` gives unless it is asked for others.
const MATCHES: usize = 200;

#[derive(Debug)]
pub struct Dispatcher {
    daemon: DaemonHandle,
}

impl Dispatcher {
    pub fn new(daemon: DaemonHandle) -> Dispatcher {
        Dispatcher { daemon }
    }

    pub fn bus(&self) -> &Bus {
        &self.daemon.bus
    }

    /// By what a client inside a slot is known.
    pub fn marks(&self) -> Marks {
        self.daemon.marks()
    }

    /// Whether this client may ask for this. What is refused is written down before the answer leaves.
    pub async fn permit(&self, peer: &Peer, method: &str, params: &Value) -> Result<(), RpcError> {
        let granted = match &peer.origin {
            Origin::Slot(own) => self.is_granted(own, method, params),
            Origin::Outside | Origin::Untold => false,
        };
        let Err(refusal) = permission::check(peer, method, params, granted) else {
            return Ok(());
        };
        let named = || params.get("slot").and_then(Value::as_str);
        let slot = match &peer.origin {
            Origin::Slot(slot) => slot,
            _ => named().unwrap_or_default(),
        };
        let text = format!("refused: {}", refusal.message);
        let record = Record::refused(slot, peer, method, params, &refusal.message);
        if let Err(error) = self.daemon.audit.write(record).await {
            tracing::error!("the audit can't be written: {error}");
        }
        match self.daemon.slots().get(slot) {
            // One that is gone has no log to write to.
            Some(slot) => drop(slot.send(Command::Note(What::Warning { text })).await),
            None => tracing::warn!("{text}"),
        }
        Err(refusal)
    }

    /// Whether `[mcp]` of a slot's role grants this to the programs inside it.
    fn is_granted(&self, own: &str, method: &str, params: &Value) -> bool {
        let policies = self.daemon.policies();
        let Some(grants) = policies.get(own).map(|standing| &standing.policy.grants) else {
            return false;
        };
        if [Task::NAME, Tasks::NAME, Cancel::NAME].contains(&method) {
            return grants.allow.contains(Submit::NAME) && self.is_own_task(own, params);
        }
        if tools::NAMES.contains(&method) {
            return grants.allow.contains(UnifiedExec::NAME) && self.is_own_session(own, params);
        }
        let named = |slots: Vec<String>| self.names(&Select { slots }).unwrap_or_default();
        let reach = match &grants.slots {
            Some(slots) if slots.is_empty() => Vec::new(),
            Some(slots) => named(slots.iter().cloned().collect()),
            None => named(Vec::new())
                .into_iter()
                .filter(|name| name != own)
                .collect(),
        };
        let wanted = named(permission::targets(params));
        grants.allow.contains(method)
            && !permission::escapes(params)
            && !wanted.is_empty()
            && wanted.iter().all(|name| reach.contains(name))
    }

    pub async fn call(&self, peer: &Peer, method: &str, params: Value) -> Result<Value, RpcError> {
        match method {
            Ping::NAME => run::<Ping, _>(params, |_| async { Ok(self.daemon.pong()) }).await,
            Status::NAME => run::<Status, _>(params, |select| self.status(select)).await,
            Stats::NAME => run::<Stats, _>(params, |_| async { Ok(self.stats()) }).await,
            Start::NAME => run::<Start, _>(params, |select| self.each(select, Input::Start)).await,
            Stop::NAME => run::<Stop, _>(params, |select| self.each(select, Input::Stop)).await,
            Restart::NAME => {
                run::<Restart, _>(params, |select| self.each(select, Input::Restart)).await
            }
            Adopt::NAME => run::<Adopt, _>(params, |params| self.adopt(params)).await,
            Send::NAME => run::<Send, _>(params, |params| self.send(params)).await,
            Pending::NAME => run::<Pending, _>(params, |select| self.pending(select)).await,
            Confirm::NAME => {
                run::<Confirm, _>(params, |params| self.confirm(params, peer.uid)).await
            }
            Interrupt::NAME => run::<Interrupt, _>(params, |one| self.interrupt(one)).await,
            Screen::NAME => run::<Screen, _>(params, |params| self.screen(params)).await,
            History::NAME => run::<History, _>(params, |params| self.history(params)).await,
            Search::NAME => run::<Search, _>(params, |params| self.search(params)).await,
            Wait::NAME => run::<Wait, _>(params, |params| self.wait(params)).await,
            Write::NAME => run::<Write, _>(params, |params| self.write(params)).await,
            Why::NAME => run::<Why, _>(params, |one| self.why(one)).await,
            InForce::NAME => run::<InForce, _>(params, |one| self.policy(one)).await,
            Submit::NAME => run::<Submit, _>(params, |params| self.submit(params, peer)).await,
            Task::NAME => run::<Task, _>(params, |params| self.task(params)).await,
            Tasks::NAME => run::<Tasks, _>(params, |params| self.tasks(params, peer)).await,
            Cancel::NAME => run::<Cancel, _>(params, |one| self.cancel(one)).await,
            Reload::NAME => run::<Reload, _>(params, |_| self.reload()).await,
            Down::NAME => run::<Down, _>(params, |params| self.down(params)).await,
            Hook::NAME => run::<Hook, _>(params, |params| self.hook(params)).await,
            _ => self.call_session(peer, method, params).await,
        }
    }

    /// The names that are meant, in their order, each once; for none, all slots of the configuration. Sessions
    /// belong to whoever made them, and are named.
    pub fn names(&self, select: &Select) -> Result<Vec<String>, RpcError> {
        let slots = self.daemon.slots();
        if select.slots.is_empty() {
            let of_config = slots.iter().filter(|(_, slot)| !slot.is_session());
            return Ok(of_config.map(|(name, _)| name.clone()).collect());
        }
        let mut names: Vec<String> = Vec::new();
        for wanted in &select.slots {
            let found: Vec<&String> = match wanted.strip_prefix('@') {
                Some(role) => slots
                    .iter()
                    .filter(|(_, slot)| slot.status().role == role)
                    .map(|(name, _)| name)
                    .collect(),
                None => slots.keys().filter(|name| *name == wanted).collect(),
            };
            if found.is_empty() {
                return Err(self.unknown(wanted));
            }
            for name in found {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        Ok(names)
    }

    fn unknown(&self, name: &str) -> RpcError {
        if let Some(gone) = self.daemon.gone(name) {
            let at = gone.at.format("%H:%M:%S UTC");
            let text = format!("the session `{name}` was closed at {at}: {}", gone.why);
            return RpcError::new(Fault::Usage, text).next("missiond sessions");
        }
        let slots = self.daemon.slots();
        let unknown = |text: String| RpcError::new(Fault::Usage, text);
        if let Some(role) = name.strip_prefix('@') {
            let roles: BTreeSet<String> = slots.values().map(|slot| slot.status().role).collect();
            let roles: Vec<String> = roles.into_iter().collect();
            return unknown(format!("no slot has the role `{role}`"))
                .next(format!("the roles are: {}", roles.join(", ")));
        }
        let known: Vec<&str> = slots.keys().map(String::as_str).collect();
        unknown(format!("no slot or session `{name}`")).next(match known.is_empty() {
            true => "there are none; make a session with: missiond spawn".to_owned(),
            false => format!("the slots are: {}", known.join(", ")),
        })
    }

    /// A slot or a session, if there is one of this name.
    pub fn handle(&self, name: &str) -> Option<SlotHandle> {
        self.daemon.slots().get(name).cloned()
    }

    pub fn slot(&self, name: &str) -> Result<SlotHandle, RpcError> {
        self.daemon
            .slots()
            .get(name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    pub fn statuses(&self, selected: &Option<Vec<String>>) -> Vec<SlotStatus> {
        let slots = self.daemon.slots();
        let meant = slots
            .iter()
            .filter(|(name, _)| selected.as_ref().is_none_or(|names| names.contains(name)));
        meant.map(|(_, slot)| slot.status()).collect()
    }

    async fn status(&self, select: Select) -> Result<Vec<SlotStatus>, RpcError> {
        let names = self.names(&select)?;
        let mut statuses: Vec<SlotStatus> = names
            .iter()
            .map(|name| self.slot(name).map(|slot| slot.status()))
            .collect::<Result<_, _>>()?;
        self.measure(&mut statuses).await;
        Ok(statuses)
    }

    /// Fills in what the processes use, which is measured only for those who ask.
    async fn measure(&self, statuses: &mut [SlotStatus]) {
        let running: Vec<u32> = statuses.iter().filter_map(|status| status.pid).collect();
        if running.is_empty() {
            return;
        }
        let used = self.daemon.meter.of(running).await;
        let statuses = statuses.iter_mut().filter(|status| status.pid.is_some());
        for (status, usage) in statuses.zip(used) {
            status.memory = usage.map(|usage| usage.memory);
            status.cpu = usage.map(|usage| usage.cpu);
        }
    }

    fn stats(&self) -> StatsAnswer {
        let states: Vec<State> = self
            .statuses(&None)
            .iter()
            .map(|status| status.state)
            .collect();
        let stopped = states
            .iter()
            .filter(|state| matches!(state, State::Exited | State::Error))
            .count();
        let idle = states.iter().filter(|state| **state == State::Idle).count();
        let total = states.len();
        StatsAnswer {
            total,
            running: total - stopped,
            idle,
            busy: total - stopped - idle,
            stopped,
        }
    }

    /// The same for several slots at once; one that fails does not hide the others.
    async fn each(&self, select: Select, make: fn(u64) -> Input) -> Result<Vec<Done>, RpcError> {
        let names = self.names(&select)?;
        let slots: Vec<SlotHandle> = names
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<_, _>>()?;
        let asked = slots.iter().map(|slot| slot.ask(make));
        let outcomes = futures_util::future::join_all(asked).await;
        let done = slots.iter().zip(outcomes).map(|(slot, outcome)| {
            let status = slot.status();
            Done {
                slot: status.slot,
                state: status.state,
                error: outcome.err(),
            }
        });
        Ok(done.collect())
    }

    async fn adopt(&self, params: AdoptParams) -> Result<AdoptAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let session = params.session_id;
        let id = session.to_string();
        let others = self.statuses(&None).into_iter();
        let mut others = others.filter(|other| other.slot != params.slot);
        if let Some(other) = others.find(|other| other.session_id.as_ref() == Some(&id)) {
            let text = format!("{id} is the conversation of slot {}", other.slot);
            return Err(RpcError::new(Fault::Refused, text));
        }
        let restarts = slot
            .request(|reply| Command::TakeOver { session, reply })
            .await?;
        if restarts {
            slot.ask(Input::Restart).await?;
        } else if params.start {
            slot.ask(Input::Start).await?;
        }
        Ok(AdoptAnswer {
            slot: params.slot,
            session_id: session,
            running: slot.status().pid.is_some(),
        })
    }

    async fn send(&self, params: SendParams) -> Result<SendAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let name = params.slot.clone();
        if slot.status().kind != "claude" {
            let text = format!("{name} is a plain program, not Claude Code");
            return Err(
                RpcError::new(Fault::Refused, text).next(format!("missiond write {name} …"))
            );
        }
        let meaning = keys::Meaning {
            shell: params.shell,
            slash: params.slash,
        };
        let text = keys::message(&params.text, meaning).map_err(|error| not_sendable(&error))?;
        let slash = params.slash && text.starts_with('/');
        let began = Instant::now();
        let wait = params.wait;
        let limit = params.timeout_ms.map(Duration::from_millis);
        let send = |token| {
            Input::Send(Message {
                token: Some(token),
                text,
                slash,
                wait,
                task: None,
            })
        };
        let reply = slot.ask_within(limit, send).await?;
        let answer = |response, source, dialog| SendAnswer {
            slot: name,
            response,
            duration_ms: began.elapsed().as_millis() as u64,
            session_id: slot.status().session_id,
            source,
            dialog,
        };
        Ok(match reply {
            Reply::Answered { text, source } => answer(text, Some(source.to_owned()), None),
            Reply::NeedsPerson(dialog) => answer(None, None, Some(*dialog)),
            _ => answer(None, None, None),
        })
    }

    async fn pending(&self, select: Select) -> Result<Vec<PendingDialog>, RpcError> {
        let statuses = self.status(select).await?;
        let waiting = statuses.into_iter().filter_map(|status| {
            let SlotStatus {
                slot,
                role,
                since,
                dialog,
                waits_because,
                ..
            } = status;
            dialog.map(|dialog| PendingDialog {
                slot,
                role,
                since,
                dialog,
                why: waits_because,
            })
        });
        Ok(waiting.collect())
    }

    async fn confirm(&self, params: ConfirmParams, uid: u32) -> Result<ConfirmAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let before = slot.status();
        let always = params.answer.eq_ignore_ascii_case("always");
        let ConfirmParams {
            answer,
            dialog,
            reason,
            ..
        } = params;
        let reply = slot
            .ask(|token| {
                Input::Confirm(Confirmation {
                    token,
                    answer,
                    dialog,
                    reason,
                    uid,
                })
            })
            .await?;
        let Reply::Confirmed { dialog, chosen } = reply else {
            return Err(RpcError::new(Fault::Failed, "the slot gave no answer"));
        };
        let rule = if always {
            self.allow_always(&before).await?
        } else {
            None
        };
        Ok(ConfirmAnswer {
            slot: before.slot,
            dialog,
            chosen,
            rule,
        })
    }

    /// `always`: yes to this one, and a narrow rule for the next.
    async fn allow_always(&self, status: &SlotStatus) -> Result<Option<String>, RpcError> {
        let Some(dialog) = &status.dialog else {
            return Ok(None);
        };
        let Some(tool) = dialog.tool.clone() else {
            return Ok(None);
        };
        let input = dialog.input.clone().map_or(Value::Null, Value::Object);
        let (role, cwd) = (status.role.clone(), status.cwd.clone());
        self.daemon
            .order(|reply| Order::AllowAlways {
                role,
                tool,
                input,
                cwd,
                reply,
            })
            .await
            .map(Some)
    }

    async fn interrupt(&self, one: OneSlot) -> Result<InterruptAnswer, RpcError> {
        match self.slot(&one.slot)?.ask(Input::Interrupt).await? {
            Reply::Interrupted(effect) => Ok(InterruptAnswer {
                slot: one.slot,
                effect: effect.to_owned(),
            }),
            _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
        }
    }

    async fn screen(&self, params: ScreenParams) -> Result<ScreenAnswer, RpcError> {
        self.slot(&params.slot)?
            .request(|reply| Command::Screen { params, reply })
            .await
    }

    async fn history(&self, params: HistoryParams) -> Result<Vec<Turn>, RpcError> {
        let last = params.last;
        self.slot(&params.slot)?
            .request(|reply| Command::History { last, reply })
            .await
    }

    async fn search(&self, params: SearchParams) -> Result<Vec<Match>, RpcError> {
        let (pattern, limit) = (regex(&params.pattern)?, params.limit.unwrap_or(MATCHES));
        let slot = self.slot(&params.slot)?;
        if slot.is_session() {
            return session::search(&slot, pattern, limit).await;
        }
        slot.request(|reply| Command::Search {
            pattern,
            limit,
            reply,
        })
        .await
    }

    async fn why(&self, one: OneSlot) -> Result<WhyAnswer, RpcError> {
        let slot = self.slot(&one.slot)?;
        let evidence = slot.request(|reply| Command::Why { reply }).await?;
        Ok(WhyAnswer {
            slot: one.slot,
            state: slot.status().state,
            evidence,
        })
    }

    async fn policy(&self, one: OneSlot) -> Result<PolicyAnswer, RpcError> {
        let status = self.slot(&one.slot)?.status();
        let in_force = self.daemon.policies();
        let standing = in_force
            .get(&status.slot)
            .ok_or_else(|| RpcError::new(Fault::Refused, "the slot is leaving"))?;
        Ok(PolicyAnswer {
            slot: status.slot,
            role: status.role,
            waits: standing.waits,
            policy: standing.policy.summary(),
        })
    }

    async fn write(&self, params: WriteParams) -> Result<Done, RpcError> {
        let slot = self.slot(&params.slot)?;
        let bytes = params.bytes;
        slot.request(|reply| Command::Write { bytes, reply })
            .await?;
        Ok(Done {
            slot: params.slot,
            state: slot.status().state,
            error: None,
        })
    }

    async fn reload(&self) -> Result<ReloadAnswer, RpcError> {
        self.daemon.order(|reply| Order::Reload { reply }).await
    }

    async fn down(&self, params: DownParams) -> Result<Nothing, RpcError> {
        self.daemon
            .order(|reply| Order::Down {
                keep: params.keep,
                reply,
            })
            .await
    }

    async fn hook(&self, params: HookParams) -> Result<HookAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let Some(event) = HookEvent::parse(&params.payload) else {
            return Err(RpcError::new(
                Fault::Usage,
                "this is not the JSON of a hook",
            ));
        };
        match slot.ask(|token| Input::Heard(token, event)).await? {
            Reply::Hook(output) => Ok(HookAnswer { output }),
            _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
        }
    }
}

/// Runs a method on its typed params.
async fn run<M: Method, F>(
    params: Value,
    call: impl FnOnce(M::Params) -> F,
) -> Result<Value, RpcError>
where
    F: Future<Output = Result<M::Answer, RpcError>>,
{
    // Params may be left out where a method takes none.
    let params = if params.is_null() {
        Value::Object(Default::default())
    } else {
        params
    };
    let params = serde_json::from_value(params)
        .map_err(|error| RpcError::new(Fault::Usage, format!("{}: {error}", M::NAME)))?;
    let answer = call(params).await?;
    serde_json::to_value(answer).map_err(|error| RpcError::new(Fault::Failed, error.to_string()))
}

fn not_sendable(error: &keys::NotSendable) -> RpcError {
    match error {
        keys::NotSendable::Slash(_) => RpcError::new(Fault::Refused, error.to_string())
            .next("add --slash if it is meant, or begin the message with a word"),
        _ => RpcError::new(Fault::Usage, error.to_string()),
    }
}

fn regex(pattern: &str) -> Result<Regex, RpcError> {
    regex::RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX)
        .build()
        .map_err(|error| RpcError::new(Fault::Usage, format!("not a regular expression: {error}")))
}
