//! What Claude Code runs at its hooks: one JSON in, one answer out; any doubt is exit 2, which blocks.

mod event;

pub use event::{HookEvent, HookWhat};
