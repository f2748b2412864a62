//! missiond: a semantic terminal supervisor for Claude Code slots.
//!
//! ```text
//!  claude ◀─▶ pty ◀─▶ shim ── one small process per slot: owns the PTY, drains it into the recording
//!                      │ ▲
//!         unix socket  │ │      ┌───────── slot: one task in the daemon owns everything in this box ─────────┐
//!                      ▼ └keys◀─┤                                                                            │
//!                     bytes ─▶ terminal ─Frame─▶ reading ─Sight─▶ machine ─Ask─▶ policy                      │
//!                               │                                  │  ▲            │                         │
//!                               │              keys ◀── Effect::Press └──Verdict───┘                         │
//!                               │                                  └─▶ Effect::Tell ─▶ journal, audit, events│
//!                               └──────────────────────▲─────────────────────────────────────────────────────┘
//!  hooks of Claude Code ─▶ missiond hook ─▶ control::server ─┤ evidence, and the gate before each tool call
//!  missiond send|confirm|… ─▶ control::client ═ unix socket, JSON lines ═▶ control::dispatch ─▶ SlotHandle
//! ```
//! Data goes one way round. Nothing reaches back.
//!
//! # What always holds
//! 1. One owner for each fact. A slot's state lives in its task; everybody else has a handle.
//! 2. An automatic answer goes only to a dialog that is whole on the screen and has stood still, read again just
//!    before the key is written, once per dialog. A person's answer carries the id of the dialog that was seen; if
//!    another one is up, it is refused and no key is sent.
//! 3. Options are chosen by label, never by position. Unknown means ask: no rule, an unknown dialog, a cut-off
//!    command never lead to a guessed key.
//! 4. Interrupt and stop never wait behind a send.
//! 5. Every queue, buffer, loop, log and history has a bound, with its reason beside the number; a slow listener is
//!    dropped and told so.
//! 6. Nothing that a tool, a model or a file prints can make missiond press a key.
//! 7. The recording is the truth: what the child wrote is in it, whatever the daemon does, and the daemon can be
//!    killed at any moment and pick up from it.
//! 8. A reading is taken at the end of a marked frame, else after 20 ms of silence in *recorded* time, so that a
//!    replay reads what the live slot read.
//!
//! # Where things are, and what they may touch
//! Pure (no IO, no clock, no runtime; `tests/tidy.rs` holds this): [`terminal`], [`recording`], [`reading`],
//! [`keys`], [`policy`] (but for `real_paths`), [`slot::machine`], [`transcript`], [`secrets`],
//! [`control::protocol`], [`control::envelope`] and what plans in [`tasks`]. So any session can be replayed, and
//! every fault found in the field becomes a recording in `tests/`.
//!
//! At the edges: [`config`] and [`paths`] (files that people write, and where things lie), [`launch`] (what a slot
//! is started with), [`shim`] (the PTY; the only module that names portable-pty), [`slot`] (the task), [`daemon`],
//! [`control`] (the socket), [`tasks`] (work that waits for a slot or a session), [`hook`] (what Claude Code runs),
//! [`audit`] and [`slot::journal`] (what is written down), [`mcp`] (the daemon as tools), [`embed`] (the daemon in
//! another program), [`rehearsal`] (Claude Code with no account), [`demo`] (the first minute, and a stand-in for
//! Claude Code), [`cli`] (one verb per file).

pub mod audit;
mod blocking;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod diagnostic;
pub mod dollars;
pub mod embed;
pub mod events;
pub mod excerpt;
pub mod files;
mod headroom;
mod hex;
pub mod hook;
pub mod keys;
pub mod launch;
pub mod log_file;
pub mod mcp;
pub mod network;
pub mod notify;
pub mod paths;
pub mod pause;
pub mod policy;
mod process_stat;
pub mod quoting;
pub mod reading;
pub mod recording;
pub mod redraw;
pub mod rehearsal;
pub mod secrets;
pub mod sends;
pub mod shim;
pub mod slot;
pub mod socket;
pub mod tasks;
pub mod terminal;
pub mod transcript;
pub mod trusted_file;
pub mod usage;
pub mod worktree;
