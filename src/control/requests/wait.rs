use super::search::regex;
use super::*;
use regex::Regex;
use std::future::Future;

request! {
    /// Answers when a slot or session meets a condition: the first condition that holds ends the wait.
    Wait = "wait", WaitParams => WaitAnswer;
    access: Granted("wait", Slots);
    scope: Scope::View;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// Wait for any of these states. `idle` counts only when every message has its answer: between two turns there is
    /// more to come.
    #[serde(default)]
    pub states: Vec<State>,
    /// Wait until the program ends.
    #[serde(default)]
    pub exit: bool,
    /// Wait until there was no output for this many milliseconds.
    #[serde(default)]
    pub quiet_ms: Option<u64>,
    /// Wait for a line that matches this regular expression. The line may be on the screen of the running program,
    /// among its last lines, or printed from now on. Output of an earlier program does not count.
    #[serde(default)]
    pub output: Option<String>,
    /// Wait until the shell is at its prompt.
    #[serde(default)]
    pub prompt: bool,
    /// The wait fails after this many milliseconds; if absent, there is no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitAnswer {
    pub slot: String,
    pub state: State,
    /// The line that matched.
    pub matched: Option<String>,
    pub exit_code: Option<i32>,
}

async fn answer(call: Call<'_>, params: WaitParams) -> Result<WaitAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let timeout = params.timeout_ms;
    let matched = within(timeout, wait_for(&slot, params))
        .await
        .map_err(|error| late(error, &slot))?;
    let status = slot.status();
    Ok(WaitAnswer {
        slot: status.slot,
        state: status.state,
        matched,
        exit_code: status.exit_code,
    })
}

/// Waits for the first condition, and answers with the matched line if that condition was output.
async fn wait_for(slot: &SlotHandle, params: WaitParams) -> Result<Option<String>, RpcError> {
    let pattern = params.output.as_deref().map(regex).transpose()?;
    let events = !params.states.is_empty() || params.exit || params.prompt;
    if !events && params.quiet_ms.is_none() && pattern.is_none() {
        return Err(RpcError::new(Fault::Usage, "nothing to wait for")
            .next("--for STATE, --exit, --prompt, --quiet or --output"));
    }
    tokio::select! {
        outcome = state_reached(slot, &params) => outcome.map(|()| None),
        outcome = prompt(slot, params.prompt) => outcome.map(|()| None),
        outcome = silence(slot, params.quiet_ms) => outcome.map(|()| None),
        matched = output(slot, pattern) => match matched {
            // The output has ended. If the end is awaited too, that condition holds now.
            Err(_) if params.exit && slot.is_session() => state_reached(slot, &params).await.map(|()| None),
            matched => matched.map(Some),
        },
    }
}

async fn state_reached(slot: &SlotHandle, params: &WaitParams) -> Result<(), RpcError> {
    let mut status = slot.watch_status();
    let is_there = |status: &SlotStatus| {
        let between_turns = status.state == State::Idle && status.unanswered > 0;
        params.states.contains(&status.state) && !between_turns || (params.exit && status.is_over())
    };
    if params.states.is_empty() && !params.exit {
        return std::future::pending().await;
    }
    let gone = |_| slot.gone();
    status.wait_for(is_there).await.map(|_| ()).map_err(gone)
}

/// Waits until a shell with prompt marks reports that it is at its prompt.
async fn prompt(slot: &SlotHandle, wanted: bool) -> Result<(), RpcError> {
    if !wanted {
        return std::future::pending().await;
    }
    let at_prompt = |status: &SlotStatus| status.session.as_ref().and_then(|s| s.at_prompt);
    let mut status = slot.watch_status();
    if at_prompt(&slot.status()).is_none() {
        let name = slot.status().slot;
        let text = format!(
            "it is unknown when {name} is at its prompt: it is not a bash or zsh that missiond started, or sets no marks"
        );
        return Err(RpcError::new(Fault::Refused, text).next(format!(
            "wait for silence instead: missiond wait {name} --quiet 500ms"
        )));
    }
    let seen = status
        .wait_for(|status| at_prompt(status) == Some(true) || status.is_over())
        .await;
    let is_over = seen.map(|status| status.is_over());
    match is_over {
        Ok(false) => Ok(()),
        Ok(true) => Err(RpcError::new(Fault::Refused, "it has ended")),
        Err(_) => Err(slot.gone()),
    }
}

async fn silence(slot: &SlotHandle, quiet_ms: Option<u64>) -> Result<(), RpcError> {
    let Some(ms) = quiet_ms else {
        return std::future::pending().await;
    };
    let mut pulse = slot.watch_output();
    pulse.mark_unchanged();
    let quiet = Duration::from_millis(ms);
    while let Ok(changed) = tokio::time::timeout(quiet, pulse.changed()).await {
        // The end of a slot is no silence.
        changed.map_err(|_| slot.gone())?;
    }
    Ok(())
}

async fn output(slot: &SlotHandle, pattern: Option<Regex>) -> Result<String, RpcError> {
    let Some(pattern) = pattern else {
        return std::future::pending().await;
    };
    slot.request(|reply| SlotCommand::AwaitOutput { pattern, reply })
        .await
}

/// Awaits with a timeout: the outcome, or an error when the time has run out.
pub(super) async fn within<T>(
    timeout_ms: Option<u64>,
    awaited: impl Future<Output = Result<T, RpcError>>,
) -> Result<T, RpcError> {
    let Some(ms) = timeout_ms else {
        return awaited.await;
    };
    match tokio::time::timeout(Duration::from_millis(ms), awaited).await {
        Ok(outcome) => outcome,
        Err(_) => Err(RpcError::new(
            Fault::TimedOut,
            format!("not within {:.1} s", ms as f64 / 1000.0),
        )),
    }
}

/// Adds the slot's state to a timeout.
fn late(error: RpcError, slot: &SlotHandle) -> RpcError {
    if error.fault != Fault::TimedOut {
        return error;
    }
    let status = slot.status();
    let state = status.state.name();
    RpcError {
        message: format!("{}: {} is {state}", error.message, status.slot),
        ..error
    }
    .next(format!("missiond status {}", status.slot))
}
