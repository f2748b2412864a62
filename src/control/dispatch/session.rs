//! Sessions, from outside: made, listed, typed to, read and closed.

use super::{Dispatcher, prompted, within};
use crate::core::model::Person;
use crate::core::model::*;
use crate::core::terminal::plain;
use crate::core::text::excerpt::head_and_tail;
use crate::core::text::secrets;
use crate::daemon::{Order, end_for, is_of_owner};
use crate::os::blocking;
use crate::os::network::{NOT_COUNTED, traffic_of};
use crate::slot::{Command, Part, Request, SlotHandle, Typed, Wanted};
use chrono::Utc;
use regex::Regex;
use rustix::process::Signal as SignalNumber;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long the first output of a new session is waited for: most programs speak within a few milliseconds, and for one
/// that is silent most of a `spawn` should not be this wait.
const FIRST_OUTPUT: Duration = Duration::from_millis(20);

/// The longest wait for more output; whoever wants to wait longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Characters of the longest text that goes into an answer: as JSON it fits into a line of the protocol, whatever
/// it is made of.
pub(super) const MOST_CHARACTERS: usize = 1 << 20;

impl Dispatcher {
    pub(super) async fn new_session(
        &self,
        params: SpawnParams,
        gone: &CancellationToken,
    ) -> Result<SlotHandle, RpcError> {
        let tied = params.with_connection;
        let params = Box::new(params);
        let order = |reply| Order::Spawn { params, reply };
        let slot = self.daemon.order(order).await?;
        if tied {
            tokio::spawn(end_with(slot.clone(), gone.clone()));
        }
        Ok(slot)
    }

    pub(in crate::control) async fn spawn(
        &self,
        params: SpawnParams,
        gone: &CancellationToken,
    ) -> Result<SpawnAnswer, RpcError> {
        let slot = self.new_session(params, gone).await?;
        let first = tokio::time::timeout(FIRST_OUTPUT, first_output(&slot));
        // Many programs say nothing at first.
        let _ = first.await;
        let part = part(&slot, Wanted::Range(0, u64::MAX)).await?;
        let status = slot.status();
        Ok(SpawnAnswer {
            id: status.slot,
            pid: status.pid,
            output: plain(&part.bytes),
        })
    }

    pub(in crate::control) async fn sessions(
        &self,
        params: SessionsParams,
    ) -> Result<Vec<SessionInfo>, RpcError> {
        let prefix = params.owner.map(owner_prefix).transpose()?;
        let mut infos = Vec::new();
        for slot in self.sessions_of(prefix.as_deref()) {
            // One that has gone meanwhile is none any more.
            infos.extend(self.info_of(&slot).await.ok());
        }
        infos.sort_by_key(|info| info.created_at);
        Ok(infos)
    }

    fn sessions_of(&self, prefix: Option<&str>) -> Vec<SlotHandle> {
        let slots = self.daemon.slots();
        let meant = slots.values().filter(|slot| {
            let status = slot.status();
            let owned = prefix.is_none_or(|prefix| is_of_owner(&status.owner, prefix));
            status.session.is_some() && owned
        });
        meant.cloned().collect()
    }

    pub(in crate::control) async fn info(&self, one: OneSlot) -> Result<SessionInfo, RpcError> {
        let slot = self.slot(&one.slot)?;
        self.info_of(&slot).await
    }

    async fn info_of(&self, slot: &SlotHandle) -> Result<SessionInfo, RpcError> {
        let output = part(slot, Wanted::Range(0, 0)).await?;
        let status = slot.status();
        let is_alive = !status.is_over();
        let Some(session) = status.session else {
            return Err(RpcError::new(Fault::Failed, "it is no session"));
        };
        let usage = match status.pid {
            Some(pid) => self.daemon.meter.of(vec![pid]).await.pop().flatten(),
            None => None,
        };
        let network = status.pid.and_then(traffic_of);
        let until = session.ended_at.unwrap_or_else(Utc::now);
        let uptime = (until - session.created_at).num_seconds();
        Ok(SessionInfo {
            id: status.slot,
            owner: status.owner,
            owner_pid: session.owner_pid,
            cols: session.cols,
            rows: session.rows,
            cwd: status.cwd,
            shell: session.command.first().cloned().unwrap_or_default(),
            command: session.command,
            created_at: session.created_at,
            ends_at: session.ends_at,
            pid: status.pid,
            is_alive,
            state: status.state,
            exit_code: status.exit_code,
            signal: session.signal,
            timed_out: session.timed_out,
            last_error: status.last_error,
            uptime: uptime.max(0).unsigned_abs(),
            at_prompt: session.at_prompt,
            output_bytes: output.total - output.start,
            dropped_bytes: output.dropped,
            memory: usage.map(|usage| usage.memory),
            cpu: usage.map(|usage| usage.cpu),
            read_bytes: usage.map(|usage| usage.read),
            written_bytes: usage.map(|usage| usage.written),
            network,
            network_unknown: (is_alive && network.is_none()).then(|| NOT_COUNTED.to_owned()),
            log: status.log,
        })
    }

