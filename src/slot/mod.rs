//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle. The task does what
//! the machine says, and is the only place that writes keys to a shim; [`crate::core::machine`] itself is pure.

mod adopt;
mod answer;
mod attach;
mod audience;
mod catch_up;
mod claude;
mod clients;
mod context;
mod conversation;
mod conversation_locks;
mod handle;
mod health;
mod history;
mod inbound;
pub mod journal;
mod last_end;
mod link;
mod log;
mod lookups;
mod memory;
mod memory_file;
mod orphan_processes;
mod orphans;
mod outbound;
mod output;
mod owner;
mod press;
mod probe;
mod program;
mod prompt;
pub mod record;
mod removed;
mod replay;
mod requests;
mod rotation;
mod rules;
mod screen;
mod session;
mod shown;
mod start;
mod stream;
mod task;
mod view;
mod waiters;
mod witness;
mod writing;

pub use attach::{Seat, Viewer, Viewing};
pub use context::SlotContext;
pub use conversation_locks::ConversationLocks;
pub use handle::{SlotCommand, SlotHandle};
pub use journal::SlotPaths;
pub use orphans::end_forgotten;
pub use output::{OutputPart, WantedOutput};
pub use owner::running_process;
pub use removed::{AskEverything, Launched, removed};
pub use requests::TerminalRequest;
pub use rules::SlotRules;
pub use session::{TypedCommand, exit_code};
pub use task::start;
pub(crate) use witness::process_start;
pub use writing::Writing;

use crate::core::machine::Machine;
use catch_up::CatchingUp;
use claude::Claude;
use clients::Clients;
use health::HealthCheck;
use link::Link;
use log::SlotLog;
use lookups::Lookups;
use memory_file::MemoryFile;
use program::SlotProgram;
use rules::RuleBook;
use screen::Screen;
use session::PlainSession;
use shown::PublishedStatus;
use std::sync::Arc;

/// Everything that the task of a slot owns. The files of this folder are its parts, and what the task does.
pub struct Slot {
    context: Arc<SlotContext>,
    program: SlotProgram,
    machine: Machine,
    rules: RuleBook,
    link: Link,
    screen: Screen,
    log: SlotLog,
    memory: MemoryFile,
    claude: Claude,
    shown: PublishedStatus,
    clients: Clients,
    lookups: Lookups,
    health: HealthCheck,
    session: Option<PlainSession>,
    /// The recording, while what was written before this connection is being read.
    catching: Option<Box<CatchingUp>>,
}

#[cfg(test)]
pub(crate) use rules::opinion;
