//! The cost of a conversation, as Claude Code counts it. Pure.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;

/// US dollars, in millionths so that amounts can be added and compared exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Dollars {
    millionths: u64,
}

/// A limit below a cent would stop a slot at once; a limit above this is a mistake.
pub const LIMITS: RangeInclusive<f64> = 0.01..=1_000_000.0;

impl Dollars {
    pub const ZERO: Dollars = Dollars { millionths: 0 };

    /// `None` if it is not an amount.
    pub fn from_f64(dollars: f64) -> Option<Dollars> {
        let millionths = (dollars * 1e6).round();
        (millionths >= 0.0 && millionths < u64::MAX as f64).then_some(Dollars {
            millionths: millionths as u64,
        })
    }

    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    pub fn plus(self, more: Dollars) -> Dollars {
        Dollars {
            millionths: self.millionths.saturating_add(more.millionths),
        }
    }

    /// Zero if `less` is more.
    pub fn minus(self, less: Dollars) -> Dollars {
        Dollars {
            millionths: self.millionths.saturating_sub(less.millionths),
        }
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.2}", self.as_f64())
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dollars, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Dollars::from_f64(dollars).ok_or_else(|| serde::de::Error::custom("no amount of dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up_and_nonsense_is_none() {
        let third = Dollars::from_f64(0.1).unwrap();
        let sum = (0..3).fold(Dollars::ZERO, |sum, _| sum.plus(third));
        assert_eq!(Some(sum), Dollars::from_f64(0.3));
        assert_eq!(sum.to_string(), "$0.30");
        assert_eq!(third.minus(sum), Dollars::ZERO);
        for nonsense in [-0.01, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(Dollars::from_f64(nonsense), None);
        }
    }
}
