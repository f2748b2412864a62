//! How people and programs reach the daemon: JSON-RPC 2.0, one object per line, on a unix socket.

pub mod client;
pub mod envelope;
pub mod protocol;
