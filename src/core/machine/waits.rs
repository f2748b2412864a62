//! The machine's waiting times, with their reasons.

use std::time::Duration;

/// How long a dialog must be on the screen unchanged before a key is pressed on it: Claude Code drops keys within about 150 ms
/// after it has drawn one. docs/claude-code.md has the measurement.
pub const SETTLED: Duration = Duration::from_millis(220);
/// Claude Code draws the dialog of a call within this time after the hook's answer, or not at all, unless another dialog comes
/// first. 0.3 s were measured; this leaves time for a loaded machine.
pub const DIALOG_COMES: Duration = Duration::from_secs(5);
/// Rules that have not answered by then hang on a path: a person decides.
pub const JUDGING_TAKES: Duration = Duration::from_secs(5);
/// A paste is visible after a frame or two; this leaves time for a slow machine.
pub const PASTE_SHOWS: Duration = Duration::from_secs(15);
/// How long a pasted text must be in the input box before Enter: 2.1.100 and older read an immediate Enter as a line break in it,
/// and 2.1.50 also drops the text; after 50 ms every Enter worked.
pub const PASTE_SETTLES: Duration = Duration::from_millis(100);
/// A paste that is not visible by now may be hidden by text that another program has written to the terminal, such as a message
/// to all users: the program is made to redraw its screen.
pub const PASTE_IS_HIDDEN: Duration = Duration::from_secs(3);
/// When to look again at a shim that did not answer; a look costs little.
pub const SHIM_ANSWERS: Duration = Duration::from_secs(1);
/// A program has redrawn its screen for a new size by now.
pub const REDRAWN: Duration = Duration::from_secs(1);
/// A program has redrawn its screen for several new sizes by now; an answer to its dialog waits no longer.
pub const DRAWN_AT_LAST: Duration = Duration::from_secs(10);
/// The shortest time between two redraws, so that repeated painting does not cause repeated redraws.
pub const REDRAW_PAUSE: Duration = Duration::from_secs(3);
/// A successful Enter empties the input box at once.
pub const ENTER_WORKS: Duration = Duration::from_secs(10);
/// An Enter that has not emptied the box by now was lost, on a slow machine for example to the paste before it. Enter at an empty
/// input box does nothing.
pub const ENTER_IS_LOST: Duration = Duration::from_millis(1500);
/// A key on a dialog moves it or ends it. On a loaded machine Claude Code has taken 6 s to draw that.
pub const KEY_WORKS: Duration = Duration::from_secs(10);
/// An arrow key that has not moved the marked row by now was lost.
pub const ARROW_IS_LOST: Duration = Duration::from_secs(1);
/// An Esc ends a turn within this time.
pub const ESC_WORKS: Duration = Duration::from_secs(10);
/// Without a Stop hook, a turn is over when the screen has been idle this long.
pub const IDLE_IS_OVER: Duration = Duration::from_millis(1500);
/// If only the screen says that a turn is over, it may still begin, or continue after a pause: a slow program draws late. Its end
/// is accepted when nothing has happened for this long.
pub const TURN_SHOWS: Duration = Duration::from_secs(30);
/// Ctrl-C at an input box offers to quit for about a second; nothing is pressed until that has passed.
pub const CLEARED: Duration = Duration::from_secs(2);
/// A slow program shows by then that Ctrl-C has emptied its input box: the same time as for a paste.
pub const CLEARED_LATE: Duration = PASTE_SHOWS;
