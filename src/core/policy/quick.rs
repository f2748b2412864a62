//! Maps and sets for keys that missiond has chosen itself: nobody can fill them with colliding names, so a cheap hash is safe.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// FNV-1a, which is fast for short names.
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
