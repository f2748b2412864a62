//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle.

pub mod journal;
pub mod machine;
