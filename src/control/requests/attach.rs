use super::by_connection as answer;
use super::*;

request! {
    /// Attaches to a slot or session: after one answer, the connection carries the live terminal, in frames instead of
    /// lines.
    Attach = "attach", AttachParams => AttachAnswer;
    access: PersonOnly;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// Columns of the person's terminal.
    pub cols: u16,
    /// Rows of the person's terminal.
    pub rows: u16,
    /// Only watch: keys are ignored, and the slot keeps its size.
    #[serde(default)]
    pub read_only: bool,
}
