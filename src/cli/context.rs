//! What every verb gets: the flags, the output, and the way to the daemon.

use crate::cli::failure::Failure;
use crate::cli::flags::Flags;
use crate::cli::out::Out;
use crate::cli::steps;
use crate::cli::target::{self, Target};
use crate::control::client::{CallError, Client};
use crate::control::requests::Method;
use crate::os::paths::Env;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// A daemon answers a question about what it knows at once; past this it is stuck, and that is worth saying.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Context {
    pub flags: Flags,
    pub env: Env,
    pub out: Out,
}

impl Context {
    pub fn new(flags: Flags) -> Context {
        let out = Out {
            json: flags.json,
            quiet: flags.quiet,
        };
        let mut context = Context {
            flags,
            env: Env::of_process(),
            out,
        };
        let socket = context.named_socket();
        context.env.socket = socket.map(|socket| context.env.cwd.join(socket));
        context
    }

    /// The socket that the person named, by flag or environment.
    pub fn named_socket(&self) -> Option<PathBuf> {
        let variable = || std::env::var_os("MISSIOND_SOCKET").filter(|value| !value.is_empty());
        let flag = self.flags.socket.clone();
        flag.or_else(|| variable().map(PathBuf::from))
    }

    /// The flag by which the person named the daemon, for the commands that are told as next steps.
    pub fn target(&self) -> String {
        steps::target(&self.flags)
    }

    /// The config that the person named, by flag or environment.
    pub fn named_config(&self) -> Option<&Path> {
        let flag = self.flags.config.as_deref();
        flag.or(self.env.config.as_deref())
    }

    /// Connects to the daemon that the flags mean.
    pub async fn connect(&self) -> Result<Client, Failure> {
        self.connect_to(target::find(self).await?).await
    }

    /// The same for those who make sessions, which need no config: a daemon is started where there is none.
    pub async fn connect_for_sessions(&self) -> Result<Client, Failure> {
        self.connect_to(target::find_for_sessions(self).await?)
            .await
    }

    pub async fn connect_to(&self, target: Target) -> Result<Client, Failure> {
        let mut client = self.try_target(&target).await;
        if matches!(client, Err(CallError::NotRunning(_))) {
            target::made_again(self, &target.socket).await?;
            client = self.try_target(&target).await;
        }
        client.map_err(|error| target::unreached(self, error))
    }

    /// The same, for whoever knows what to do about a failure.
    pub async fn try_target(&self, target: &Target) -> Result<Client, CallError> {
        if self.flags.verbose > 0 {
            let socket = target.socket.display();
            self.out.note(format!("talking to {socket}"));
        }
        Client::connect_to(&target.socket, &target.wanted).await
    }

    /// A question that the daemon answers from what it knows.
    pub async fn ask<M: Method>(&self, params: M::Params) -> Result<M::Answer, Failure> {
        self.ask_within::<M>(params, Some(ANSWER_LIMIT)).await
    }

    /// A request that takes as long as the slots need; `limit` is for a daemon that never answers.
    pub async fn ask_within<M: Method>(
        &self,
        params: M::Params,
        limit: Option<Duration>,
    ) -> Result<M::Answer, Failure> {
        Ok(call::<M>(&mut self.connect().await?, params, limit).await?)
    }

    /// A request that makes a session.
    pub async fn ask_for_session<M: Method>(
        &self,
        params: M::Params,
        limit: Duration,
    ) -> Result<M::Answer, Failure> {
        let mut client = self.connect_for_sessions().await?;
        Ok(call::<M>(&mut client, params, Some(limit)).await?)
    }
}

/// Asks on this connection; `limit` is for a daemon that never answers.
pub async fn call<M: Method>(
    client: &mut Client,
    params: M::Params,
    limit: Option<Duration>,
) -> Result<M::Answer, CallError> {
    let Some(limit) = limit else {
        return client.call::<M>(params).await;
    };
    let answer = tokio::time::timeout(limit, client.call::<M>(params)).await;
    answer.unwrap_or(Err(CallError::Silent(limit)))
}

/// Waits for an answer until the person presses Ctrl-C; `left` says what goes on without them.
pub async fn unless_interrupted<T>(
    answer: impl Future<Output = Result<T, Failure>>,
    left: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    tokio::select! {
        answer = answer => answer,
        _ = tokio::signal::ctrl_c() => Err(left()),
    }
}

/// Client verbs wait for one thing at a time: one thread is enough.
pub fn block_on<T>(verb: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?;
    // Behind a pointer, the event loop is compiled once and not for each verb.
    let verb: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(verb);
    let ended = runtime.block_on(verb);
    // A thread that still reads standard input would keep the process until a line comes.
    runtime.shutdown_background();
    ended
}
