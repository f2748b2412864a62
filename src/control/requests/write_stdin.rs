use super::write::write;
use super::*;
use crate::slot::Writing;

request! {
    /// Writes to a command and answers with the output since the last look.
    WriteStdin = "write_stdin", StdinParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    scope: Scope::Keys;
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
    /// Written unchanged: end it with \n or \r for Enter; \u0003 is Ctrl-C. If empty, nothing is written.
    #[serde(default, alias = "chars")]
    pub input: String,
    #[serde(flatten)]
    pub look: LookParams,
}

async fn answer(call: Call<'_>, params: StdinParams) -> Result<ToolAnswer, RpcError> {
    let slot = call.slot(&params.session_id)?;
    let bytes = params.input.into_bytes();
    if !bytes.is_empty() {
        write(&slot, Writing::raw(bytes, call.peer)).await?;
    }
    params.look.at(call, &slot).await
}
