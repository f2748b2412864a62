use super::*;

request! {
    /// Counts slots and sessions.
    Stats = "stats", Nothing => StatsAnswer;
    access: Anybody;
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatsAnswer {
    pub total: usize,
    pub running: usize,
    pub idle: usize,
    pub busy: usize,
    pub stopped: usize,
    /// Running sessions; sessions are not slots. `sessions_ended` counts those that have ended and are kept.
    #[serde(default)]
    pub sessions: usize,
    #[serde(default)]
    pub sessions_ended: usize,
    /// The problems that the daemon has now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Ailment>,
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<StatsAnswer, RpcError> {
    let statuses = call.statuses();
    let (sessions, slots): (Vec<_>, Vec<_>) =
        statuses.iter().partition(|status| status.session.is_some());
    let ended = |status: &SlotStatus| matches!(status.state, State::Exited | State::Error);
    let count = |statuses: &[&SlotStatus], fits: fn(&SlotStatus) -> bool| {
        statuses.iter().filter(|status| fits(status)).count()
    };
    let (total, stopped) = (slots.len(), count(&slots, ended));
    let idle = count(&slots, |status| status.state == State::Idle);
    let sessions_ended = count(&sessions, ended);
    Ok(StatsAnswer {
        total,
        running: total - stopped,
        idle,
        busy: total - stopped - idle,
        stopped,
        sessions: sessions.len() - sessions_ended,
        sessions_ended,
        health: call.daemon().health(),
    })
}
