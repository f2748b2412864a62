//! How long the machine waits for what, and why that long.

use std::time::Duration;

/// A dialog must have stood on the screen this long, unchanged, before a key is pressed on it: Claude Code drops
/// keys that come within about 200 ms after it has drawn one.
pub const SETTLED: Duration = Duration::from_millis(500);
/// Rules that have not answered by then look at a path that hangs: a person decides.
pub const JUDGING_TAKES: Duration = Duration::from_secs(5);
/// A paste shows within a frame or two; a slow machine gets this long.
pub const PASTE_SHOWS: Duration = Duration::from_secs(15);
/// A pasted text must have stood in the input box this long before Enter: 2.1.100 and older take an Enter that
/// comes at once for a line break in it, and 2.1.50 drops the text besides; 50 ms later every one was taken.
pub const PASTE_SETTLES: Duration = Duration::from_millis(100);
/// A paste that does not show by now may be hidden by what somebody else has written to the terminal, such as a
/// message to all users: the program is made to draw its screen again.
pub const PASTE_IS_HIDDEN: Duration = Duration::from_secs(3);
/// A shim that did not answer is looked at again after this time: a look at one that was stopped costs little.
pub const SHIM_ANSWERS: Duration = Duration::from_secs(1);
/// A program that was told of another size has drawn its screen by now.
pub const REDRAWN: Duration = Duration::from_secs(1);
/// A program that was told of several sizes has drawn its screen by now; an answer to its dialog waits no longer.
pub const DRAWN_AT_LAST: Duration = Duration::from_secs(10);
/// Who paints again and again does not make it draw again and again.
pub const REDRAW_PAUSE: Duration = Duration::from_secs(3);
/// An Enter that was taken empties the input box at once.
pub const ENTER_WORKS: Duration = Duration::from_secs(10);
/// An Enter that has not emptied it by now was lost, on a slow machine say to the paste before it. Enter at an input box
/// that was emptied meanwhile does nothing.
pub const ENTER_IS_LOST: Duration = Duration::from_millis(1500);
/// A key on a dialog moves it or ends it. On a loaded machine Claude Code was seen to take 6 s to draw that.
pub const KEY_WORKS: Duration = Duration::from_secs(10);
/// An arrow key that has not moved the marked row by now was lost.
pub const ARROW_IS_LOST: Duration = Duration::from_secs(1);
/// An Esc ends a turn.
pub const ESC_WORKS: Duration = Duration::from_secs(10);
/// Where no Stop hook was heard, a turn is over when the screen has been idle this long.
pub const IDLE_IS_OVER: Duration = Duration::from_millis(1500);
/// A turn about which the screen alone says that it is over may still begin, or go on after a pause: a slow program draws
/// late. Its end is believed when nothing has happened for this long.
pub const TURN_SHOWS: Duration = Duration::from_secs(30);
/// Ctrl-C at an input box offers to quit for about a second; nothing is pressed until that has passed.
pub const CLEARED: Duration = Duration::from_secs(2);
/// A slow program shows by then that Ctrl-C has emptied its input box: as long as a paste gets.
pub const CLEARED_LATE: Duration = PASTE_SHOWS;
