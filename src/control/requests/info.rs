use super::*;
use crate::os::network::{NOT_COUNTED, traffic_of};
use std::path::PathBuf;

request! {
    /// Shows one session.
    Info = "info", OneSlot => SessionInfo;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::only_sessions("missiond status ID");
}

/// A session and its resource usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    pub id: String,
    pub owner: String,
    pub owner_pid: Option<u32>,
    pub cols: usize,
    pub rows: usize,
    pub cwd: PathBuf,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The program alone.
    pub shell: String,
    pub created_at: DateTime<Utc>,
    pub ends_at: Option<DateTime<Utc>>,
    pub pid: Option<u32>,
    pub is_alive: bool,
    pub state: State,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// missiond ended it because its time limit was reached.
    #[serde(default)]
    pub timed_out: bool,
    /// Why it ended or did not start, as text.
    pub last_error: Option<String>,
    /// Seconds from its start until now, or until its end.
    pub uptime: u64,
    pub at_prompt: Option<bool>,
    /// The bytes of output that are kept, and the bytes that were dropped for newer output.
    pub output_bytes: u64,
    pub dropped_bytes: u64,
    /// Usage of all its processes together: resident bytes, percent of one processor, bytes read from and written to
    /// the disk.
    pub memory: Option<u64>,
    pub cpu: Option<f32>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Network traffic, if the kernel counts it for this session alone.
    #[serde(default)]
    pub network: Option<Traffic>,
    /// Why the traffic of a running session is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_unknown: Option<String>,
    pub log: PathBuf,
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<SessionInfo, RpcError> {
    let slot = call.slot(&one.slot)?;
    info_of(&call, &slot).await
}

pub(super) async fn info_of(
    dispatcher: &Dispatcher,
    slot: &SlotHandle,
) -> Result<SessionInfo, RpcError> {
    let output = extent(slot).await?;
    let status = slot.status();
    let is_alive = !status.is_over();
    let Some(session) = status.session else {
        return Err(RpcError::new(Fault::Failed, "it is not a session"));
    };
    let usage = match status.pid {
        Some(pid) => dispatcher
            .daemon()
            .meter()
            .of(vec![pid])
            .await
            .pop()
            .flatten(),
        None => None,
    };
    let network = status.pid.and_then(traffic_of);
    let until = session.ended_at.unwrap_or_else(Utc::now);
    let uptime = (until - session.created_at).num_seconds();
    Ok(SessionInfo {
        id: status.slot,
        owner: status.owner,
        owner_pid: session.owner_pid,
        cols: session.cols,
        rows: session.rows,
        cwd: status.cwd,
        shell: session.command.first().cloned().unwrap_or_default(),
        command: session.command,
        created_at: session.created_at,
        ends_at: session.ends_at,
        pid: status.pid,
        is_alive,
        state: status.state,
        exit_code: status.exit_code,
        signal: session.signal,
        timed_out: session.timed_out,
        last_error: status.last_error,
        uptime: uptime.max(0).unsigned_abs(),
        at_prompt: session.at_prompt,
        output_bytes: output.total - output.start,
        dropped_bytes: output.dropped,
        memory: usage.map(|usage| usage.memory),
        cpu: usage.map(|usage| usage.cpu),
        read_bytes: usage.map(|usage| usage.read),
        written_bytes: usage.map(|usage| usage.written),
        network,
        network_unknown: (is_alive && network.is_none()).then(|| NOT_COUNTED.to_owned()),
        log: status.log,
    })
}
