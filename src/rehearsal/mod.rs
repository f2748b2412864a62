//! Claude Code without an account: a scripted Messages API on loopback and a throw-away home to run an
//! installed `claude` in. The tests and `missiond doctor --rehearse` stand on the same ground.

mod conversation;
mod endpoint;
mod home;
mod http;
mod script;
mod sse;

pub use endpoint::{Endpoint, Request};
pub use home::{Home, HomeOptions};
pub use script::{Step, ToolCall};
