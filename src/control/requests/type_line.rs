use super::wait::within;
use super::*;
use crate::control::written::written;
use crate::slot::TypedCommand;

mod prompted;

request! {
    /// Types a line and Enter into a session.
    Type = "type", TypeParams => TypeAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::Sessions {
        claude: "missiond send ID …; a dialog: missiond confirm ID …",
        shell: "missiond write ID '…\\r'",
    };
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeParams {
    /// The id of the session.
    pub slot: String,
    /// The line. It is entered as one input, and Enter follows it.
    pub text: String,
    /// Wait until the shell is at its prompt again.
    #[serde(default)]
    pub wait: bool,
    /// Wait until the program has written nothing for this many milliseconds.
    #[serde(default)]
    pub quiet_ms: Option<u64>,
    /// Wait until the line at the cursor matches this regular expression: the prompt of a program that does not report
    /// when a command is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_prompt: Option<String>,
    /// The wait fails after this many milliseconds, and the command goes on; if absent, there is no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TypeAnswer {
    pub slot: String,
    /// The output of the command, as plain text; `None` if the request did not wait.
    pub output: Option<String>,
    /// The exit code of the command; `None` if the request waited only for silence.
    pub exit_code: Option<i32>,
    /// True if some of the output is no longer kept.
    pub truncated: bool,
}

async fn answer(call: Call<'_>, params: TypeParams) -> Result<TypeAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let person = call.peer.person();
    let until = prompted::awaited_prompt(&slot, &params).await?;
    if let Some(prompt) = until {
        let typed = prompted::type_until(&slot, person, &params.text, &prompt);
        let typed = within(params.timeout_ms, typed).await?;
        let (output, truncated) = written(call, &slot, typed.output).await?;
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
            let typed = request(&slot, |reply| TerminalRequest::TypeAndWait {
                text,
                person,
                reply,
            });
            within(params.timeout_ms, typed).await?
        }
        Some(ms) => within(params.timeout_ms, type_until_quiet(&slot, person, text, ms)).await?,
    };
    let (output, truncated) = written(call, &slot, typed.output).await?;
    Ok(TypeAnswer {
        slot: params.slot,
        output: Some(output),
        exit_code: typed.exit_code,
        truncated,
    })
}

/// Types a line for a person, without waiting.
async fn type_line(slot: &SlotHandle, person: Person, text: String) -> Result<(), RpcError> {
    request(slot, |reply| TerminalRequest::Type {
        text,
        person,
        reply,
    })
    .await
}

/// Types a line and waits for silence, for a program that does not report when a command is done.
async fn type_until_quiet(
    slot: &SlotHandle,
    person: Person,
    text: String,
    ms: u64,
) -> Result<TypedCommand, RpcError> {
    let from = extent(slot).await?.total;
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
    let to = extent(slot).await?.total;
    Ok(TypedCommand {
        exit_code: slot.status().exit_code,
        output: Some((from, to)),
    })
}
