use super::unified_exec::Look;
use super::write::write;
use super::*;
use crate::slot::Writing;

request! {
    /// Writes to a command and answers with what has come since the last look.
    WriteStdin = "write_stdin", StdinParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Accepts::Sessions {
        claude: "missiond send ID …; a dialog: missiond confirm ID …",
        shell: "missiond write ID '…\\r'",
    };
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StdinParams {
    /// The id that `unified_exec` answered with.
    pub session_id: String,
    /// Written as it is; empty only looks.
    #[serde(default, alias = "chars")]
    pub input: String,
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

async fn answer(call: Call<'_>, params: StdinParams) -> Result<ToolAnswer, RpcError> {
    let slot = call.slot(&params.session_id)?;
    let bytes = params.input.into_bytes();
    if !bytes.is_empty() {
        write(&slot, Writing::raw(bytes, call.peer)).await?;
    }
    let look = Look::new(params.yield_ms, params.max_tokens, params.raw);
    look.at(&slot).await
}
