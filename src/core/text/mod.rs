//! Text: errors in files that people write, excerpts, quoting, masked secrets,
//! hidden values, invisible characters.

pub mod base64;
pub mod diagnostic;
pub mod dollars;
pub mod excerpt;
pub mod hex;
pub mod hidden;
pub mod quoting;
pub mod redraw;
pub mod secrets;
pub mod visible;
