//! Who has done something.

use serde::{Deserialize, Serialize};

/// A person, or a program that acts for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    pub uid: u32,
    /// `None` if the kernel does not report it.
    pub pid: Option<i32>,
    /// The client that they used, as it names itself.
    pub via: String,
}
