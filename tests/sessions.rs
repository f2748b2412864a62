//! Sessions, with the real daemon and real programs.

mod support;

#[path = "sessions/bad_input.rs"]
mod bad_input;
#[path = "sessions/commands.rs"]
mod commands;
#[path = "sessions/kinds.rs"]
mod kinds;
#[path = "sessions/life.rs"]
mod life;
#[path = "sessions/limits.rs"]
mod limits;
#[path = "sessions/output.rs"]
mod output;
#[path = "sessions/programs.rs"]
mod programs;
#[path = "sessions/restart.rs"]
mod restart;
#[path = "sessions/stage.rs"]
mod stage;
#[path = "sessions/subscriptions.rs"]
mod subscriptions;
#[path = "sessions/tools.rs"]
mod tools;
#[path = "sessions/typing.rs"]
mod typing;
