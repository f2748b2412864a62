use super::*;
use crate::core::terminal::plain;
use crate::daemon::end_for;

/// How long `spawn` waits for the first output. Most programs write within a few milliseconds, and for a silent program
/// this wait should not be most of the time of a `spawn`.
const FIRST_OUTPUT: Duration = Duration::from_millis(20);

request! {
    /// Starts a program in a new terminal.
    Spawn = "spawn", SpawnParams => SpawnAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnAnswer {
    pub id: String,
    pub pid: Option<u32>,
    /// Its first output, as plain text.
    pub output: String,
}

async fn answer(call: Call<'_>, params: SpawnParams) -> Result<SpawnAnswer, RpcError> {
    let slot = call.new_session(params, call.gone).await?;
    let first = tokio::time::timeout(FIRST_OUTPUT, first_output(&slot));
    // Many programs write nothing at first.
    let _ = first.await;
    let part = part(call, &slot, WantedOutput::Range(0, u64::MAX)).await?;
    let status = slot.status();
    Ok(SpawnAnswer {
        id: status.slot,
        pid: status.pid,
        output: plain(&part.bytes),
    })
}

impl Dispatcher {
    pub(in crate::control) async fn new_session(
        &self,
        params: SpawnParams,
        gone: &CancellationToken,
    ) -> Result<SlotHandle, RpcError> {
        let tied = params.run.with_connection;
        let params = Box::new(params);
        let order = |reply| Order::Spawn { params, reply };
        let slot = self.daemon().order(order).await?;
        if tied {
            tokio::spawn(end_with(slot.clone(), gone.clone()));
        }
        Ok(slot)
    }
}

/// Ends a session when the connection that asked for it has ended.
async fn end_with(slot: SlotHandle, gone: CancellationToken) {
    let mut status = slot.watch_status();
    let over = async { status.wait_for(SlotStatus::is_over).await.is_ok() };
    let is_over = tokio::select! {
        () = gone.cancelled() => false,
        is_over = over => is_over,
    };
    if !is_over {
        let why = "its client's connection has ended".to_owned();
        end_for(&slot, why).await;
    }
}

/// Waits for the first output, or the end.
async fn first_output(slot: &SlotHandle) {
    let mut pulse = slot.watch_output();
    let mut status = slot.watch_status();
    tokio::select! {
        _ = pulse.wait_for(|count| *count > 0) => {}
        _ = status.wait_for(SlotStatus::is_over) => {}
    }
}
