use super::*;
use crate::os::files::{self, LinesFromEnd};
use std::path::Path;

/// The default number of lines in an answer, and the maximum.
const LINES: usize = 200;
const MAX_LINES: usize = 2000;
/// The maximum bytes of a line; a longer line is left out.
const LONGEST: u64 = 64 << 10;
/// The maximum bytes of all lines.
const MAX_BYTES: usize = 1 << 20;

request! {
    /// Shows the last lines of the log of a slot or a session.
    Log = "log", LogParams => LogAnswer;
    access: PersonOnly;
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// The number of last lines: 200 by default, 2000 at most.
    #[serde(default)]
    pub lines: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogAnswer {
    pub slot: String,
    /// The oldest line first.
    pub lines: Vec<String>,
}

async fn answer(call: Call<'_>, params: LogParams) -> Result<LogAnswer, RpcError> {
    let SlotStatus { slot, log, .. } = call.slot(&params.slot)?.status();
    let most = params.lines.unwrap_or(LINES).min(MAX_LINES);
    let read = call
        .dispatcher()
        .reading()
        .run(move || last_lines(&log, most));
    let failed = |error| RpcError::new(Fault::Failed, format!("the log can't be read: {error}"));
    let lines = read.await.map_err(failed)?.map_err(failed)?;
    Ok(LogAnswer { slot, lines })
}

fn last_lines(log: &Path, most: usize) -> std::io::Result<Vec<String>> {
    let file = match files::open(log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut room = MAX_BYTES;
    let fits = |line: &String| {
        let left = room.checked_sub(line.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    let lines = LinesFromEnd::new(file, LONGEST)?
        .take(most)
        .take_while(fits);
    let mut lines: Vec<String> = lines.collect();
    lines.reverse();
    Ok(lines)
}
