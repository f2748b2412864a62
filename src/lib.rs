//! missiond: a semantic terminal supervisor for Claude Code slots.

pub mod audit;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod diagnostic;
pub mod events;
pub mod files;
pub mod hook;
pub mod keys;
pub mod launch;
pub mod paths;
pub mod policy;
pub mod reading;
pub mod recording;
pub mod rehearsal;
pub mod secrets;
pub mod shim;
pub mod slot;
pub mod terminal;
pub mod transcript;
