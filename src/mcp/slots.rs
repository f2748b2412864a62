//! Tools for slots.

use super::McpServer;
use super::answer::{self, Told};
use crate::control::requests::{
    self, History, HistoryParams, Interrupt, Screen, SendParams, Start, Status, Stop, Wait,
    WaitParams,
};
use crate::core::claude::reading::State;
use crate::core::model::{Done, Fault, OneSlot, RpcError, ScreenParams, Select, SlotStatus, Turn};
use crate::core::text::excerpt;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The default timeout of a tool: most answers come sooner, and most clients wait that long.
pub(super) const PATIENCE_MS: u64 = 300_000;
/// The default number of conversation entries, and how much of each is shown.
const TURNS: usize = 10;
const MAX_TURN: usize = 2_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedSlots {
    /// Names of slots, or @role for every slot of a role.
    #[schemars(length(min = 1))]
    slots: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageParams {
    /// The name of the slot.
    slot: String,
    /// The message, as a person would type it.
    text: String,
    /// Wait for the answer (the default), or return once the slot has accepted the message.
    #[serde(default = "yes")]
    wait: bool,
    /// Milliseconds to wait for the answer, default 300,000; the turn continues after that.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// Your own id: a repeated call with the same id sends the message once and returns the same answer.
    #[serde(default)]
    id: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UntilParams {
    /// The name of the slot.
    slot: String,
    /// Return when the slot is in one of these states; default: idle, confirming, error or exited.
    #[serde(default)]
    states: Vec<State>,
    /// Milliseconds to wait, default 300,000.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenOf {
    /// The name of the slot or session.
    slot: String,
    /// The last N lines, scrollback included, instead of the visible screen.
    #[serde(default)]
    lines: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryOf {
    /// The name of the slot.
    slot: String,
    /// The last N entries, default 10.
    #[serde(default)]
    last: Option<usize>,
}

#[tool_router(router = slots_router, vis = "pub(super)")]
impl McpServer {
    /// Shows the slots: name, role, state, current activity, and the task it works on.
    #[tool(annotations(title = "Slots and their states", read_only_hint = true))]
    async fn status(
        &self,
        Parameters(select): Parameters<Select>,
        cancelled: CancellationToken,
    ) -> Told {
        self.tell::<Status>(select, cancelled, |statuses| {
            answer::json(&statuses.iter().map(in_short).collect::<Vec<_>>())
        })
        .await
    }

    /// Sends a message to a slot, as a person would, and returns the answer. A busy slot gets it when it is idle. For a
    /// slot at a dialog, or for any slot of a role, use `submit` instead.
    #[tool(annotations(
        title = "Send a message",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = false
    ))]
    async fn send(
        &self,
        Parameters(params): Parameters<MessageParams>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = SendParams {
            slot: params.slot,
            text: params.text,
            wait: params.wait,
            timeout_ms: Some(params.timeout_ms.unwrap_or(PATIENCE_MS)),
            shell: false,
            slash: false,
            id: params.id,
        };
        self.tell::<requests::Send>(request, cancelled, |sent| {
            match (&sent.response, &sent.dialog) {
                (_, Some(dialog)) => answer::text(&format!(
                    "{} needs a person before it goes on (`pending` shows this again): {}",
                    sent.slot, dialog.text
                )),
                (Some(response), None) => answer::text(response),
                (None, None) => answer::text(&format!("{} has taken the message", sent.slot)),
            }
        })
        .await
    }

    /// Waits until a slot is in one of the given states, and returns it.
    #[tool(annotations(title = "Wait for a slot", read_only_hint = true))]
    async fn wait(
        &self,
        Parameters(params): Parameters<UntilParams>,
        cancelled: CancellationToken,
    ) -> Told {
        let mut states = params.states;
        if states.is_empty() {
            states = vec![State::Idle, State::Confirming, State::Error, State::Exited];
        }
        let request = WaitParams {
            slot: params.slot,
            states,
            timeout_ms: Some(params.timeout_ms.unwrap_or(PATIENCE_MS)),
            ..WaitParams::default()
        };
        self.tell::<Wait>(request, cancelled, |waited| answer::json(&waited))
            .await
    }

    /// Shows the terminal of a slot as text.
    #[tool(annotations(title = "Screen of a slot", read_only_hint = true))]
    async fn screen(
        &self,
        Parameters(params): Parameters<ScreenOf>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = ScreenParams {
            slot: params.slot,
            lines: params.lines,
            ansi: false,
        };
        self.tell::<Screen>(request, cancelled, |screen| {
            let lines: Vec<&str> = screen.lines.iter().map(|line| line.trim_end()).collect();
            answer::text(lines.join("\n").trim_end())
        })
        .await
    }

    /// Shows the conversation of a slot: messages, answers, tool calls and their results, the newest last.
    #[tool(annotations(title = "Conversation of a slot", read_only_hint = true))]
    async fn history(
        &self,
        Parameters(params): Parameters<HistoryOf>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = HistoryParams {
            slot: params.slot,
            last: Some(params.last.unwrap_or(TURNS)),
        };
        self.tell::<History>(request, cancelled, |answer| {
            answer::text(
                &answer
                    .turns
                    .iter()
                    .map(spoken)
                    .collect::<Vec<_>>()
                    .join("\n\n"),
            )
        })
        .await
    }

    /// Stops the current turn of a slot, never the slot itself: its program stays and accepts the next message.
    #[tool(annotations(
        title = "Interrupt a slot",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true
    ))]
    async fn interrupt(
        &self,
        Parameters(one): Parameters<OneSlot>,
        cancelled: CancellationToken,
    ) -> Told {
        self.tell::<Interrupt>(one, cancelled, |done| answer::json(&done))
            .await
    }

    /// Starts slots that are stopped.
    #[tool(annotations(
        title = "Start slots",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = true
    ))]
    async fn start(
        &self,
        Parameters(params): Parameters<NamedSlots>,
        cancelled: CancellationToken,
    ) -> Told {
        match params.select() {
            Ok(select) => self.tell::<Start>(select, cancelled, each).await,
            Err(error) => answer::fault(&error),
        }
    }

    /// Stops slots: their programs are ended, and their current work is lost. The conversation is kept.
    #[tool(annotations(
        title = "Stop slots",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true
    ))]
    async fn stop(
        &self,
        Parameters(params): Parameters<NamedSlots>,
        cancelled: CancellationToken,
    ) -> Told {
        match params.select() {
            Ok(select) => self.tell::<Stop>(select, cancelled, each).await,
            Err(error) => answer::fault(&error),
        }
    }
}

