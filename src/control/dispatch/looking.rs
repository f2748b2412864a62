//! Requests that only look.

use super::{Dispatcher, session};
use crate::core::claude::reading::State;
use crate::core::model::*;
use crate::daemon;
use crate::os::blocking;
use crate::os::process_stat::Stat;
use crate::slot::Command;
use regex::Regex;

/// A regex that is larger than this when compiled is an attack or a mistake.
const MAX_REGEX: usize = 1 << 20;
/// Matches that `search` gives unless it is asked for others.
const MATCHES: usize = 200;

const NO_POLICY: &str = "the slot was removed from the config: no policy holds for it, and a person is asked about everything";

impl Dispatcher {
    pub(in crate::control) async fn status(
        &self,
        select: Select,
    ) -> Result<Vec<SlotStatus>, RpcError> {
        let names = self.names(&select)?;
        let mut statuses: Vec<SlotStatus> = names
            .iter()
            .map(|name| self.slot(name).map(|slot| slot.status()))
            .collect::<Result<_, _>>()?;
        self.measure(&mut statuses).await;
        let health = self.daemon.health();
        for status in &mut statuses {
            status.health.clone_from(&health);
        }
        Ok(statuses)
    }

    /// Fills in what the processes use, which is measured only for those who ask.
    async fn measure(&self, statuses: &mut [SlotStatus]) {
        let running: Vec<u32> = statuses.iter().filter_map(|status| status.pid).collect();
        if running.is_empty() {
            return;
        }
        let used = self.daemon.meter.of(running).await;
        let of_plain = |status: &SlotStatus| status.pid.filter(|_| status.kind == "shell");
        let pids = |status: &SlotStatus| (of_plain(status), status.pid, status.shim_pid);
        let pids: Vec<_> = statuses.iter().map(pids).collect();
        let in_foreground = |pid: Option<u32>| Stat::of(pid?)?.in_foreground();
        let looked = pids.into_iter().map(move |(plain, pid, shim_pid)| {
            let stopped = daemon::stopped(pid, shim_pid);
            (in_foreground(plain), stopped)
        });
        let found = blocking::run(|| looked.collect::<Vec<_>>()).await;
        for (status, found) in statuses.iter_mut().zip(found.unwrap_or_default()) {
            (status.foreground, status.stopped) = found;
        }
        let statuses = statuses.iter_mut().filter(|status| status.pid.is_some());
        for (status, usage) in statuses.zip(used) {
            status.memory = usage.map(|usage| usage.memory);
            status.cpu = usage.map(|usage| usage.cpu);
        }
    }

    pub(in crate::control) fn stats(&self) -> StatsAnswer {
        let statuses = self.statuses(&None);
        let (sessions, slots): (Vec<_>, Vec<_>) =
            statuses.iter().partition(|status| status.session.is_some());
        let ended = |status: &SlotStatus| matches!(status.state, State::Exited | State::Error);
        let count = |statuses: &[&SlotStatus], fits: fn(&SlotStatus) -> bool| {
            statuses.iter().filter(|status| fits(status)).count()
        };
        let (total, stopped) = (slots.len(), count(&slots, ended));
        let idle = count(&slots, |status| status.state == State::Idle);
        let sessions_ended = count(&sessions, ended);
        StatsAnswer {
            total,
            running: total - stopped,
            idle,
            busy: total - stopped - idle,
            stopped,
            sessions: sessions.len() - sessions_ended,
            sessions_ended,
            health: self.daemon.health(),
        }
    }

    pub(in crate::control) async fn pending(
        &self,
        select: Select,
    ) -> Result<Vec<PendingDialog>, RpcError> {
        let statuses = self.status(select).await?;
        let waiting = statuses.into_iter().filter_map(|status| {
            let SlotStatus {
                slot,
                role,
                since,
                dialog,
                waits_because,
                always,
                doubtful,
                waiting_calls,
                ..
            } = status;
            dialog.map(|dialog| PendingDialog {
                slot,
                role,
                since,
                dialog,
                why: waits_because,
                always,
                doubtful,
                waiting_calls,
            })
        });
        Ok(waiting.collect())
    }

    pub(in crate::control) async fn screen(
        &self,
        params: ScreenParams,
    ) -> Result<ScreenAnswer, RpcError> {
        self.slot(&params.slot)?
            .request(|reply| Command::Screen { params, reply })
            .await
    }

    pub(in crate::control) async fn history(
        &self,
        params: HistoryParams,
    ) -> Result<HistoryAnswer, RpcError> {
        let last = params.last;
        self.slot(&params.slot)?
            .request(|reply| Command::History { last, reply })
            .await
    }

    pub(in crate::control) async fn search(
        &self,
        params: SearchParams,
    ) -> Result<Vec<Match>, RpcError> {
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

    pub(in crate::control) async fn why(&self, one: OneSlot) -> Result<WhyAnswer, RpcError> {
        let slot = self.slot(&one.slot)?;
        let evidence = slot.request(|reply| Command::Why { reply }).await?;
        Ok(WhyAnswer {
            slot: one.slot,
            state: slot.status().state,
            evidence,
        })
    }

    pub(in crate::control) async fn policy(&self, one: OneSlot) -> Result<PolicyAnswer, RpcError> {
        let status = self.slot(&one.slot)?.status();
        let in_force = self.daemon.policies();
        let standing = in_force
            .get(&status.slot)
            .ok_or_else(|| RpcError::new(Fault::Refused, NO_POLICY))?;
        Ok(PolicyAnswer {
            slot: status.slot,
            role: status.role,
            waits: standing.waits,
            policy: standing.policy.summary(),
        })
    }
}

pub(super) fn regex(pattern: &str) -> Result<Regex, RpcError> {
    regex::RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX)
        .build()
        .map_err(|error| RpcError::new(Fault::Usage, format!("not a regular expression: {error}")))
}
