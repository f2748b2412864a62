use super::*;

request! {
    /// Changes the size of a session's terminal.
    Resize = "resize", ResizeParams => Done;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::only_sessions("set `cols` and `rows` in slots.toml, then: missiond restart ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    /// The id of the session.
    pub slot: String,
    /// Columns of its terminal.
    pub cols: u16,
    /// Rows of its terminal.
    pub rows: u16,
}

async fn answer(call: Call<'_>, params: ResizeParams) -> Result<Done, RpcError> {
    let slot = call.slot(&params.slot)?;
    let ResizeParams { cols, rows, .. } = params;
    let sizes = 2..=1000;
    if !sizes.contains(&cols) || !sizes.contains(&rows) {
        return Err(RpcError::new(
            Fault::Usage,
            "a terminal has from 2 to 1000 columns and rows",
        ));
    }
    request(&slot, |reply| TerminalRequest::Resize { cols, rows, reply }).await?;
    Ok(done(&slot))
}
