use super::*;
use crate::control::written::{MOST_CHARACTERS, part, request, shortened};
use crate::core::settings::limits::Limits;
use crate::core::text::excerpt::head_and_tail;
use crate::daemon::is_of_owner;
use crate::os::peer::Origin;
use crate::slot::{SlotHandle, Wanted};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Between a command and the first look at it.
const YIELD: Duration = Duration::from_millis(100);
/// Longer is for `wait`.
const MAX_YIELD: Duration = Duration::from_secs(10 * 60);
const MAX_TOKENS: usize = 10_000;
/// As a rule of thumb.
const CHARACTERS_PER_TOKEN: usize = 4;

/// What `timeout` of the shell ends with, and everything of missiond that has timed out.
const TIMED_OUT: i32 = 124;

request! {
    /// Starts a command and answers with what it writes in the first moments.
    UnifiedExec = "unified_exec", ExecParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Either;
}

/// Either one line for a shell, or the program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a command is one line of text, or a list of words: the program and its arguments"
)]
pub enum CommandWords {
    Line(String),
    Words(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecParams {
    /// A line for a shell, or the program and its arguments.
    #[serde(alias = "cmd")]
    pub command: CommandWords,
    /// The directory in which it runs, an absolute path; the home directory where it is left out.
    #[serde(default, alias = "workdir")]
    pub cwd: Option<PathBuf>,
    /// What runs a command that is one line; `$SHELL` unless told.
    #[serde(default)]
    pub shell: Option<String>,
    /// The shell reads its profile first.
    #[serde(default)]
    pub login: bool,
    /// On top of the daemon's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `env` is the whole environment, and nothing of the daemon's is added.
    #[serde(default)]
    pub env_clear: bool,
    /// The command is ended when its processes hold more bytes of memory than this.
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// What the kernel holds each of its processes to; never more than `[sessions] limits` in slots.toml.
    #[serde(default)]
    pub limits: Limits,
    /// The session ends with the connection on which it was asked for.
    #[serde(default)]
    pub with_connection: bool,
    /// Whose session it is, such as `orchestrator:planner`; `user` where it is left out.
    #[serde(default)]
    pub owner: Option<String>,
    /// The session ends when this process does.
    #[serde(default)]
    pub owner_pid: Option<u32>,
    /// The command is ended after so many milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Milliseconds to wait for output, 100 unless told; less where the command ends before.
    #[serde(default, alias = "yield_time_ms")]
    pub yield_ms: Option<u64>,
    /// 10,000 unless told, of about four characters each; what is more is left out in the middle.
    #[serde(default, alias = "max_output_tokens")]
    pub max_tokens: Option<usize>,
    /// With its control sequences; else as plain text, or the screen of a program that fills it.
    #[serde(default)]
    pub raw: bool,
}

impl ExecParams {
    /// A command with everything else as usual.
    pub fn new(command: CommandWords) -> ExecParams {
        ExecParams {
            command,
            cwd: None,
            shell: None,
            login: false,
            env: BTreeMap::new(),
            env_clear: false,
            max_memory: None,
            limits: Limits::default(),
            with_connection: false,
            owner: None,
            owner_pid: None,
            timeout_ms: None,
            yield_ms: None,
            max_tokens: None,
            raw: false,
        }
    }
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAnswer {
    /// The command was started, or was written to; how it ended is in `exit_code`.
    pub success: bool,
    pub session_id: String,
    pub output: String,
    pub running: bool,
    /// 128 and the signal's number for one that was ended by a signal, 124 for one whose time was over.
    pub exit_code: Option<i32>,
    /// It was ended because its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Why missiond has ended it, in words: its time, its memory, its owner. None if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// Some of the output was left out.
    pub truncated: bool,
}

async fn answer(call: Call<'_>, mut params: ExecParams) -> Result<ToolAnswer, RpcError> {
    params.owner = owner_for(call.peer, params.owner)?;
    let look = Look::new(params.yield_ms, params.max_tokens, params.raw);
    let slot = call.new_session(spawn_params(params)?, call.gone).await?;
    look.at(&slot).await
}

/// How a tool looks at what was written.
pub(super) struct Look {
    time: Duration,
    characters: usize,
    raw: bool,
}

impl Look {
    pub(super) fn new(yield_ms: Option<u64>, max_tokens: Option<usize>, raw: bool) -> Look {
        let tokens = max_tokens.unwrap_or(MAX_TOKENS);
        Look {
            time: yield_ms.map_or(YIELD, Duration::from_millis).min(MAX_YIELD),
            characters: tokens
                .saturating_mul(CHARACTERS_PER_TOKEN)
                .min(MOST_CHARACTERS),
            raw,
        }
    }

    /// Waits as long as was asked, or until the end, and gives what has come since the last look.
    pub(super) async fn at(&self, slot: &SlotHandle) -> Result<ToolAnswer, RpcError> {
        let mut status = slot.watch_status();
        let ended = status.wait_for(SlotStatus::is_over);
        let _ = tokio::time::timeout(self.time, ended).await;
        let unread = part(slot, Wanted::Unread).await?;
        let (output, truncated) = match full_screen(slot).await? {
            Some(screen) if !self.raw => head_and_tail(screen, self.characters),
            _ => shortened(unread, self.raw, self.characters).await?,
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
}

/// What a program that fills the screen shows: its bytes alone would be of no use.
async fn full_screen(slot: &SlotHandle) -> Result<Option<String>, RpcError> {
    let screen = request(slot, |reply| crate::slot::Request::FullScreen { reply }).await?;
    Ok(screen.map(|lines| lines.join("\n").trim_end().to_owned()))
}

impl Dispatcher {
    /// Whether what a slot asks for is about sessions of its own.
    pub(in crate::control) fn is_own_session(&self, own: &str, params: &Value) -> bool {
        match params.get("session_id").and_then(Value::as_str) {
            None => true,
            Some(id) => {
                let session = self.handle(id).filter(SlotHandle::is_session);
                session.is_some_and(|slot| is_of_owner(&slot.status().owner, &owner_of(own)))
            }
        }
    }
}

/// The owner of all that a program inside a slot starts.
fn owner_of(slot: &str) -> String {
    format!("slot:{slot}")
}

/// A slot's sessions belong to the slot, whatever it says; its parts may be named behind that.
pub(super) fn owner_for(peer: &Peer, asked: Option<String>) -> Result<Option<String>, RpcError> {
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