    pub(in crate::control) async fn type_text(
        &self,
        params: TypeParams,
        person: Person,
    ) -> Result<TypeAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let until = self.awaited_prompt(&slot, &params).await?;
        if let Some(prompt) = until {
            let typed = prompted::type_until(&slot, person, &params.text, &prompt);
            let typed = within(params.timeout_ms, typed).await?;
            let (output, truncated) = written(&slot, typed.output).await?;
            return Ok(TypeAnswer {
                output: Some(prompt.without(&output, &params.text)),
                slot: params.slot,
                exit_code: typed.exit_code,
                truncated,
            });
        }
        let TypeParams { text, wait, .. } = params;
        if !wait && params.quiet_ms.is_none() {
            type_line(&slot, person, text).await?;
            return Ok(TypeAnswer {
                slot: params.slot,
                output: None,
                exit_code: None,
                truncated: false,
            });
        }
        let typed = match params.quiet_ms {
            None => {
                let typed = request(&slot, |reply| Request::TypeAndWait {
                    text,
                    person,
                    reply,
                });
                within(params.timeout_ms, typed).await?
            }
            Some(ms) => {
                within(params.timeout_ms, type_until_quiet(&slot, person, text, ms)).await?
            }
        };
        let (output, truncated) = written(&slot, typed.output).await?;
        Ok(TypeAnswer {
            slot: params.slot,
            output: Some(output),
            exit_code: typed.exit_code,
            truncated,
        })
    }

    pub(in crate::control) async fn resize(&self, params: ResizeParams) -> Result<Done, RpcError> {
        let slot = self.slot(&params.slot)?;
        let ResizeParams { cols, rows, .. } = params;
        let sizes = 2..=1000;
        if !sizes.contains(&cols) || !sizes.contains(&rows) {
            return Err(RpcError::new(
                Fault::Usage,
                "a terminal has from 2 to 1000 columns and rows",
            ));
        }
        request(&slot, |reply| Request::Resize { cols, rows, reply }).await?;
        Ok(done(&slot))
    }

    pub(in crate::control) async fn signal(&self, params: SignalParams) -> Result<Done, RpcError> {
        let slot = self.slot(&params.slot)?;
        let signal = signal_number(&params.signal)?;
        request(&slot, |reply| Request::Signal { signal, reply }).await?;
        Ok(done(&slot))
    }

    pub(in crate::control) async fn clear(&self, one: OneSlot) -> Result<Done, RpcError> {
        let slot = self.slot(&one.slot)?;
        request(&slot, |reply| Request::Clear { reply }).await?;
        Ok(done(&slot))
    }

    pub(in crate::control) async fn close(
        &self,
        params: CloseParams,
    ) -> Result<CloseAnswer, RpcError> {
        let meant = match (params.slot, params.owner) {
            (Some(id), None) => vec![self.slot(&id)?],
            (None, Some(owner)) => self.sessions_of(Some(&owner_prefix(owner)?)),
            _ => {
                return Err(RpcError::new(Fault::Usage, "either an id or an owner")
                    .next("missiond close ID, or missiond close --owner OWNER"));
            }
        };
        let ids: Vec<String> = meant.iter().map(|slot| slot.status().slot).collect();
        self.end_sessions(ids.clone(), params.force).await?;
        Ok(CloseAnswer { closed: ids })
    }

    pub(super) async fn end_sessions(&self, ids: Vec<String>, force: bool) -> Result<(), RpcError> {
        let (done, over): (Vec<_>, Vec<_>) = ids.iter().map(|_| oneshot::channel()).unzip();
        let why = "by request".to_owned();
        let order = Order::Close {
            ids,
            why,
            force,
            done,
        };
        self.daemon.give(order).await?;
        futures_util::future::join_all(over).await;
        Ok(())
    }

    pub(in crate::control) async fn output(
        &self,
        params: OutputParams,
    ) -> Result<OutputAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let wanted = match (params.from, params.lines) {
            (_, Some(lines)) => Wanted::LastLines(lines),
            (from, None) => Wanted::Range(from.unwrap_or(0), u64::MAX),
        };
        let mut pulse = slot.watch_output();
        let mut status = slot.watch_status();
        let wait = params.wait_ms.map_or(Duration::ZERO, Duration::from_millis);
        let deadline = tokio::time::Instant::now() + wait.min(MAX_WAIT);
        let part = loop {
            pulse.mark_unchanged();
            let is_over = status.borrow_and_update().is_over();
            let part = part(&slot, wanted).await?;
            if !part.bytes.is_empty() || is_over {
                break part;
            }
            let more = async {
                tokio::select! { _ = pulse.changed() => {}, _ = status.changed() => {} }
            };
            if tokio::time::timeout_at(deadline, more).await.is_err() {
                break part;
            }
        };
        Ok(output_answer(slot.status(), part, &params))
    }
}

