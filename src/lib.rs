//! missiond: a semantic terminal supervisor for Claude Code slots.

pub mod config;
pub mod control;
pub mod diagnostic;
pub mod keys;
pub mod policy;
pub mod reading;
pub mod shim;
pub mod terminal;
