//! Links below a directory that a program walks by itself: they may lead anywhere.

use super::directories::Directories;
use crate::core::policy::ground::Odd;
use crate::core::policy::harm::{self, Harm};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::shell::Word;

/// A program that follows the links that it finds, and a directory that contains one.
pub fn harm(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
    let (name, arguments) = words.split_first()?;
    let texts: Vec<&str> = match harm::follows_links(&name.text, arguments) {
        true => operands(arguments).collect(),
        // A copy writes through links at its destination.
        false => {
            harm::transfer(&name.text, arguments)
                .filter(|transfer| {
                    transfer.recursive && harm::has_word("cp scp ditto", &name.text)
                })?
                .targets
        }
    };
    let links = Odd {
        links: true,
        ..Odd::default()
    };
    let has_link = |place: &Place| case.ground.has_below(place, links);
    let mut places = texts
        .iter()
        .flat_map(|text| directories.places_of_text(text, &case.ground));
    let place = places.find(has_link)?;
    Some(Harm::whole(format!(
        "{} follows links, and there may be one below {}",
        name.text,
        place.written.display()
    )))
}

fn operands(arguments: &[Word]) -> impl Iterator<Item = &str> {
    let texts = arguments.iter().map(|word| word.text.as_str());
    texts.filter(|text| !text.starts_with('-'))
}
