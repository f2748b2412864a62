//! Programs that stand in for others: Claude Code with no account ([`rehearsal`]), and the first minute with a stand-in for
//! Claude Code ([`demo`]). Nothing else needs them but `doctor`, `demo` and the tests.

pub mod demo;
pub mod rehearsal;
