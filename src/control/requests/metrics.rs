use super::*;
use crate::core::timeline::exposition;

request! {
    /// Answers with counters and gauges of all slots, in the Prometheus text format.
    Metrics = "metrics", Nothing => MetricsAnswer;
    access: PersonOnly;
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsAnswer {
    /// The page, as a monitor reads it. Counters restart with the daemon.
    pub text: String,
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<MetricsAnswer, RpcError> {
    let tally = call.daemon().bus().tally();
    let version = env!("CARGO_PKG_VERSION");
    Ok(MetricsAnswer {
        text: exposition(version, &call.statuses(), &tally, Utc::now()),
    })
}
