use super::*;
use crate::core::terminal::plain;
use crate::core::text::secrets;
use regex::Regex;

/// The maximum size of a compiled regex: a larger one is an attack or a mistake.
const MAX_REGEX: usize = 1 << 20;
/// The default number of matches.
const MATCHES: usize = 200;
/// Memory held for a search in a slot: the lines of its terminal, and its transcripts, which are read entry by entry.
const OF_SLOT: usize = 32 << 20;

request! {
    /// Searches the screen and the conversation of a slot, or the output of a session.
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
    /// The maximum number of matches.
    #[serde(default)]
    pub limit: Option<usize>,
}

async fn answer(call: Call<'_>, params: SearchParams) -> Result<Vec<Match>, RpcError> {
    let (pattern, limit) = (regex(&params.pattern)?, params.limit.unwrap_or(MATCHES));
    let slot = call.slot(&params.slot)?;
    let found = match slot.is_session() {
        true => search_output(call, &slot, pattern, limit).await?,
        false => {
            call.hold(OF_SLOT).await?;
            let search = |reply| SlotCommand::Search {
                pattern,
                limit,
                reply,
            };
            slot.request(search).await?
        }
    };
    found.answer()
}

/// Searches the lines of all kept output. This runs outside the session's own task, which serves a program, and stops
/// when the client is gone.
async fn search_output(
    call: Call<'_>,
    slot: &SlotHandle,
    pattern: Regex,
    limit: usize,
) -> Result<Matches, RpcError> {
    let bytes = part(call, slot, WantedOutput::Whole(0, u64::MAX))
        .await?
        .bytes;
    let (gone, held) = (call.gone.clone(), call.held());
    let searched = blocking::run(move || {
        let _held = held;
        let text = plain(&bytes);
        drop(bytes);
        // Secrets are masked first, so that a pattern can't find what the answer does not show.
        let text = secrets::mask_lines(text);
        let lines = text.lines().take_while(|_| !gone.is_cancelled());
        let mut found = Matches::new(limit);
        found.search("output", lines, &pattern);
        found
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
