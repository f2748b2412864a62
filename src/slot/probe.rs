//! What has to be known before a program is started: whether its directory and its file are there, and which version of
//! Claude Code it is. Finding that out takes seconds at worst (git makes a worktree, a program does not say its version)
//! and may hang on a file system that does not answer, so the slot's task does not wait for it.

use super::context::SlotContext;
use super::conversation::{KeptConversation, WantedConversation};
use super::start::NotStarted;
use crate::core::claude::Version;
use crate::core::machine::Cause;
use crate::core::settings::SlotConfig;
use crate::launch::{self, NoVersion};
use crate::os::blocking;
use crate::os::worktree;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// A probe on its way. Dropping it cancels the start.
pub(super) type Probe = Pin<Box<dyn Future<Output = Result<Probed, NotStarted>> + Send>>;

/// What was found out.
pub(super) struct Probed {
    pub program: PathBuf,
    pub env: Vec<(String, String)>,
    /// If it is Claude Code.
    pub claude: Option<ProbedClaude>,
}

/// What was found out of Claude Code.
pub(crate) struct ProbedClaude {
    /// Its version, or why that is not known.
    pub version: Result<Version, NoVersion>,
    /// The conversation that it is to go on with.
    pub conversation: Option<KeptConversation>,
    /// The status line that a person has set, if missiond has to set another one.
    pub status_line: Option<Value>,
}

/// That Claude Code is to be probed, and the conversation that it is to go on with, if it is to be none that is new.
pub(crate) struct WantedClaude(pub Option<WantedConversation>);

pub(super) async fn probe(
    config: Arc<SlotConfig>,
    context: Arc<SlotContext>,
    env: Vec<(String, String)>,
    claude: Option<WantedClaude>,
) -> Result<Probed, NotStarted> {
    make_worktree(&config, &context).await?;
    let program = find_program(config.clone(), &env).await?;
    let claude = match claude {
        Some(WantedClaude(conversation)) => {
            Some(probe_claude(config, &program, &env, conversation).await?)
        }
        None => None,
    };
    Ok(Probed {
        program,
        env,
        claude,
    })
}

async fn probe_claude(
    config: Arc<SlotConfig>,
    program: &Path,
    env: &[(String, String)],
    conversation: Option<WantedConversation>,
) -> Result<ProbedClaude, NotStarted> {
    let args = &config.command[1..];
    let version = launch::installed_version(program, args, env, &config.cwd).await;
    let (conversation, status_line) = look_at_home(config, env.to_vec(), conversation).await?;
    Ok(ProbedClaude {
        version,
        conversation,
        status_line,
    })
}

/// What Claude Code has of the conversation, and what it shows at its status line.
async fn look_at_home(
    config: Arc<SlotConfig>,
    env: Vec<(String, String)>,
    conversation: Option<WantedConversation>,
) -> Result<(Option<KeptConversation>, Option<Value>), NotStarted> {
    let look = move || {
        let project = config.project_settings.then_some(config.cwd.as_path());
        let counts = config.supervision.counts_cost();
        let status_line = counts.then(|| launch::own_status_line(&env, project));
        (
            conversation.map(|wanted| wanted.look()),
            status_line.flatten(),
        )
    };
    let looked = blocking::run(look).await;
    looked.map_err(|error| NotStarted::new(Cause::Failed, error))
}

/// Git is not stopped half way where the start is cancelled: it would leave half a worktree.
async fn make_worktree(config: &SlotConfig, context: &SlotContext) -> Result<(), NotStarted> {
    let Some(repository) = config.worktree_of.clone() else {
        return Ok(());
    };
    let name = config.name.clone();
    let root = worktree::root(&context.worktrees, &context.name, &repository, &name);
    let making = tokio::spawn(async move { worktree::ensure(&root, &repository, &name).await });
    let made = making.await.unwrap_or_else(|error| Err(error.to_string()));
    made.map_err(|error| NotStarted::new(Cause::BadSettings, error))
}

async fn find_program(
    config: Arc<SlotConfig>,
    env: &[(String, String)],
) -> Result<PathBuf, NotStarted> {
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.clone());
    let look = move || {
        launch::check_cwd(&config.cwd)
            .map_err(|error| NotStarted::new(Cause::BadSettings, error))?;
        launch::resolve_program(&config.command[0], path.as_deref(), &config.cwd)
            .map_err(NotStarted::missing)
    };
    let looked = blocking::run(look).await;
    looked.unwrap_or_else(|error| Err(NotStarted::new(Cause::Failed, error)))
}
