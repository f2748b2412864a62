//! Who has done something.

use serde::{Deserialize, Serialize};

/// A person, or a program that acts for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    pub uid: u32,
    /// `None` if the kernel does not tell.
    pub pid: Option<i32>,
    /// What they used, as their program says.
    pub via: String,
}
