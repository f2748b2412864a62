//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle. The task does what
//! the machine says, and is the only place that writes keys to a shim; [`crate::core::machine`] itself is pure.

mod adopt;
mod answer;
mod attach;
mod audience;
mod catch_up;
mod claude;
mod claude_slot;
mod clients;
mod context;
mod conversation;
mod conversation_locks;
mod daemon_end;
mod entered;
mod handle;
mod health;
mod history;
mod hooks;
mod inbound;
pub mod journal;
mod keyboard;
mod kind;
mod last_end;
mod link;
mod log;
mod lookups;
mod memory;
mod memory_file;
pub mod once;
mod orphan_processes;
mod orphans;
mod outbound;
mod output;
mod press;
mod probe;
mod program;
mod removed;
mod replay;
mod requests;
mod role_costs;
mod rotation;
mod rules;
mod screen;
mod shown;
mod start;
mod stream;
mod task;
mod view;
mod waiters;
mod witness;
mod writing;

pub(crate) use adopt::shim_lost;
pub use attach::{KeyboardRequest, Seat, Viewer, Viewing};
pub(crate) use claude::Claude;
pub use context::{AcrossSlots, SlotContext, sessions_dir};
pub use conversation_locks::ConversationLocks;
pub use daemon_end::DaemonEnd;
pub(crate) use handle::Answer;
pub use handle::{MAX_COMMANDS, SlotCommand, SlotHandle};
pub use journal::SlotPaths;
pub(crate) use kind::ProgramKind;
pub use memory::{has_conversations, transcripts_of};
pub(crate) use orphan_processes::OrphansFound;
pub use orphans::end_forgotten;
pub use output::{OutputPart, WantedOutput};
pub use removed::{AskEverything, Launched, removed};
pub use requests::{TerminalRequest, TypedCommand};
pub use rules::SlotRules;
pub(crate) use task::until;
pub(crate) use witness::process_start;
pub use writing::Writing;

use crate::core::machine::Machine;
use crate::core::model::ExitReport;
use crate::core::settings::SlotConfig;
use crate::os::blocking::Worker;
use catch_up::CatchingUp;
use clients::Clients;
use health::HealthCheck;
use link::Link;
use log::SlotLog;
use lookups::Lookups;
use memory_file::MemoryFile;
use program::SlotProgram;
use role_costs::RoleCostWatch;
use rules::RuleBook;
use screen::Screen;
use shown::PublishedStatus;
use std::path::Path;
use std::sync::Arc;

/// Everything that the task of a slot owns. The files of this folder are its parts, and what the task does for programs of
/// either kind; `own` is what it knows of one that is of kind `K`.
pub(crate) struct Slot<K> {
    context: Arc<SlotContext>,
    program: SlotProgram,
    machine: Machine,
    rules: RuleBook,
    link: Link,
    screen: Screen,
    log: SlotLog,
    memory: MemoryFile,
    own: K,
    shown: PublishedStatus,
    clients: Clients,
    lookups: Lookups,
    health: HealthCheck,
    role_costs: RoleCostWatch,
    /// The recording, while what was written before this connection is being read.
    catching: Option<Box<CatchingUp>>,
}

/// What a kind of program may use of the parts.
impl<K> Slot<K> {
    pub(crate) fn own(&self) -> &K {
        &self.own
    }

    pub(crate) fn own_mut(&mut self) -> &mut K {
        &mut self.own
    }

    pub(crate) fn context(&self) -> &SlotContext {
        &self.context
    }

    /// The settings that the program was started with.
    pub(crate) fn settings(&self) -> &SlotConfig {
        self.program.settings()
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    pub(crate) fn screen_mut(&mut self) -> &mut Screen {
        &mut self.screen
    }

    pub(crate) fn recording(&self) -> &Path {
        &self.log.paths().recording
    }

    /// Work on files of the slot; nobody waits for a disk that does not answer.
    pub(crate) fn disk(&self) -> &Worker {
        self.memory.disk()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_open()
    }

    /// Its program ended before this daemon began, or is taken to have; how it did is in the report, if that is known.
    pub(crate) fn recall_end(&mut self, report: Option<ExitReport>, why: Option<String>) {
        self.machine.recall_end(why);
        if let Some(report) = report {
            self.program.last_end_mut().recall(report);
        }
    }
}

#[cfg(test)]
pub(crate) use rules::opinion;
