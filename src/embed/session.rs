//! A handle to one session.

use super::Supervisor;
use crate::control::requests::{
    Info, OutputParams, SessionInfo, Type, TypeAnswer, TypeParams, Wait, WaitParams, Write,
    WriteParams,
};
use crate::core::model::{OneSlot, RpcError};

/// A program in its own terminal. Dropping this handle does not end it; [`Session::close`] does.
///
/// ```no_run
/// # async fn example(supervisor: &missiond::embed::Supervisor) -> Result<(), missiond::core::model::RpcError> {
/// use missiond::core::model::SpawnParams;
///
/// // The user's shell, which marks the end of each command.
/// let shell = supervisor.open(SpawnParams::default()).await?;
/// let built = shell.run("cargo build").await?;
/// if built.exit_code != Some(0) {
///     eprintln!("{}", built.output.unwrap_or_default());
/// }
/// shell.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Session<'a> {
    supervisor: &'a Supervisor,
    id: String,
}

impl<'a> Session<'a> {
    pub(super) fn new(supervisor: &'a Supervisor, id: String) -> Session<'a> {
        Session { supervisor, id }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// All details, as `missiond session info` shows them.
    pub async fn info(&self) -> Result<SessionInfo, RpcError> {
        let slot = self.id.clone();
        self.supervisor.call::<Info>(OneSlot { slot }).await
    }

    /// Runs a command in a bash or zsh, and returns its output and its exit code.
    pub async fn run(&self, line: &str) -> Result<TypeAnswer, RpcError> {
        self.enter(line, true).await
    }

    /// Types a line with Enter, without waiting.
    pub async fn type_line(&self, line: &str) -> Result<(), RpcError> {
        self.enter(line, false).await.map(drop)
    }

    async fn enter(&self, line: &str, wait: bool) -> Result<TypeAnswer, RpcError> {
        let params = TypeParams {
            slot: self.id.clone(),
            text: line.to_owned(),
            wait,
            quiet_ms: None,
            until_prompt: None,
            timeout_ms: None,
        };
        self.supervisor.call::<Type>(params).await
    }

    /// Writes bytes unchanged.
    pub async fn write(&self, bytes: impl Into<Vec<u8>>) -> Result<(), RpcError> {
        let params = WriteParams {
            slot: self.id.clone(),
            bytes: bytes.into(),
            into_dialog: false,
            keyboard: None,
        };
        self.supervisor.call::<Write>(params).await.map(drop)
    }

    /// Waits until a line of its output matches, and returns that line.
    pub async fn wait_for(&self, regex: &str) -> Result<String, RpcError> {
        let params = WaitParams {
            slot: self.id.clone(),
            output: Some(regex.to_owned()),
            ..WaitParams::default()
        };
        let answer = self.supervisor.call::<Wait>(params).await?;
        Ok(answer.matched.unwrap_or_default())
    }

    /// Waits until it has ended, and returns its exit code, or `None` if a signal ended it.
    pub async fn wait(&self) -> Result<Option<i32>, RpcError> {
        let params = WaitParams {
            slot: self.id.clone(),
            exit: true,
            ..WaitParams::default()
        };
        Ok(self.supervisor.call::<Wait>(params).await?.exit_code)
    }

    /// All kept output, as plain text.
    pub async fn output(&self) -> Result<String, RpcError> {
        let params = OutputParams {
            slot: self.id.clone(),
            ..OutputParams::default()
        };
        let mut client = self.supervisor.dial().await?;
        let written = client.whole_output(params).await?.text;
        Ok(crate::core::terminal::plain(written.as_bytes()))
    }

    /// Ends the session and removes its data.
    pub async fn close(self) -> Result<(), RpcError> {
        self.supervisor.close(&self.id).await
    }
}
