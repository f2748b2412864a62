//! Maps and sets for keys that we have chosen ourselves: nobody can fill those with names that collide, so they need no
//! costly hash.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// FNV-1a: short names are what it is good at.
#[derive(Debug, Clone)]
pub struct Quick(u64);

impl Default for Quick {
    fn default() -> Quick {
        Quick(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