fn output_answer(status: SlotStatus, part: Part, params: &OutputParams) -> OutputAnswer {
    // Whoever names no place wants what there is: what went before is no loss to them.
    let dropped_bytes = part.dropped;
    let mut answer = OutputAnswer {
        running: !status.is_over(),
        slot: status.slot,
        text: String::new(),
        hex: None,
        start: part.start,
        end: part.end(),
        total: part.total,
        dropped_bytes,
        truncated: dropped_bytes > 0,
        exit_code: status.exit_code,
        signal: status.session.and_then(|session| session.signal),
        why: status.last_error,
    };
    match params.raw {
        true => answer.set_bytes(&part.bytes),
        false => answer.text = plain(&part.bytes),
    }
    answer
}

pub(super) async fn request<T>(
    slot: &SlotHandle,
    make: impl FnOnce(oneshot::Sender<Result<T, RpcError>>) -> Request,
) -> Result<T, RpcError> {
    slot.request(|reply| Command::Request(make(reply))).await
}

pub(super) async fn part(slot: &SlotHandle, wanted: Wanted) -> Result<Part, RpcError> {
    request(slot, |reply| Request::Output { wanted, reply }).await
}

pub(super) fn done(slot: &SlotHandle) -> Done {
    let status = slot.status();
    Done {
        slot: status.slot,
        state: status.state,
        already: false,
        dropped: Vec::new(),
        error: None,
    }
}

/// Ends a session when the connection has ended on which it was asked for.
async fn end_with(slot: SlotHandle, gone: CancellationToken) {
    let mut status = slot.watch_status();
    let over = async { status.wait_for(SlotStatus::is_over).await.is_ok() };
    let is_over = tokio::select! {
        () = gone.cancelled() => false,
        is_over = over => is_over,
    };
    if !is_over {
        let why = "its client's connection has ended".to_owned();
        end_for(&slot, why).await;
    }
}

/// Until the first output, or the end.
async fn first_output(slot: &SlotHandle) {
    let mut pulse = slot.watch_output();
    let mut status = slot.watch_status();
    tokio::select! {
        _ = pulse.wait_for(|count| *count > 0) => {}
        _ = status.wait_for(SlotStatus::is_over) => {}
    }
}

/// All that was written in this range, as plain text, and whether some of it is missing.
async fn written(slot: &SlotHandle, range: Option<(u64, u64)>) -> Result<(String, bool), RpcError> {
    let Some((from, to)) = range else {
        return Ok((String::new(), false));
    };
    let part = part(slot, Wanted::Whole(from, to)).await?;
    shortened(part, false, MOST_CHARACTERS).await
}

/// So many bytes are read in less time than a thread takes to begin, and also where there is none to be had.
const SHORT: usize = 64 << 10;

/// The head and the tail of a part as text, of at most so many characters, and whether something is missing.
pub(super) async fn shortened(
    part: Part,
    raw: bool,
    most: usize,
) -> Result<(String, bool), RpcError> {
    let missing = part.dropped > 0;
    let is_short = part.bytes.len() <= SHORT;
    let shorten = move || {
        let text = match raw {
            true => String::from_utf8_lossy(&part.bytes).into_owned(),
            false => plain(&part.bytes),
        };
        head_and_tail(text, most)
    };
    let failed = |error| RpcError::new(Fault::Failed, format!("the output can't be read: {error}"));
    let (text, is_cut) = match is_short {
        true => shorten(),
        false => blocking::run(shorten).await.map_err(failed)?,
    };
    Ok((text, missing || is_cut))
}

