//! Tools for sessions: any program in its own terminal.

use super::McpServer;
use super::answer::{self, Told};
use crate::control::execute::environment_of_caller;
use crate::control::requests::{
    ClosePtyParams, ClosePtySession, CommandWords, ExecParams, ListPtyAnswer, ListPtySessions,
    LookParams, SessionInfo, SessionsParams, StdinParams, UnifiedExec, WriteStdin,
};
use crate::core::model::{Fault, RpcError, RunParams};
use crate::core::settings::limits::Limits;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The maximum tokens of one result: the daemon shortens longer output and keeps its head and tail.
const MAX_TOKENS: usize = 10_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecTool {
    /// One line for a shell, or a list: the program and its arguments.
    #[serde(alias = "cmd")]
    command: CommandWords,
    /// The working directory; default: the client's directory.
    #[serde(default, alias = "workdir")]
    cwd: Option<PathBuf>,
    /// The shell that runs the line; default: $SHELL.
    #[serde(default)]
    shell: Option<String>,
    /// The shell reads its profile first.
    #[serde(default)]
    login: bool,
    /// Variables in addition to the client's environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The command is ended after this many milliseconds.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// The command is ended when its processes use more bytes of memory than this.
    #[serde(default)]
    max_memory: Option<u64>,
    /// The kernel's limits for each process of the command.
    #[serde(default)]
    limits: Limits,
    #[serde(flatten)]
    look: LookParams,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListPty {}

#[tool_router(router = sessions_router, vis = "pub(super)")]
impl McpServer {
    /// Runs a command in its own terminal, waits a moment, and returns its output. If it still runs, `write_stdin` with
    /// its session_id types into it and returns the new output; `screen` shows a full-screen program. The session ends
    /// with this client.
    #[tool(annotations(
        title = "Run a command",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = false
    ))]
    async fn unified_exec(
        &self,
        Parameters(params): Parameters<ExecTool>,
        cancelled: CancellationToken,
    ) -> Told {
        let cwd = match directory(params.cwd) {
            Ok(cwd) => Some(cwd),
            Err(error) => return answer::fault(&error),
        };
        let mut env = environment_of_caller();
        env.extend(params.env);
        let run = RunParams {
            cwd,
            shell: params.shell,
            login: params.login,
            env,
            env_clear: true,
            owner: Some(owner()),
            owner_pid: Some(std::process::id()),
            timeout_ms: params.timeout_ms,
            max_memory: params.max_memory,
            limits: params.limits,
            with_connection: false,
        };
        let request = ExecParams {
            command: params.command,
            run,
            look: bounded(params.look),
        };
        self.tell::<UnifiedExec>(request, cancelled, |told| answer::whole(&told))
            .await
    }

    /// Types into a running command, waits a moment, and returns the output since the last call.
    #[tool(annotations(
        title = "Type into a command",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = false
    ))]
    async fn write_stdin(
        &self,
        Parameters(params): Parameters<StdinParams>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = StdinParams {
            look: bounded(params.look),
            ..params
        };
        self.tell::<WriteStdin>(request, cancelled, |told| answer::whole(&told))
            .await
    }

    /// Ends a command and closes its terminal.
    #[tool(annotations(
        title = "Close a session",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true
    ))]
    async fn close_pty_session(
        &self,
        Parameters(params): Parameters<ClosePtyParams>,
        cancelled: CancellationToken,
    ) -> Told {
        self.tell::<ClosePtySession>(params, cancelled, |told| answer::whole(&told))
            .await
    }

    /// Shows the sessions of this client: command, directory, whether it runs, and its exit code.
    #[tool(annotations(title = "Sessions", read_only_hint = true))]
    async fn list_pty_sessions(
        &self,
        Parameters(ListPty {}): Parameters<ListPty>,
        cancelled: CancellationToken,
    ) -> Told {
        let own = SessionsParams {
            owner: Some(owner()),
        };
        self.tell::<ListPtySessions>(own, cancelled, |ListPtyAnswer { sessions, .. }| {
            let sessions: Vec<Value> = sessions.iter().map(in_short).collect();
            answer::json(&json!({"success": true, "sessions": sessions}))
        })
        .await
    }
}

/// The owner of this client's sessions, which end with the client.
fn owner() -> String {
    format!("orchestrator:mcp-{}", std::process::id())
}

/// The working directory; a relative one is below the directory of this process, which is the client's.
fn directory(named: Option<PathBuf>) -> Result<PathBuf, RpcError> {
    match (std::env::current_dir(), named) {
        (Ok(own), Some(named)) => Ok(own.join(named)),
        (Ok(own), None) => Ok(own),
        (Err(_), Some(named)) if named.is_absolute() => Ok(named),
        (Err(error), _) => {
            let text = format!("the directory of this server is unknown: {error}");
            Err(RpcError::new(Fault::Usage, text).next("name one: `cwd`"))
        }
    }
}

fn bounded(look: LookParams) -> LookParams {
    let most = look.max_tokens.unwrap_or(MAX_TOKENS).min(MAX_TOKENS);
    LookParams {
        max_tokens: Some(most),
        ..look
    }
}

fn in_short(session: &SessionInfo) -> Value {
    json!({
        "session_id": session.id,
        "command": session.command,
        "cwd": session.cwd,
        "running": session.is_alive,
        "exit_code": session.exit_code,
        "uptime_s": session.uptime,
    })
}
