//! A command that waits and loses the daemon goes on with the next one, which takes the slots up where they are.

use crate::cli::context::{ANSWER_LIMIT, Context, call};
use crate::cli::failure::{Blame, Failure};
use crate::cli::target::{self, Target};
use crate::control::client::{CallError, Client};
use crate::control::requests::Method;
use std::time::{Duration, Instant};

/// How long the daemon may be away: for an upgrade, or for a person who has to type `missiond up`.
const PATIENCE: Duration = Duration::from_secs(30);
/// A daemon that takes connections is there, and starts on a loaded machine: it gets longer to answer.
const SLOW: Duration = Duration::from_secs(120);
/// A connection that is not answered within this time is given up, and another one is tried: the daemon that it was made
/// to may have been killed, or be stuck.
const TRY: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// A connection that is lost sooner than this has come to nothing.
const SOON: Duration = Duration::from_millis(200);
/// So many of them in a row: the daemon ends each time, perhaps because of this very request.
const MAX_SOON: u32 = 10;
/// The daemon keeps the time of what it waits for; this much later it is taken for stuck.
const GRACE: Duration = Duration::from_secs(10);

/// The daemon that a command talks to, to be reached again.
pub struct DaemonConnection<'a> {
    context: &'a Context,
    target: Target,
    connected: Instant,
    lost_soon: u32,
}

impl DaemonConnection<'_> {
    /// Reaches the daemon that the flags mean; one that is not there is not waited for.
    pub async fn reach(context: &Context) -> Result<(DaemonConnection<'_>, Client), Failure> {
        let target = target::find(context).await?;
        let first = context.try_target(&target).await;
        let mut daemon = DaemonConnection {
            context,
            target,
            connected: Instant::now(),
            lost_soon: 0,
        };
        let client = match first {
            Err(error) if daemon.was_there(&error) => daemon.again(&error.to_string(), None).await,
            first => first.map_err(|error| target::unreached(context, error)),
        };
        Ok((daemon, client?))
    }

    /// Whether a daemon was there a moment ago, and has gone before anything was asked of it.
    fn was_there(&self, error: &CallError) -> bool {
        match error {
            CallError::Lost(_) => true,
            CallError::NotRunning(_) => self.target.was_there,
            _ => false,
        }
    }

    /// Something has come on this connection: it was of use, however soon it is lost.
    pub fn was_of_use(&mut self) {
        self.lost_soon = 0;
    }

    /// The connection is lost: waits until a daemon listens at the same socket again, for at most `patience` where the
    /// person's own patience is shorter than ours.
    pub async fn again(
        &mut self,
        why: &str,
        patience: Option<Duration>,
    ) -> Result<Client, Failure> {
        self.lost_soon = match self.connected.elapsed() < SOON {
            true => self.lost_soon + 1,
            false => 0,
        };
        if self.lost_soon > MAX_SOON {
            return Err(Failure::failed(format!("{why}, {MAX_SOON} times in a row"))
                .next("see what it says: missiond.log in the log directory"));
        }
        let patience = patience.map_or(PATIENCE, |patience| patience.min(PATIENCE));
        let shown = humantime::format_duration(Duration::from_secs(patience.as_secs()));
        let out = &self.context.out;
        out.note(format!(
            "{why}; waiting up to {shown} for the daemon to come back"
        ));
        let begun = Instant::now();
        loop {
            // Also before the first try: a daemon that has just been killed may still be taking connections.
            tokio::time::sleep(PAUSE).await;
            let Target { socket, wanted, .. } = &self.target;
            let limit = match Client::connect_within(socket, wanted, TRY.min(patience)).await {
                Ok(client) => {
                    self.connected = Instant::now();
                    out.note("the daemon is back");
                    return Ok(client);
                }
                // Another daemon has taken its place.
                Err(error @ CallError::Rpc(_)) if !error.is_full() => return Err(error.into()),
                Err(CallError::Silent(_)) if patience == PATIENCE => {
                    (SLOW, CallError::Silent(SLOW))
                }
                Err(error) => {
                    if let Some(failure) = target::out_of_place(self.context, socket) {
                        return Err(failure);
                    }
                    (patience, error)
                }
            };
            match limit {
                (limit, _) if begun.elapsed() < limit => {}
                _ if patience < PATIENCE => {
                    return Err(Failure::timed_out("the daemon has gone")
                        .next("start it with: missiond up"));
                }
                (limit, error) => return Err(stayed_away(limit, error)),
            }
        }
    }
}

fn stayed_away(limit: Duration, error: CallError) -> Failure {
    if error.is_full() || matches!(error, CallError::Silent(_)) {
        return error.into();
    }
    let shown = humantime::format_duration(limit);
    let text = format!("the daemon has gone, and is not back after {shown}: {error}");
    Failure::new(Blame::NoDaemon, text).next("start it with: missiond up")
}

/// Asks for what is done at once and carries an id: the next daemon is asked again if one is killed, and does it once.
pub async fn ask_once<M: Method>(context: &Context, params: M::Params) -> Result<M::Answer, Failure>
where
    M::Params: Clone,
{
    let (mut daemon, mut client) = DaemonConnection::reach(context).await?;
    loop {
        match call::<M>(&mut client, params.clone(), Some(ANSWER_LIMIT)).await {
            Err(CallError::Lost(why)) => client = daemon.again(&why, None).await?,
            answer => return Ok(answer?),
        }
    }
}

/// [`ask_then`] with nothing to do about a daemon that stays away but to start it.
pub async fn ask<M: Method>(
    context: &Context,
    timeout: Option<Duration>,
    make: impl Fn(Option<u64>) -> M::Params,
) -> Result<M::Answer, Failure> {
    ask_then::<M>(context, timeout, "", make).await
}

/// Asks for something that is waited for. `make` makes the request, with the milliseconds that are left of `timeout`;
/// it is made again for the next daemon where one is killed, so asking twice must do no more than asking once.
/// Where none comes back, `then` is the step after its start.
pub async fn ask_then<M: Method>(
    context: &Context,
    timeout: Option<Duration>,
    then: &str,
    make: impl Fn(Option<u64>) -> M::Params,
) -> Result<M::Answer, Failure> {
    let (mut daemon, mut client) = DaemonConnection::reach(context).await?;
    let begun = Instant::now();
    let mut left = timeout;
    loop {
        let params = make(left.map(milliseconds));
        let limit = left.map(|left| left + GRACE);
        match call::<M>(&mut client, params, limit).await {
            Err(CallError::Lost(why)) => {
                let again = daemon.again(&why, left).await;
                client = again.map_err(|failure| and_then(failure, then))?;
            }
            answer => return Ok(answer?),
        }
        left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
    }
}

fn and_then(failure: Failure, then: &str) -> Failure {
    match (failure.next.clone(), then) {
        (_, "") => failure,
        (Some(next), _) => failure.next(format!("{next}\n{then}")),
        (None, _) => failure.next(then),
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
