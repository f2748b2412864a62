//! missiond: a semantic terminal supervisor for Claude Code slots.
//!
//! ```text
//!  claude ◀─▶ pty ◀─▶ shim ── one small process per slot: owns the PTY, drains it into the recording
//!                      │ ▲
//!         unix socket  │ │      ┌───────── slot: one task in the daemon owns everything in this box ─────────┐
//!                      ▼ └keys◀─┤                                                                            │
//!                     bytes ─▶ terminal ─Frame─▶ reading ─Observation─▶ machine ─Ask─▶ policy                │
//!                               │                                  │  ▲            │                         │
//!                               │              keys ◀── Effect::Press └──Verdict───┘                         │
//!                               │                                  └─▶ Effect::Tell ─▶ journal, audit, events│
//!                               └──────────────────────▲─────────────────────────────────────────────────────┘
//!  hooks of Claude Code ◀─▶ missiond hook ◀─▶ control::server ┤ evidence, and the gate before each tool call: in a slot
//!                                                            │ whose hooks are heard, the automatic yes is the answer to the
//!                                                            │ hook, and no key
//!  missiond send|confirm|… ─▶ control::client ═ unix socket, JSON lines ═▶ control::dispatch ─▶ SlotHandle
//! ```
//! Data goes one way round. Nothing reaches back.
//!
//! # What always holds
//! 1. One owner for each fact. A slot's state lives in its task; everybody else has a handle.
//! 2. An automatic answer goes only to a dialog that is whole on the screen and has stood still, read again just
//!    before the key is written, once per dialog. A person's answer carries the id of the dialog that was seen; if
//!    another one is up, it is refused and no key is sent.
//! 3. Options are chosen by label, never by position; a no to a permission dialog is Esc, whatever its labels say.
//!    Unknown means ask: no rule, an unknown dialog, a cut-off command never lead to a guessed key.
//! 4. Interrupt and stop never wait behind a send.
//! 5. Every queue, buffer, loop, log and history has a bound, with its reason beside the number; a slow listener is
//!    dropped and told so.
//! 6. Nothing that a tool, a model or a file prints can make missiond press a key.
//! 7. The recording is the truth: what the child wrote is in it, whatever the daemon does, and the daemon can be
//!    killed at any moment and pick up from it.
//! 8. A reading is taken at the end of a marked frame, in a burst of them once in 5 ms, else after 20 ms of silence, all in
//!    *recorded* time, so that a replay reads what the live slot read. Only rows that were drawn are read again; just before
//!    a key all of them are.
//!
//! # Where things are
//! From below to above. A module names only what is below it; `tests/tidy.rs` has the table.
//!
//! - [`core`]: pure, with no IO, no clock and no runtime, so that any session can be replayed and every fault found in the
//!   field becomes a recording in `tests/`. Its parts: `text`, `terminal`, `cast` (recordings), `claude` (all that is known of
//!   Claude Code), `settings`, `policy`, `model` (statuses, events, errors), `machine` (a slot's behaviour), `alerts` (what a
//!   person is called for), `queue` (tasks), `timeline` (looking back).
//! - [`os`]: files, paths, sockets, processes, control groups.
//! - [`hook`]: what Claude Code runs at its hooks.
//! - [`events`], [`audit`]: the event bus and the audit file. [`push`]: messages to people by HTTP.
//! - [`config`]: slots.toml and policies/ on the disk. [`launch`]: what a slot's program is started with.
//! - [`shim`]: the process that owns a PTY; the only module that names portable-pty.
//! - [`slot`]: the task of one slot, with what it does for Claude Code. [`session`]: what it does for any other program.
//!   [`daemon`]: all of them by name, tasks, alerts, reload.
//! - [`lookback`]: what slots did and showed, from their files. [`control`]: the socket, its server and its client, and a file for each request.
//! - [`mcp`], [`web`], [`embed`], [`cli`]: the ways in for models, for browsers, for programs and for people. [`lab`]: stand-ins for Claude Code.
//!
//! # Words
//! - *slot*: a named Claude Code (or another program) that the configuration describes; its program may end and be started again.
//! - *session*: a program that was started at run time and is in no configuration.
//! - *shim*: the small process that owns the PTY of one slot and outlives the daemon.
//! - *recording*: the file that has every byte the program wrote, with its time.
//! - *frame*: a moment at which the screen is whole. *reading*: what a frame shows. *state*: what the slot does, by its readings.
//! - *composer*: the input box of Claude Code. *draft*: what stands in it.
//! - *dialog*: a question on the screen; its *id* is the same while it is up. *option*: one of its choices, with a *label*.
//! - *turn*: from a message to the end of Claude Code's answer. *conversation*: all turns, as the *transcript* has them.
//! - *gate*: the hook that asks missiond before each tool call. *ask*: a tool call that somebody has to decide on.
//! - *policy*: the rules of a role. *verdict*: allow, ask, deny or silent, with the rule it rests on.
//! - *witness*: a source of evidence about Claude Code besides the screen: its hooks, its record, its transcript.
//! - *doubt*: the screen and the witnesses differ; nobody's key is pressed meanwhile.
//! - *machine*: the pure behaviour of a slot: inputs in, *effects* out.
//! - *adopt*: to go on with a program that an earlier daemon has started.
//! - *task*: a message that waits for a slot. *rehearsal*: all scenes with a scripted model, on an installed Claude Code.

pub mod audit;
pub mod cli;
pub mod config;
pub mod control;
pub mod core;
pub mod daemon;
pub mod embed;
pub mod events;
pub mod hook;
pub mod lab;
pub mod launch;
pub mod lookback;
pub mod mcp;
pub mod os;
pub mod push;
pub mod session;
pub mod shim;
pub mod slot;
pub mod web;