/// The lines of all output that is kept. It is gone through off the slot's own task, which has a program to serve.
pub(super) async fn search(
    slot: &SlotHandle,
    pattern: Regex,
    limit: usize,
) -> Result<Vec<Match>, RpcError> {
    let bytes = part(slot, Wanted::Whole(0, u64::MAX)).await?.bytes;
    let searched = blocking::run(move || {
        // Masked first: a pattern must not find out what it is not shown.
        let rows: Vec<String> = plain(&bytes).lines().map(str::to_owned).collect();
        let rows = secrets::mask_rows(&rows);
        let matching = rows.into_iter().enumerate();
        let matching = matching.filter(|(_, line)| pattern.is_match(line));
        let found = matching.take(limit).map(|(index, text)| Match {
            place: "output".to_owned(),
            line: index + 1,
            text,
        });
        found.collect()
    });
    let failed = |error| RpcError::new(Fault::Failed, format!("the search failed: {error}"));
    searched.await.map_err(failed)
}

/// Types a line for a person, and waits for nothing.
pub(super) async fn type_line(
    slot: &SlotHandle,
    person: Person,
    text: String,
) -> Result<(), RpcError> {
    request(slot, |reply| Request::Type {
        text,
        person,
        reply,
    })
    .await
}

/// For a program that does not say when it is done.
async fn type_until_quiet(
    slot: &SlotHandle,
    person: Person,
    text: String,
    ms: u64,
) -> Result<Typed, RpcError> {
    let from = part(slot, Wanted::Range(u64::MAX, u64::MAX)).await?.total;
    let mut pulse = slot.watch_output();
    let mut status = slot.watch_status();
    type_line(slot, person, text).await?;
    pulse.mark_unchanged();
    let quiet = async {
        while let Ok(Ok(())) =
            tokio::time::timeout(Duration::from_millis(ms), pulse.changed()).await
        {}
    };
    tokio::select! {
        () = quiet => {}
        _ = status.wait_for(SlotStatus::is_over) => {}
    }
    let to = part(slot, Wanted::Range(u64::MAX, u64::MAX)).await?.total;
    Ok(Typed {
        exit_code: slot.status().exit_code,
        output: Some((from, to)),
    })
}

fn owner_prefix(owner: String) -> Result<String, RpcError> {
    if owner.trim_matches(':').is_empty() {
        return Err(RpcError::new(Fault::Usage, "the owner is empty"));
    }
    Ok(owner)
}

/// The signals that people name.
const SIGNALS: &[(&str, SignalNumber)] = &[
    ("HUP", SignalNumber::HUP),
    ("INT", SignalNumber::INT),
    ("QUIT", SignalNumber::QUIT),
    ("ABRT", SignalNumber::ABORT),
    ("KILL", SignalNumber::KILL),
    ("USR1", SignalNumber::USR1),
    ("USR2", SignalNumber::USR2),
    ("PIPE", SignalNumber::PIPE),
    ("ALRM", SignalNumber::ALARM),
    ("TERM", SignalNumber::TERM),
    ("CONT", SignalNumber::CONT),
    ("STOP", SignalNumber::STOP),
    ("TSTP", SignalNumber::TSTP),
    ("TTIN", SignalNumber::TTIN),
    ("TTOU", SignalNumber::TTOU),
    ("WINCH", SignalNumber::WINCH),
];

fn signal_number(word: &str) -> Result<i32, RpcError> {
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = SIGNALS.iter().find(|(known, _)| *known == name);
    let numbered = || word.parse().ok().and_then(SignalNumber::from_named_raw);
    let signal = named.map(|(_, signal)| *signal).or_else(numbered);
    signal.map(SignalNumber::as_raw).ok_or_else(|| {
        let names: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
        RpcError::new(Fault::Usage, format!("there is no signal `{word}`"))
            .next(format!("a number, or one of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for word in ["INT", "int", "SIGINT", "2"] {
            assert_eq!(signal_number(word).unwrap(), 2, "{word}");
        }
        for word in ["", "0", "-1", "999", "NOPE", "SIG"] {
            assert_eq!(
                signal_number(word).unwrap_err().fault,
                Fault::Usage,
                "{word}"
            );
        }
    }
}
