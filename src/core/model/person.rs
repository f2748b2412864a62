//! Who has done something.

/// A person, or a program that acts for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub uid: u32,
    /// `None` if the kernel does not tell.
    pub pid: Option<i32>,
    /// What they used, as their program says.
    pub via: String,
}
