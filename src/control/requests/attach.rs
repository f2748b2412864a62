use super::by_connection as answer;
use super::*;

request! {
    /// Answers once, then the connection is the live terminal of a slot or session: frames instead of lines.
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
    /// Only watch: no key is taken, and the slot keeps its size.
    #[serde(default)]
    pub read_only: bool,
}
