//! Host paths that a container gets: programs inside can read them, and change them unless they are mounted read-only.

use super::directories::Directories;
use super::places;
use crate::core::policy::harm::{self, Given, Harm};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::protected as guarded;
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::path::Path;

/// The verdict of rules on the files that a container gets.
pub fn restriction(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Verdict> {
    if !case.policy.index.restricts_paths() {
        return None;
    }
    let meets = |given: &Given<'_>, rule: &Rule| match rule.meaning() {
        Meaning::Path(about, pattern) if rule.decision > Decision::Allow => {
            let is_about = *about == Access::Read || !given.only_read;
            let below = |path: &Path| pattern.may_match_below(path, &case.ground);
            let is_there = |place: &Place| {
                rule.covers_place(*about, place, &case.ground) || place.ways().any(below)
            };
            is_about && places_of(case, given, directories).iter().any(is_there)
        }
        _ => false,
    };
    harm::given_to_container(words).iter().find_map(|given| {
        let rule = case.policy.rules().find(|rule| meets(given, rule))?;
        Some(Verdict {
            decision: Decision::Ask,
            rule: Some(rule.at.clone()),
            why: format!(
                "the container gets `{}`, and {} covers files in it",
                given.path, rule.at.text
            ),
        })
    })
}

/// Paths outside the slot's directory, and those with something protected below them.
pub fn harms(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Harm> {
    let harm = |given: &Given<'_>| {
        let places = places_of(case, given, directories);
        let is_outside = |place: &Place| !places::is_inside(case, place, false);
        let is_protected = |place: &Place| {
            let holds_all = place
                .ways()
                .any(|path| case.ground.cwd.iter().any(|own| own.starts_with(path)));
            holds_all
                || guarded::lies_below(place, &case.ground)
                || guarded::forbids(place, &case.ground).is_some()
        };
        let why = match () {
            () if given.path.contains(['$', '`']) || places.iter().any(is_outside) => {
                "which is outside the slot's directory"
            }
            () if !given.only_read && places.iter().any(is_protected) => {
                "which contains protected files"
            }
            () => return None,
        };
        Some(Harm::at(
            given.at,
            format!("the container gets `{}`, {why}", given.path),
        ))
    };
    harm::given_to_container(words)
        .iter()
        .filter_map(harm)
        .collect()
}

fn places_of(case: &Case<'_>, given: &Given<'_>, directories: &Directories) -> Vec<Place> {
    directories.places_of_text(given.path, &case.ground)
}
