use super::*;
use crate::control::written::{MOST_CHARACTERS, shortened};
use crate::core::text::excerpt::head_and_tail;

/// The default time between a command and the first look at its output.
const YIELD: Duration = Duration::from_millis(100);
/// The maximum of that time. For a longer wait there is `wait`.
const MAX_YIELD: Duration = Duration::from_secs(10 * 60);
const MAX_TOKENS: usize = 10_000;
/// A rule of thumb.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The exit code that the program `timeout` uses, and missiond for everything that has timed out.
const TIMED_OUT: i32 = 124;

request! {
    /// Starts a command and answers with its first output.
    UnifiedExec = "unified_exec", ExecParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    scope: Scope::Keys;
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
    #[serde(flatten)]
    pub run: RunParams,
    #[serde(flatten)]
    pub look: LookParams,
}

/// How long a tool waits for output, and how much of it the answer has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookParams {
    /// Milliseconds to wait for output, 100 by default; less if the command ends before.
    #[serde(default, alias = "yield_time_ms")]
    pub yield_ms: Option<u64>,
    /// The maximum of output in tokens of about four characters, 10,000 by default. Longer output is cut in the middle.
    #[serde(default, alias = "max_output_tokens")]
    pub max_tokens: Option<usize>,
    /// Keep control sequences; else plain text, or the screen of a full-screen program.
    #[serde(default)]
    pub raw: bool,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAnswer {
    /// True if the command was started, or was written to. `exit_code` says how it ended.
    pub success: bool,
    pub session_id: String,
    pub output: String,
    pub running: bool,
    /// 128 plus the signal's number if a signal ended it; 124 if its time limit was reached.
    pub exit_code: Option<i32>,
    /// missiond ended it because its time limit was reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Why missiond has ended it, as text: its time, its memory, its owner. `None` if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// True if some of the output was left out.
    pub truncated: bool,
}

async fn answer(call: Call<'_>, params: ExecParams) -> Result<ToolAnswer, RpcError> {
    let ExecParams { command, run, look } = params;
    let (command, line) = match command {
        CommandWords::Line(line) => (Vec::new(), Some(line)),
        CommandWords::Words(words) if words.is_empty() => {
            return Err(RpcError::new(Fault::Usage, "the command is empty"));
        }
        CommandWords::Words(words) => (words, None),
    };
    let owner = owner_for(call.peer, run.owner)?;
    let params = SpawnParams {
        command,
        line,
        run: RunParams { owner, ..run },
        ..SpawnParams::default()
    };
    let slot = call.new_session(params, call.gone).await?;
    look.at(call, &slot).await
}

impl LookParams {
    /// Waits as long as requested, or until the end, and answers with the output since the last look.
    pub(super) async fn at(
        self,
        call: Call<'_>,
        slot: &SlotHandle,
    ) -> Result<ToolAnswer, RpcError> {
        let time = self.yield_ms.map_or(YIELD, Duration::from_millis);
        let tokens = self.max_tokens.unwrap_or(MAX_TOKENS);
        let characters = tokens
            .saturating_mul(CHARACTERS_PER_TOKEN)
            .min(MOST_CHARACTERS);
        let mut status = slot.watch_status();
        let ended = status.wait_for(SlotStatus::is_over);
        let _ = tokio::time::timeout(time.min(MAX_YIELD), ended).await;
        let unread = part(call, slot, WantedOutput::Unread).await?;
        let (output, truncated) = match full_screen(slot).await? {
            Some(screen) if !self.raw => head_and_tail(screen, characters),
            _ => shortened(call, unread, self.raw, characters).await?,
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

/// The screen of a full-screen program; its bytes alone would be of no use.
async fn full_screen(slot: &SlotHandle) -> Result<Option<String>, RpcError> {
    let screen = request(slot, |reply| TerminalRequest::FullScreen { reply }).await?;
    Ok(screen.map(|lines| lines.join("\n").trim_end().to_owned()))
}

impl Dispatcher {
    /// Tells whether a slot's request is about a session of that slot.
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

/// The owner of all sessions that a program inside a slot starts.
fn owner_of(slot: &str) -> String {
    format!("slot:{slot}")
}

/// The owner of a new session. Sessions that a slot starts belong to that slot; the slot may only append a part to the
/// owner's name.
pub(super) fn owner_for(peer: &Peer, asked: Option<String>) -> Result<Option<String>, RpcError> {
    let PeerOrigin::Slot(slot) = &peer.origin else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_several_requests_take_is_part_of_each() {
        let params = json!({"cmd": "true", "workdir": "/", "yield_time_ms": 5, "env": {"A": "b"}, "raw": true});
        let exec: ExecParams = serde_json::from_value(params).unwrap();
        assert_eq!(exec.command, CommandWords::Line("true".to_owned()));
        assert_eq!(exec.run.cwd, Some("/".into()));
        assert_eq!(exec.run.env["A"], "b");
        assert_eq!((exec.look.yield_ms, exec.look.raw), (Some(5), true));
        let told = serde_json::to_value(&exec).unwrap();
        assert_eq!((&told["cwd"], &told["raw"]), (&json!("/"), &json!(true)));
        let spawn: SpawnParams = serde_json::from_value(json!({"login": true})).unwrap();
        assert!(spawn.run.login);
    }

    #[test]
    fn what_no_request_takes_is_refused_with_its_name() {
        let exec = json!({"command": "true", "yeild_ms": 5});
        let error = serde_json::from_value::<ExecParams>(exec).unwrap_err();
        assert!(error.to_string().contains("`yeild_ms`"), "{error}");
        let error = serde_json::from_value::<SpawnParams>(json!({"run": {}})).unwrap_err();
        assert!(error.to_string().contains("`run`"), "{error}");
        let stdin = json!({"session_id": "a", "size": 1});
        let error = serde_json::from_value::<StdinParams>(stdin).unwrap_err();
        assert!(error.to_string().contains("`size`"), "{error}");
    }
}
