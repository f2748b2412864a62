//! Whether a path pattern and a glob of another program may match the same file.

use super::{PathPattern, Place};
use crate::core::policy::globs::may_share;
use crate::core::policy::ground::Ground;
use std::path::Path;

impl PathPattern {
    /// The absolute globs that it corresponds to.
    fn whole_globs(&self, ground: &Ground<'_>) -> Vec<String> {
        let glob = self.glob.trim_matches('/');
        let glob = glob.strip_prefix("**/").unwrap_or(glob);
        let between: &[&str] = match self.is_anywhere() {
            true => &["/", "/*/"],
            false => &["/"],
        };
        let bases = self.base.ways(ground).into_iter().flatten();
        let globs = bases.flat_map(|base| {
            let base = base.to_string_lossy();
            let base = base.trim_end_matches('/').to_owned();
            between.iter().map(move |way| format!("{base}{way}{glob}"))
        });
        globs.collect()
    }

    /// Whether an absolute glob may match a path that the pattern matches.
    pub fn may_share(&self, glob: &str, ground: &Ground<'_>) -> bool {
        let mut own = self.whole_globs(ground).into_iter();
        own.any(|own| may_share(&own, glob))
    }

    /// Whether one of the two may match a directory, and the other a path below it.
    pub fn may_share_with_directories(&self, glob: &str, ground: &Ground<'_>) -> bool {
        let below = format!("{glob}/*");
        let mut own = self.whole_globs(ground).into_iter();
        own.any(|own| may_share(&own, &below) || may_share(&format!("{own}/*"), glob))
    }

    /// Whether an absolute glob may match a file that the pattern matches. A glob that only gives the ending of names, such as
    /// `*.rs`, is compared with `.env.*` by the existing files.
    pub fn is_aimed_at(&self, glob: &str, ground: &Ground<'_>) -> bool {
        let shares = self.may_share(glob, ground);
        if !shares && !self.may_share_with_directories(glob, ground) {
            return false;
        }
        if !names_an_ending(glob) || shares && !self.has_open_end() {
            return true;
        }
        let sample = glob.replace(['*', '?', '['], "\u{fffd}");
        let fits = |path: &Path| may_share(glob, &path.to_string_lossy());
        let is_there = |place: &Place| {
            place.ways().any(fits) || self.reaches_below() && ground.finds_below(place, fits)
        };
        let existing = || self.existing(ground).unwrap_or_default();
        self.matches(Path::new(&sample), ground) || existing().iter().any(is_there)
    }
}

/// Whether a glob only gives the ending of names: `*.rs`, `src/**/*.rs`.
fn names_an_ending(glob: &str) -> bool {
    let last = glob.rsplit('/').next().unwrap_or_default();
    let ending = last.strip_prefix('*').unwrap_or_default();
    ending.starts_with('.') && !ending.contains(['*', '?', '[', '\\'])
}
