//! The first minute: a daemon in a throw-away directory with three slots, and what they do told as it happens.
//!
//! `scenario` says what is played; `stage` makes the place and takes it away; `story` sends, answers and tells,
//! through the control socket like everybody else; `view` prints; `person` hears who sits at the terminal;
//! [`stand_in`] is the program in the slots where no Claude Code is installed.

mod scenario;
pub mod stand_in;
