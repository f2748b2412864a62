//! The output of a session, for the requests that show it.

use super::requests::Call;
use crate::core::model::{Fault, RpcError};
use crate::core::terminal::plain;
use crate::core::text::excerpt::head_and_tail;
use crate::os::blocking;
use crate::slot::{OutputPart, SlotCommand, SlotHandle, TerminalRequest, WantedOutput};
use tokio::sync::oneshot;

/// The maximum characters of a text in an answer: as JSON it fits into a line of the protocol, whatever characters it
/// has.
pub(super) const MOST_CHARACTERS: usize = 1 << 20;

/// This many bytes are read in less time than a thread takes to begin, and also if no thread can be started.
const SHORT: usize = 64 << 10;

pub(super) async fn request<T>(
    slot: &SlotHandle,
    make: impl FnOnce(oneshot::Sender<Result<T, RpcError>>) -> TerminalRequest,
) -> Result<T, RpcError> {
    slot.request(|reply| SlotCommand::Terminal(make(reply)))
        .await
}

/// Bytes in memory for a part that fits into an answer: the part, its text, and the answer, in which a byte may take
/// six.
const PART: usize = 8 << 20;
/// Bytes in memory for each byte of a longer part, until it has been searched or shortened: the part, its text, which
/// may be three times as long if it is not UTF-8, and its text without secrets.
const OF_EACH: usize = 6;

/// Fetches a part of the output, after memory for it is reserved.
pub(super) async fn part(
    call: Call<'_>,
    slot: &SlotHandle,
    wanted: WantedOutput,
) -> Result<OutputPart, RpcError> {
    let bytes = match wanted {
        WantedOutput::Range(..) | WantedOutput::LastLines(_) => PART,
        WantedOutput::Whole(..) | WantedOutput::Unread => {
            let kept = extent(slot).await?;
            let kept = usize::try_from(kept.total - kept.start).unwrap_or(usize::MAX);
            kept.saturating_mul(OF_EACH).max(PART)
        }
    };
    call.hold(bytes).await?;
    request(slot, |reply| TerminalRequest::Output { wanted, reply }).await
}

/// The range in which output is kept.
pub(super) async fn extent(slot: &SlotHandle) -> Result<OutputPart, RpcError> {
    let wanted = WantedOutput::Range(0, 0);
    request(slot, |reply| TerminalRequest::Output { wanted, reply }).await
}

/// All output in this range, as plain text, and whether some of it is missing.
pub(super) async fn written(
    call: Call<'_>,
    slot: &SlotHandle,
    range: Option<(u64, u64)>,
) -> Result<(String, bool), RpcError> {
    let Some((from, to)) = range else {
        return Ok((String::new(), false));
    };
    let part = part(call, slot, WantedOutput::Whole(from, to)).await?;
    shortened(call, part, false, MOST_CHARACTERS).await
}

/// The head and the tail of a part as text, with at most `most` characters, and whether something is missing.
pub(super) async fn shortened(
    call: Call<'_>,
    part: OutputPart,
    raw: bool,
    most: usize,
) -> Result<(String, bool), RpcError> {
    let missing = part.dropped > 0;
    let is_short = part.bytes.len() <= SHORT;
    let held = call.held();
    let shorten = move || {
        let _held = held;
        let text = match raw {
            true => String::from_utf8_lossy(&part.bytes).into_owned(),
            false => plain(&part.bytes),
        };
        head_and_tail(text, most)
    };
    let failed = |error| RpcError::new(Fault::Failed, format!("the output can't be read: {error}"));
    let (text, is_cut) = match is_short {
        true => shorten(),
        false => blocking::run(shorten).await.map_err(failed)?,
    };
    Ok((text, missing || is_cut))
}
