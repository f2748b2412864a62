//! The daemon over HTTP on loopback: `missiond web`. It is a process of its own and a client of the control socket like
//! any other, so that nothing of the daemon is in reach of a malformed request, and a daemon without it costs nothing more.
//!
//! A request passes four checks, in this order: `guard` (is it for this host, and not from another page?), the kernel's
//! word on who is connected (`server`: this user, outside of all slots), `access` (whose token is it?), and the scope of
//! the token against that of the request (`api`). The requests are those of the control socket, by the same table;
//! `openapi` describes them, `events` streams what happens, and `assets` has the page that uses them.

mod access;
mod api;
mod assets;
mod events;
mod guard;
mod openapi;
mod refusal;
mod server;

pub use access::CODE_LIFE;
pub use openapi::openapi;
pub use server::{WebOptions, WebServer};
