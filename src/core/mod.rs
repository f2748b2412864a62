//! The pure core: values in, values out. It uses no file system, no clock, no process and no runtime, so that every session can
//! be replayed and every behaviour tested without a machine around it. `tests/tidy.rs` enforces that.
//!
//! From bottom to top: [`text`] and [`terminal`], [`cast`] (the format of recordings), [`claude`] (everything known about Claude
//! Code), [`settings`] (what users configure), [`policy`], [`model`] (the types of the control socket), [`machine`] (a slot's
//! behaviour), [`alerts`] (what a person is called for), [`queue`] (which task goes to which slot) and [`timeline`] (looking
//! back).

pub mod alerts;
pub mod cast;
pub mod claude;
pub mod machine;
pub mod model;
pub mod policy;
pub mod queue;
pub mod settings;
pub mod terminal;
pub mod text;
pub mod timeline;
