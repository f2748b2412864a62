//! Claude Code without an account: a scripted Messages API on loopback, and a temporary home to run an installed
//! `claude` in. The tests and `missiond doctor --rehearse` use both. It listens on loopback only, and writes below the
//! directory for temporary files; [`crate::launch::rehearsed`] stores the result of a rehearsal.

mod actor;
mod conversation;
mod endpoint;
mod home;
mod hooks;
mod house;
mod http;
mod play;
mod scenes;
mod script;
mod sse;

pub use actor::Actor;
pub use endpoint::{Endpoint, EndpointRequest};
pub use home::{Home, HomeOptions};
pub use play::{Company, SceneOutcome, SceneProgress, SceneVerdict, failed, holds, rehearse};
pub use script::{ErrorStep, ModelScript, Step, TextStep, ToolCall};
