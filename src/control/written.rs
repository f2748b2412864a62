//! What a session has written, for the requests that show it.

use crate::core::model::{Fault, RpcError};
use crate::core::terminal::plain;
use crate::core::text::excerpt::head_and_tail;
use crate::os::blocking;
use crate::slot::{OutputPart, SlotCommand, SlotHandle, TerminalRequest, WantedOutput};
use tokio::sync::oneshot;

/// Characters of the longest text that goes into an answer: as JSON it fits into a line of the protocol, whatever
/// it is made of.
pub(super) const MOST_CHARACTERS: usize = 1 << 20;

/// So many bytes are read in less time than a thread takes to begin, and also where there is none to be had.
const SHORT: usize = 64 << 10;

pub(super) async fn request<T>(
    slot: &SlotHandle,
    make: impl FnOnce(oneshot::Sender<Result<T, RpcError>>) -> TerminalRequest,
) -> Result<T, RpcError> {
    slot.request(|reply| SlotCommand::Terminal(make(reply)))
        .await
}

pub(super) async fn part(slot: &SlotHandle, wanted: WantedOutput) -> Result<OutputPart, RpcError> {
    request(slot, |reply| TerminalRequest::Output { wanted, reply }).await
}

/// All that was written in this range, as plain text, and whether some of it is missing.
pub(super) async fn written(
    slot: &SlotHandle,
    range: Option<(u64, u64)>,
) -> Result<(String, bool), RpcError> {
    let Some((from, to)) = range else {
        return Ok((String::new(), false));
    };
    let part = part(slot, WantedOutput::Whole(from, to)).await?;
    shortened(part, false, MOST_CHARACTERS).await
}

/// The head and the tail of a part as text, of at most so many characters, and whether something is missing.
pub(super) async fn shortened(
    part: OutputPart,
    raw: bool,
    most: usize,
) -> Result<(String, bool), RpcError> {
    let missing = part.dropped > 0;
    let is_short = part.bytes.len() <= SHORT;
    let shorten = move || {
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
