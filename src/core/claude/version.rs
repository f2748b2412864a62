//! Versions of Claude Code.

/// A version of Claude Code, as `claude --version` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version {
            major,
            minor,
            patch,
        }
    }

    /// From `2.1.325 (Claude Code)`, or any text with such a beginning.
    pub fn parse(text: &str) -> Option<Version> {
        let first = text.split_whitespace().next()?;
        let mut numbers = first
            .split(['.', '-'])
            .map(|number| number.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        Some(Version::new(next()?, next()?, next()?))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
