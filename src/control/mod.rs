//! How people and programs reach the daemon: JSON-RPC 2.0, one object per line, on a unix socket.

pub mod attach;
pub mod client;
pub mod dispatch;
pub mod envelope;
pub mod peer;
pub mod permission;
pub mod protocol;
pub mod server;
mod tails;
