//! The four tools by which agents use sessions: start a command, write to it, close it, list them.

use super::Dispatcher;
use super::session::{MOST_CHARACTERS, part, request, shortened};
use crate::core::model::*;
use crate::core::text::excerpt::head_and_tail;
use crate::daemon::is_of_owner;
use crate::os::peer::{Origin, Peer};
use crate::slot::{SlotHandle, Wanted, Writing};
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between a command and the first look at it.
const YIELD: Duration = Duration::from_millis(100);
/// Longer is for `wait`.
const MAX_YIELD: Duration = Duration::from_secs(10 * 60);
const MAX_TOKENS: usize = 10_000;
/// As a rule of thumb.
const CHARACTERS_PER_TOKEN: usize = 4;

/// What `timeout` of the shell ends with, and everything of missiond that has timed out.
const TIMED_OUT: i32 = 124;

/// How a tool looks at what was written.
struct Look {
    time: Duration,
    characters: usize,
    raw: bool,
}

impl Look {
    fn new(yield_ms: Option<u64>, max_tokens: Option<usize>, raw: bool) -> Look {
        let tokens = max_tokens.unwrap_or(MAX_TOKENS);
        Look {
            time: yield_ms.map_or(YIELD, Duration::from_millis).min(MAX_YIELD),
            characters: tokens
                .saturating_mul(CHARACTERS_PER_TOKEN)
                .min(MOST_CHARACTERS),
            raw,
        }
    }
}

impl Dispatcher {
    /// Whether what a slot asks for is about sessions of its own.
    pub(super) fn is_own_session(&self, own: &str, params: &Value) -> bool {
        match params.get("session_id").and_then(Value::as_str) {
            None => true,
            Some(id) => {
                let session = self.handle(id).filter(SlotHandle::is_session);
                session.is_some_and(|slot| is_of_owner(&slot.status().owner, &owner_of(own)))
            }
        }
    }

    pub(in crate::control) async fn exec(
        &self,
        mut params: ExecParams,
        peer: &Peer,
        gone: &CancellationToken,
    ) -> Result<ToolAnswer, RpcError> {
        params.owner = owner_for(peer, params.owner)?;
        let look = Look::new(params.yield_ms, params.max_tokens, params.raw);
        let slot = self.new_session(spawn_params(params)?, gone).await?;
        self.look(&slot, &look).await
    }

    pub(in crate::control) async fn stdin(
        &self,
        params: StdinParams,
        peer: &Peer,
    ) -> Result<ToolAnswer, RpcError> {
        let slot = self.slot(&params.session_id)?;
        let bytes = params.input.into_bytes();
        if !bytes.is_empty() {
            super::acting::write(&slot, Writing::raw(bytes, peer)).await?;
        }
        let look = Look::new(params.yield_ms, params.max_tokens, params.raw);
        self.look(&slot, &look).await
    }

    pub(in crate::control) async fn close_pty(
        &self,
        params: ClosePtyParams,
    ) -> Result<ClosePtyAnswer, RpcError> {
        let session_id = self.slot(&params.session_id)?.status().slot;
        self.end_sessions(vec![session_id.clone()], params.force)
            .await?;
        Ok(ClosePtyAnswer {
            success: true,
            session_id,
        })
    }

    pub(in crate::control) async fn list_pty(
        &self,
        params: SessionsParams,
        peer: &Peer,
    ) -> Result<ListPtyAnswer, RpcError> {
        let owner = owner_for(peer, params.owner)?;
        let params = SessionsParams { owner };
        Ok(ListPtyAnswer {
            success: true,
            sessions: self.sessions(params).await?,
        })
    }

    /// Waits as long as was asked, or until the end, and gives what has come since the last look.
    async fn look(&self, slot: &SlotHandle, look: &Look) -> Result<ToolAnswer, RpcError> {
        let mut status = slot.watch_status();
        let ended = status.wait_for(SlotStatus::is_over);
        let _ = tokio::time::timeout(look.time, ended).await;
        let unread = part(slot, Wanted::Unread).await?;
        let (output, truncated) = match self.full_screen(slot).await? {
            Some(screen) if !look.raw => head_and_tail(screen, look.characters),
            _ => shortened(unread, look.raw, look.characters).await?,
        };
        let status = slot.status();
        let session = status.session.as_ref();
        let by_signal = session.and_then(|session| session.signal).map(|n| 128 + n);
        let timed_out = session.is_some_and(|session| session.timed_out);
        let by_time = timed_out.then_some(TIMED_OUT);
        Ok(ToolAnswer {
            success: true,
            output,
            running: !status.is_over(),
            exit_code: by_time.or(status.exit_code).or(by_signal),
            timed_out,
            ended_because: session.and_then(|session| session.ended_because.clone()),
            session_id: status.slot,
            truncated,
        })
    }

    /// What a program that fills the screen shows: its bytes alone would be of no use.
    async fn full_screen(&self, slot: &SlotHandle) -> Result<Option<String>, RpcError> {
        let screen = request(slot, |reply| crate::slot::Request::FullScreen { reply }).await?;
        Ok(screen.map(|lines| lines.join("\n").trim_end().to_owned()))
    }
}

/// The owner of all that a program inside a slot starts.
fn owner_of(slot: &str) -> String {
    format!("slot:{slot}")
}

/// A slot's sessions belong to the slot, whatever it says; its parts may be named behind that.
fn owner_for(peer: &Peer, asked: Option<String>) -> Result<Option<String>, RpcError> {
    let Origin::Slot(slot) = &peer.origin else {
        return Ok(asked);
    };
    let own = owner_of(slot);
    match asked {
        Some(other) if !is_of_owner(&other, &own) => Err(RpcError::new(
            Fault::Refused,
            format!("the sessions of slot {slot} belong to {own}"),
        )),
        Some(part) => Ok(Some(part)),
        None => Ok(Some(own)),
    }
}

fn spawn_params(params: ExecParams) -> Result<SpawnParams, RpcError> {
    let (command, line) = match params.command {
        CommandWords::Line(line) => (Vec::new(), Some(line)),
        CommandWords::Words(words) if words.is_empty() => {
            return Err(RpcError::new(Fault::Usage, "the command is empty"));
        }
        CommandWords::Words(words) => (words, None),
    };
    Ok(SpawnParams {
        command,
        line,
        shell: params.shell,
        login: params.login,
        cwd: params.cwd,
        env: params.env,
        env_clear: params.env_clear,
        max_memory: params.max_memory,
        limits: params.limits,
        with_connection: params.with_connection,
        owner: params.owner,
        owner_pid: params.owner_pid,
        timeout_ms: params.timeout_ms,
        ..SpawnParams::default()
    })
}
