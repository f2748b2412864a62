//! How people and programs reach the daemon: JSON-RPC 2.0, one object per line, on a unix socket. `server` (with
//! `listening`, for those who follow events) and `client` (with `identity`, the check of who answers) touch the socket,
//! `peer` the table of processes; `protocol`, `envelope`, `permission` and `kinds` are pure, and
//! `dispatch` knows slots only by their handles.

pub mod attach;
pub mod client;
pub mod dispatch;
pub mod envelope;
pub mod identity;
pub mod kinds;
mod listening;
pub mod peer;
pub mod permission;
pub mod protocol;
pub mod server;
mod tails;
