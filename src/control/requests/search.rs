use super::*;
use crate::core::terminal::plain;
use crate::core::text::secrets;
use regex::Regex;

/// A regex that is larger than this when compiled is an attack or a mistake.
const MAX_REGEX: usize = 1 << 20;
/// Matches that `search` gives unless it is asked for others.
const MATCHES: usize = 200;

request! {
    /// Searches what a slot has shown and said, or what a session has written.
    Search = "search", SearchParams => Vec<Match>;
    access: Granted("search", Slots);
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// A regular expression.
    pub pattern: String,
    /// At most so many matches.
    #[serde(default)]
    pub limit: Option<usize>,
}

async fn answer(call: Call<'_>, params: SearchParams) -> Result<Vec<Match>, RpcError> {
    let (pattern, limit) = (regex(&params.pattern)?, params.limit.unwrap_or(MATCHES));
    let slot = call.slot(&params.slot)?;
    if slot.is_session() {
        return search_output(&slot, pattern, limit).await;
    }
    slot.request(|reply| SlotCommand::Search {
        pattern,
        limit,
        reply,
    })
    .await
}

/// The lines of all output that is kept. It is gone through off the slot's own task, which has a program to serve.
async fn search_output(
    slot: &SlotHandle,
    pattern: Regex,
    limit: usize,
) -> Result<Vec<Match>, RpcError> {
    let bytes = part(slot, WantedOutput::Whole(0, u64::MAX)).await?.bytes;
    let searched = blocking::run(move || {
        // Masked first: a pattern must not find out what it is not shown.
        let rows: Vec<String> = plain(&bytes).lines().map(str::to_owned).collect();
        let rows = secrets::mask_rows(&rows);
        let matching = rows.into_iter().enumerate();
        let matching = matching.filter(|(_, line)| pattern.is_match(line));
        let found = matching.take(limit).map(|(index, text)| Match {
            place: "output".to_owned(),
            line: index + 1,
            text,
        });
        found.collect()
    });
    let failed = |error| RpcError::new(Fault::Failed, format!("the search failed: {error}"));
    searched.await.map_err(failed)
}

pub(super) fn regex(pattern: &str) -> Result<Regex, RpcError> {
    regex::RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX)
        .build()
        .map_err(|error| RpcError::new(Fault::Usage, format!("not a regular expression: {error}")))
}
