//! The way to a slot from outside: commands over a bounded queue, each with one reply.

use super::attach::{KeyboardRequest, Seat, Viewer, Viewing};
use super::daemon_end::DaemonEnd;
use super::requests::TerminalRequest;
use super::rules::SlotRules;
use super::writing::Writing;
use crate::core::machine::{Input, Reply, Token};
use crate::core::model::{
    EventKind, Evidence, Fault, HistoryAnswer, KeyboardHolder, Matches, RpcError, ScreenAnswer,
    ScreenParams, SlotStatus, Trace,
};
use crate::core::policy::Ask;
use crate::core::settings::SlotConfig;
use regex::Regex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Commands that may wait for one slot. The task never waits for a program, so the queue is empty but for
/// moments; a client that fills it is waiting for its turn, not losing anything.
pub const MAX_COMMANDS: usize = 128;

pub type Answer<T> = oneshot::Sender<Result<T, RpcError>>;

#[derive(Debug)]
pub enum SlotCommand {
    /// For the machine, which replies to the token sooner or later.
    Machine {
        token: Token,
        input: Box<Input>,
        reply: Answer<Reply>,
    },
    Withdraw(Token),
    Write {
        writing: Writing,
        reply: Answer<()>,
    },
    /// Somebody's terminal is attached, or does something there.
    View(Viewing),
    /// A client that types by requests takes the keyboard, keeps it or gives it back; replies who has it then.
    Keyboard {
        request: KeyboardRequest,
        reply: Answer<Option<KeyboardHolder>>,
    },
    Screen {
        params: ScreenParams,
        reply: Answer<ScreenAnswer>,
    },
    Search {
        pattern: Regex,
        limit: usize,
        reply: Answer<Matches>,
    },
    History {
        last: Option<usize>,
        reply: Answer<HistoryAnswer>,
    },
    /// Goes on with this conversation from the next start; replies whether that start is to come now.
    TakeOver {
        session: uuid::Uuid,
        reply: Answer<bool>,
    },
    Why {
        reply: Answer<Vec<Evidence>>,
    },
    /// The call that waits for a person, as the rules are asked about it.
    Asked {
        reply: Answer<Option<Ask>>,
    },
    /// Replies when a line of the output matches.
    AwaitOutput {
        pattern: Regex,
        reply: Answer<String>,
    },
    Terminal(TerminalRequest),
    /// New settings for the next start, and the rules of its role.
    Reconfigure {
        config: Arc<SlotConfig>,
        rules: Arc<dyn SlotRules>,
        /// The rules of the role that the program was seen to run in, if that is another one.
        running: Option<(String, Arc<dyn SlotRules>)>,
    },
    /// An event of the daemon that concerns this slot's log.
    Note(EventKind),
    /// Files of the slot were removed: they are made again from what is known.
    Restore,
    /// The daemon ends: stop the program, or leave it in its shim.
    Shutdown {
        keep: bool,
        done: oneshot::Sender<()>,
    },
}

#[derive(Debug, Clone)]
pub struct SlotHandle {
    commands: mpsc::Sender<SlotCommand>,
    status: watch::Receiver<SlotStatus>,
    /// Counts pieces of output, for those who wait for silence.
    pulse: watch::Receiver<u64>,
    /// Whether it has looked for a program that an earlier daemon left.
    looked: watch::Receiver<bool>,
    end: DaemonEnd,
    tokens: Arc<AtomicU64>,
}

