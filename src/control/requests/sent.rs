use super::send::find;
use super::*;
use crate::daemon::tasks::runner;
use crate::slot::once::{Came, OnceOutcome, OnceRecord, Sending};

request! {
    /// Shows the result of a message that was sent with an id.
    Sent = "sent", SentParams => SentAnswer;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::Slots("missiond session output ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SentParams {
    /// The name of the slot, or `@role` if the role has one slot.
    pub slot: String,
    /// The id that the message was sent with.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentAnswer {
    pub slot: String,
    pub id: String,
    /// `queued`, `sent` (its turn goes on, or needs a person), `answered`, `failed` or `dropped` (it waited and was
    /// never sent, as `error` says; the same id may be used again).
    pub state: String,
    pub queued_at: DateTime<Utc>,
    /// The time at which Enter was pressed.
    pub entered_at: Option<DateTime<Utc>>,
    pub response: Option<String>,
    pub error: Option<RpcError>,
}

async fn answer(call: Call<'_>, params: SentParams) -> Result<SentAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let sends = &call.daemon().once().sends;
    let (mut record, under_way) = sends.look(&params.slot, &params.id)?;
    let unclear = record.outcome.is_none() && record.entered_at.is_some() && !under_way;
    // The turn is over, and the answer has not been looked up yet.
    let status = slot.status();
    if unclear && runner::rests(status.state) && status.unanswered == 0 {
        let came = find(&record, &slot).await;
        if let Came::End(outcome) = came {
            let end = Came::End(outcome.clone());
            sends.settle_on_disk(&record.slot, &record.id, end).await;
            record.outcome = Some(outcome);
        }
    }
    Ok(about(record))
}

fn about(record: OnceRecord<Sending>) -> SentAnswer {
    let is_dropped = record.dropped.is_some();
    // Some commands print nothing.
    let is_answered = matches!(record.outcome, Some(OnceOutcome::Answered(_)));
    let (response, error) = match record.outcome {
        Some(OnceOutcome::Answered(answer)) => (answer.response, None),
        Some(OnceOutcome::Failed(error)) => (None, Some(error)),
        None => (None, record.dropped),
    };
    let state = match (&error, record.entered_at) {
        _ if is_dropped => "dropped",
        _ if is_answered => "answered",
        (Some(_), _) => "failed",
        (None, Some(_)) => "sent",
        (None, None) => "queued",
    };
    SentAnswer {
        slot: record.slot,
        id: record.id,
        state: state.to_owned(),
        queued_at: record.queued_at,
        entered_at: record.entered_at,
        response,
        error,
    }
}
