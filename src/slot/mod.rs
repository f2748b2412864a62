//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle. The task does what
//! the machine says, and is the only place that writes keys to a shim; [`crate::core::machine`] itself is pure.

mod adopt;
mod answer;
mod attach;
mod audience;
mod catch_up;
mod context;
mod conversation;
mod conversation_locks;
mod handle;
mod health;
mod hear;
mod history;
pub mod journal;
mod last_end;
mod link;
mod lookups;
mod memory;
mod memory_file;
mod output;
mod owner;
mod press;
mod probe;
mod prompt;
pub mod record;
mod remains;
mod removed;
mod replay;
mod requests;
mod rotation;
mod rules;
mod screen;
mod session;
mod shown;
mod start;
mod strays;
mod stream;
mod task;
mod tell;
mod view;
mod waiters;
mod witness;
mod writing;

pub use attach::{Seat, Viewer, Viewing};
pub use context::SlotContext;
pub use conversation_locks::ConversationLocks;
pub use handle::{Command, SlotHandle};
pub use journal::Paths;
pub use output::{Part, Wanted};
pub use owner::running_process;
pub use remains::end_forgotten;
pub use removed::{AskEverything, Launched, removed};
pub use requests::Request;
pub use rules::SlotRules;
pub use session::{Typed, exit_code};
pub use task::start;
pub(crate) use witness::process_start;
pub use writing::Writing;

use crate::core::claude::reading::Observer;
use crate::core::claude::transcript::Figures;
use crate::core::machine::{self, Machine, Reply, Sight, Token};
use crate::core::model::HistoryAnswer;
use crate::core::settings::SlotConfig;
use answer::Place;
use catch_up::CatchingUp;
use chrono::{DateTime, Utc};
use conversation_locks::ConversationLock;
use handle::Answer;
use health::HealthCheck;
use journal::Journal;
use last_end::LastEnd;
use link::Link;
use lookups::Lookups;
use memory_file::MemoryFile;
use probe::Probe;
use rotation::Rotation;
use rules::RuleBook;
use screen::Screen;
use session::Session;
use shown::Shown;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use stream::SoFar;
use witness::Witnesses;

/// The future that looks for the answer of the turn that has just ended.
type Search = Pin<Box<dyn Future<Output = (machine::Answer, Option<Figures>)> + Send>>;

/// Everything that the task of a slot owns. The files of this folder are its parts, and what the task does.
pub struct Slot {
    context: Arc<SlotContext>,
    /// The settings that the running program was started with.
    running: Arc<SlotConfig>,
    machine: Machine,
    rules: RuleBook,
    /// What has to be known before the program is started, on its way.
    probe: Option<Probe>,
    link: Link,
    screen: Screen,
    observer: Observer,
    journal: Journal,
    paths: Paths,
    memory: MemoryFile,
    started_at: Option<DateTime<Utc>>,
    last_end: LastEnd,
    witnesses: Witnesses,
    /// The conversation that its program has open.
    conversation_lock: Option<ConversationLock>,
    /// Where Claude Code would keep its records, found once for each program: it is asked for at every frame.
    records: Option<PathBuf>,
    so_far: SoFar,
    last_sight: Option<Sight>,
    shown: Shown,
    turn_began: Option<Place>,
    searching: Option<Search>,
    replies: HashMap<Token, Answer<Reply>>,
    /// Who asked for the conversation when its last answer was not in it yet, and how much of it.
    readers: Vec<(Option<usize>, Answer<HistoryAnswer>)>,
    lookups: Lookups,
    rotation: Rotation,
    health: HealthCheck,
    session: Option<Session>,
    /// The recording, while what was written before this connection is being read.
    catching: Option<Box<CatchingUp>>,
    /// The audit could not be written the last time, which was told.
    audit_fails: bool,
}

#[cfg(test)]
pub(crate) use rules::opinion;
