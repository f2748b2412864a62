//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle. The task does what
//! the machine says, and is the only place that writes keys to a shim; [`machine`] itself is pure.

mod adopt;
mod answer;
mod attach;
mod audience;
mod claims;
mod conversation;
mod handle;
mod hear;
mod history;
pub mod journal;
pub mod machine;
mod memory;
mod output;
mod owner;
mod press;
mod prompt;
pub mod record;
mod record_watch;
mod remains;
mod replay;
mod requests;
mod rotation;
mod session;
mod start;
mod strays;
mod stream;
mod task;
mod tell;
mod view;
mod vigil;
mod waiters;
mod witness;
mod world;

pub use attach::{Seat, Viewer, Viewing};
pub use claims::Claims;
pub use handle::{Command, SlotHandle};
pub use journal::Paths;
pub use output::Part;
pub use owner::running_process;
pub use remains::end_forgotten;
pub use requests::Request;
pub use session::{Typed, Wanted, exit_code};
pub use task::{Slot, start};
pub(crate) use witness::process_start;
pub use world::World;
