//! The pure core: values in, values out. It names no file system, no clock, no process and no runtime, so that every session
//! can be replayed and every behaviour be tested without a machine around it. `tests/tidy.rs` holds it to that.
//!
//! From below to above: [`text`] and [`terminal`], [`cast`] (the format of recordings), [`claude`] (all that is known of
//! Claude Code), [`settings`] (what people configure), [`policy`], [`model`] (what the daemon and its clients tell each
//! other), [`machine`] (a slot's behaviour) and [`queue`] (which task goes to which slot).

pub mod cast;
pub mod claude;
pub mod machine;
pub mod model;
pub mod policy;
pub mod queue;
pub mod settings;
pub mod terminal;
pub mod text;