impl SlotHandle {
    pub fn new(
        commands: mpsc::Sender<SlotCommand>,
        status: watch::Receiver<SlotStatus>,
        pulse: watch::Receiver<u64>,
        looked: watch::Receiver<bool>,
        end: DaemonEnd,
    ) -> SlotHandle {
        SlotHandle {
            commands,
            status,
            pulse,
            looked,
            end,
            tokens: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Returns when the slot knows whether a program of its own runs already.
    pub async fn has_looked(&self) {
        // A slot that is gone has nothing to find.
        let _ = self.looked.clone().wait_for(|looked| *looked).await;
    }

    /// How the slot stands now.
    pub fn status(&self) -> SlotStatus {
        self.status.borrow().clone()
    }

    /// Whether it was made at run time.
    pub fn is_session(&self) -> bool {
        self.status.borrow().session.is_some()
    }

    /// The processes that everything in the slot descends from: the shim and its program.
    pub fn pids(&self) -> impl Iterator<Item = i32> + use<> {
        let status = self.status.borrow();
        let pids = [status.shim_pid, status.pid];
        pids.into_iter().flatten().map(u32::cast_signed)
    }

    pub fn watch_status(&self) -> watch::Receiver<SlotStatus> {
        self.status.clone()
    }

    pub fn watch_output(&self) -> watch::Receiver<u64> {
        self.pulse.clone()
    }

    /// Puts an input to the machine and waits for its reply. One that is no longer waited for, because the
    /// client went away, is withdrawn.
    pub async fn ask(&self, make: impl FnOnce(Token) -> Input) -> Result<Reply, RpcError> {
        self.ask_within(None, make).await
    }

    /// The same for at most this long; then it is withdrawn, and the reply says how far it had come.
    pub async fn ask_within(
        &self,
        limit: Option<Duration>,
        make: impl FnOnce(Token) -> Input,
    ) -> Result<Reply, RpcError> {
        self.ask_until(after(limit), make).await
    }

    /// The same until `stop` has come.
    pub async fn ask_until(
        &self,
        stop: impl Future<Output = ()>,
        make: impl FnOnce(Token) -> Input,
    ) -> Result<Reply, RpcError> {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        let input = Box::new(make(token));
        self.send(SlotCommand::Machine {
            token,
            input,
            reply,
        })
        .await?;
        let mut guard = WithdrawOnDrop {
            commands: &self.commands,
            token: Some(token),
        };
        let answer = tokio::select! {
            answer = &mut answer => answer,
            () = stop => {
                self.send(SlotCommand::Withdraw(token)).await?;
                answer.await
            }
        };
        guard.token = None;
        answer.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Sends a command that carries its own reply, and waits for it.
    pub async fn request<T>(
        &self,
        make: impl FnOnce(Answer<T>) -> SlotCommand,
    ) -> Result<T, RpcError> {
        let (reply, answer) = oneshot::channel();
        self.send(make(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Attaches a terminal.
    pub async fn join(&self, viewer: Viewer) -> Result<Seat, RpcError> {
        self.request(|reply| SlotCommand::View(Viewing::Join { viewer, reply }))
            .await
    }

    pub async fn view(&self, viewing: Viewing) -> Result<(), RpcError> {
        self.send(SlotCommand::View(viewing)).await
    }

    pub async fn send(&self, command: SlotCommand) -> Result<(), RpcError> {
        let sent = self.commands.send(command).await;
        sent.map_err(|_| self.gone().trace(Trace::Untouched))
    }

    /// What is said to whoever waits for something that is no longer there.
    pub fn gone(&self) -> RpcError {
        let status = self.status();
        let text = match status.session {
            Some(session) => {
                let why = session
                    .leaving
                    .unwrap_or_else(|| "the daemon ends".to_owned());
                format!("the session {} has been closed: {why}", status.slot)
            }
            None if self.end.leaves() => {
                format!("the daemon ends, and {} runs on without it", status.slot)
            }
            None if self.end.has_begun() => "the daemon has ended".to_owned(),
            None => "the slot has been removed".to_owned(),
        };
        RpcError::new(Fault::Failed, text)
    }
}

async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

struct WithdrawOnDrop<'a> {
    commands: &'a mpsc::Sender<SlotCommand>,
    token: Option<Token>,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            // A full queue means that the machine answers soon anyway, to nobody.
            let _ = self.commands.try_send(SlotCommand::Withdraw(token));
        }
    }
}
