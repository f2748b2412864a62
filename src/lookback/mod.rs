//! Looking back from the files of the log directory, with or without a daemon: what slots did, and what stood on their screens.
//! `missiond timeline` and `missiond link` show it, and so does the page.

mod bands;
mod past;
mod recorded;

pub use bands::{UnreadLog, logged, report};
pub use past::{AROUND, LONGEST_LINE, PastSlot, opened_before};
pub use recorded::{PastScreen, screens_at};
