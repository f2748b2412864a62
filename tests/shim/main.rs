//! The shim, driven through the real binary as the daemon drives it.

mod end;
mod hanging;
mod stage;
mod start;
mod survival;
mod talk;

#[path = "../support/mod.rs"]
mod support;
