use super::*;
use crate::core::terminal::plain;
use crate::core::text::hex;
use crate::slot::OutputPart;
use std::borrow::Cow;

/// The maximum wait for more output; a client that wants to wait longer asks again.
const MAX_WAIT: Duration = Duration::from_secs(60);

request! {
    /// Answers with a part of what a program has written; with `wait_ms` it waits for more.
    Output = "output", OutputParams => OutputAnswer;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::Sessions {
        claude: "missiond screen ID, missiond history ID, missiond logs ID -f",
        shell: "missiond screen ID, missiond search ID REGEX",
    };
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// The id of the session.
    pub slot: String,
    /// Begin at this byte of all output so far; if absent, at the oldest byte that is kept.
    #[serde(default)]
    pub from: Option<u64>,
    /// Begin this many lines before the end.
    #[serde(default)]
    pub lines: Option<usize>,
    /// Keep control sequences, as the program wrote them; else answer with plain text.
    #[serde(default)]
    pub raw: bool,
    /// If there is no output yet, wait for it up to this many milliseconds.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputAnswer {
    pub slot: String,
    pub text: String,
    /// The bytes in hexadecimal digits, if `raw` was requested and they are not all UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// The position of these bytes in all output so far: from `start` up to `end`, where the next part begins.
    pub start: u64,
    pub end: u64,
    /// The length of all output so far: more than `end` if this is only a part.
    pub total: u64,
    /// Bytes between the requested position and `start` that are no longer kept.
    pub dropped_bytes: u64,
    pub truncated: bool,
    pub running: bool,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Why missiond ended it, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl OutputAnswer {
    /// The output: the exact bytes if `raw` was requested.
    pub fn bytes(&self) -> Vec<u8> {
        let exact = self.hex.as_deref().and_then(hex::decode);
        exact.unwrap_or_else(|| self.text.clone().into_bytes())
    }

    /// Stores the bytes as text, and also as hexadecimal digits if they are not all UTF-8.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.hex = matches!(text, Cow::Owned(_)).then(|| hex::encode(bytes));
        self.text = text.into_owned();
    }
}

/// The maximum bytes of output that are made into an answer on the calling thread: that takes less time than starting a
/// thread. Such output can also be read if there is no memory for another thread.
const SHORT: usize = 64 << 10;

async fn answer(call: Call<'_>, params: OutputParams) -> Result<OutputAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let wanted = match (params.from, params.lines) {
        (_, Some(lines)) => WantedOutput::LastLines(lines),
        (from, None) => WantedOutput::Range(from.unwrap_or(0), u64::MAX),
    };
    let mut pulse = slot.watch_output();
    let mut status = slot.watch_status();
    let wait = params.wait_ms.map_or(Duration::ZERO, Duration::from_millis);
    let deadline = tokio::time::Instant::now() + wait.min(MAX_WAIT);
    let part = loop {
        pulse.mark_unchanged();
        let is_over = status.borrow_and_update().is_over();
        let part = part(call, &slot, wanted).await?;
        if !part.bytes.is_empty() || is_over {
            break part;
        }
        call.let_go();
        let more = async {
            tokio::select! { _ = pulse.changed() => {}, _ = status.changed() => {} }
        };
        if tokio::time::timeout_at(deadline, more).await.is_err() {
            break part;
        }
    };
    let (status, held) = (slot.status(), call.held());
    if part.bytes.len() <= SHORT {
        return Ok(output_answer(status, part, &params));
    }
    // Not on the threads that answer all other clients.
    let made = blocking::run(move || {
        let _held = held;
        output_answer(status, part, &params)
    });
    let failed = |error| RpcError::new(Fault::Failed, format!("the output can't be read: {error}"));
    made.await.map_err(failed)
}

fn output_answer(status: SlotStatus, part: OutputPart, params: &OutputParams) -> OutputAnswer {
    // A client that names no position wants what is kept: output before that is no loss to it.
    let dropped_bytes = part.dropped;
    let mut answer = OutputAnswer {
        running: !status.is_over(),
        slot: status.slot,
        text: String::new(),
        hex: None,
        start: part.start,
        end: part.end(),
        total: part.total,
        dropped_bytes,
        truncated: dropped_bytes > 0,
        exit_code: status.exit_code,
        signal: status.session.and_then(|session| session.signal),
        why: status.last_error,
    };
    match params.raw {
        true => answer.set_bytes(&part.bytes),
        false => answer.text = plain(&part.bytes),
    }
    answer
}
