//! Text: errors in files that people write, excerpts, quoting, masked secrets.

pub mod diagnostic;
pub mod dollars;
pub mod excerpt;
pub mod hex;
pub mod quoting;
pub mod redraw;
pub mod secrets;