impl NamedSlots {
    /// The named slots, at least one. On the socket an empty list means all; a model that names none has made a
    /// mistake.
    fn select(self) -> Result<Select, RpcError> {
        if self.slots.is_empty() {
            return Err(RpcError::new(Fault::Usage, "no slot is named").next("`status` shows them"));
        }
        Ok(Select { slots: self.slots })
    }
}

/// A failure of one slot is an error of the call, together with the other results.
fn each(done: Vec<Done>) -> Told {
    let failed = done.iter().any(|one| one.error.is_some());
    let mut told = answer::json(&done);
    told.is_error = Some(failed);
    told
}

/// The parts of a slot's status that a model needs.
fn in_short(status: &SlotStatus) -> Value {
    let full = json!({
        "slot": status.slot,
        "role": status.role,
        "state": status.state,
        "since": status.since,
        "doing": status.doing,
        "task_id": status.task_id,
        "queued": status.queued,
        "cwd": status.cwd,
        "last_error": status.last_error,
        "doubtful": status.doubtful,
    });
    match full {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        other => other,
    }
}

fn spoken(turn: &Turn) -> String {
    let input = turn.input.iter().map(Value::to_string);
    let about = turn
        .tool
        .iter()
        .cloned()
        .chain(input)
        .collect::<Vec<_>>()
        .join(" ");
    let said = if turn.tool.is_some() {
        about
    } else {
        turn.text.clone()
    };
    format!("[{}] {}", turn.role, excerpt::ends(&said, MAX_TURN))
}
