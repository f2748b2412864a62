use super::*;
use crate::audit::Record;
use crate::os::peer::{self, Proc};

request! {
    /// Tells whether processes that have connected to another server of this daemon, such as `missiond web`, are
    /// outside of all slots. A process inside a slot is recorded in the audit.
    WhereFrom = "peer", WhereFromParams => WhereFromAnswer;
    access: PersonOnly;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhereFromParams {
    /// The processes that share the connection.
    pub pids: Vec<i32>,
    /// The name of the server, for the audit.
    pub server: String,
    /// Write nothing into the audit, because an entry about one of these processes was written a moment ago.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhereFromAnswer {
    /// True if all of them are outside of all slots.
    pub outside: bool,
    /// Why they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

async fn answer(call: Call<'_>, params: WhereFromParams) -> Result<WhereFromAnswer, RpcError> {
    let marks = call.marks();
    let pids = params.pids.clone();
    let look = move || {
        let of = |pid: &i32| (*pid, peer::origin(Some(*pid), &marks, &Proc::default()));
        pids.iter().map(of).collect::<Vec<_>>()
    };
    let failed = |error| {
        RpcError::new(
            Fault::Failed,
            format!("the processes can't be looked up: {error}"),
        )
    };
    let origins = blocking::run(look).await.map_err(failed)?;
    let mut others = origins
        .iter()
        .filter(|(_, origin)| *origin != PeerOrigin::Outside);
    let Some((pid, origin)) = others.next() else {
        let outside = !origins.is_empty();
        let why = (!outside).then(|| "the process can't be seen from here".to_owned());
        return Ok(WhereFromAnswer { outside, why });
    };
    let is_session = |name: &str| call.handle(name).is_some_and(|one| one.is_session());
    let kind = |name: &str| if is_session(name) { "session" } else { "slot" };
    let (slot, why) = match origin {
        PeerOrigin::Slot(slot) => (
            slot.as_str(),
            format!("it runs inside {} {slot}", kind(slot)),
        ),
        PeerOrigin::Left(slot) => (
            slot.as_str(),
            format!("it may be left over from {} {slot}", kind(slot)),
        ),
        PeerOrigin::Daemon => ("", "the daemon runs it".to_owned()),
        PeerOrigin::Unseen(fault) => ("", format!("it can't be looked up: {fault}")),
        PeerOrigin::Untold | PeerOrigin::Outside => (
            "",
            "it can't be distinguished from one inside a slot".to_owned(),
        ),
    };
    if !params.unwritten {
        let caller = Peer {
            pid: Some(*pid),
            origin: origin.clone(),
            ..call.peer.clone()
        };
        let record = Record::refused(slot, &caller, &params.server, &Value::Null, &why);
        if let Err(error) = call.daemon().audit().note(record).await {
            tracing::error!("the audit can't be written: {error}");
        }
    }
    Ok(WhereFromAnswer {
        outside: false,
        why: Some(why),
    })
}
