//! The daemon over HTTP on loopback: `missiond web`. It is a separate process and a client of the control socket like
//! any other, so that a malformed request can't reach the daemon, and a daemon without it costs nothing more.
//!
//! A request passes four checks, in this order: `guard` (is it for this host, and not from another page?), the kernel's
//! record of the connection (`server`: this user, outside all slots), `access` and `devices` (is the token valid?), and
//! the scope of the token against that of the request (`api`). The requests are those of the control socket, from the
//! same table; `openapi` describes them,
//! `events` streams events, `live` shows a screen (`socket` has what WebSockets need), `looking_back` the past, and `assets` has the page that uses them.

mod access;
mod api;
mod assets;
mod devices;
mod events;
mod guard;
mod live;
mod looking_back;
mod metrics;
mod openapi;
mod refusal;
mod server;
mod socket;

pub use access::CODE_LIFE;
pub use devices::{Device, Devices, PAIRING};
pub use openapi::openapi;
pub use server::{WebOptions, WebServer};
