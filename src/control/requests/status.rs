use super::*;
use crate::daemon;
use crate::os::process_stat::Stat;

request! {
    /// Shows slots, and sessions that the request names.
    Status = "status", Select => Vec<SlotStatus>;
    access: Anybody;
    scope: Scope::View;
}

pub(super) async fn answer(call: Call<'_>, select: Select) -> Result<Vec<SlotStatus>, RpcError> {
    let _turn = call.list_turn().await;
    let slots = call.selected(&select)?;
    let mut statuses: Vec<SlotStatus> = slots.iter().map(SlotHandle::status).collect();
    Box::pin(measure(&call, &mut statuses)).await;
    let health = call.daemon().health();
    for status in &mut statuses {
        status.health.clone_from(&health);
    }
    Ok(statuses)
}

/// Fills in the resource usage of the processes, which is measured only on request.
async fn measure(dispatcher: &Dispatcher, statuses: &mut [SlotStatus]) {
    let running: Vec<u32> = statuses.iter().filter_map(|status| status.pid).collect();
    if running.is_empty() {
        return;
    }
    let used = dispatcher.daemon().meter().of(running).await;
    let of_plain = |status: &SlotStatus| status.pid.filter(|_| status.kind == "shell");
    let pids = |status: &SlotStatus| (of_plain(status), status.pid, status.shim_pid);
    let pids: Vec<_> = statuses.iter().map(pids).collect();
    let in_foreground = |pid: Option<u32>| Stat::of(pid?)?.in_foreground();
    let looked = pids.into_iter().map(move |(plain, pid, shim_pid)| {
        let stopped = daemon::stopped(pid, shim_pid);
        (in_foreground(plain), stopped)
    });
    let found = blocking::run(|| looked.collect::<Vec<_>>()).await;
    for (status, found) in statuses.iter_mut().zip(found.unwrap_or_default()) {
        (status.foreground, status.stopped) = found;
    }
    let statuses = statuses.iter_mut().filter(|status| status.pid.is_some());
    for (status, usage) in statuses.zip(used) {
        status.memory = usage.map(|usage| usage.memory);
        status.cpu = usage.map(|usage| usage.cpu);
    }
}
