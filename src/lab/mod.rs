//! Programs that replace others: a rehearsal of Claude Code without an account ([`rehearsal`]), and a demo with a
//! stand-in for Claude Code ([`demo`]). Only `doctor`, `demo` and the tests use them.

pub mod demo;
pub mod rehearsal;
