//! What a search has found, as much as fits into an answer.

use super::{Fault, Match, RpcError};
use crate::core::text::excerpt;
use regex::Regex;

/// Bytes of all matches as JSON: an answer must fit into a line of the control socket ([`super::MAX_LINE`]).
const MAX_ANSWER: usize = 7 << 20;
/// Each takes some hundred bytes of memory beside its text.
const MAX_MATCHES: usize = 10_000;
/// Characters of one line; the middle of a longer one is left out.
const MAX_TEXT: usize = 64 << 10;

#[derive(Debug)]
pub struct Matches {
    found: Vec<Match>,
    limit: usize,
    bytes: usize,
}

impl Matches {
    /// At most so many.
    pub fn new(limit: usize) -> Matches {
        Matches {
            found: Vec::new(),
            limit,
            bytes: 0,
        }
    }

    /// Takes the lines that match, until there are enough.
    pub fn search(
        &mut self,
        place: &str,
        lines: impl Iterator<Item = impl AsRef<str>>,
        pattern: &Regex,
    ) {
        for (index, line) in lines.enumerate() {
            if self.found.len() >= self.limit || self.is_too_much() {
                return;
            }
            if pattern.is_match(line.as_ref()) {
                let found = Match {
                    place: place.to_owned(),
                    line: index + 1,
                    text: excerpt::ends(line.as_ref(), MAX_TEXT),
                };
                self.bytes += serde_json::to_vec(&found).map_or(MAX_ANSWER, |json| json.len() + 1);
                self.found.push(found);
            }
        }
    }

    fn is_too_much(&self) -> bool {
        self.bytes > MAX_ANSWER || self.found.len() > MAX_MATCHES
    }

    pub fn answer(self) -> Result<Vec<Match>, RpcError> {
        match self.is_too_much() {
            true => {
                let fit = self.found.len() - 1;
                let text = format!("only the first {fit} matches fit into an answer");
                Err(RpcError::new(Fault::Refused, text)
                    .next(format!("ask for at most {fit}, or by another pattern")))
            }
            false => Ok(self.found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::MAX_LINE;

    fn found(lines: &[String], limit: usize) -> Result<Vec<Match>, RpcError> {
        let mut matches = Matches::new(limit);
        matches.search("output", lines.iter(), &Regex::new("x").unwrap());
        matches.answer()
    }

    #[test]
    fn what_is_found_fits_into_an_answer_or_is_refused_with_its_number() {
        let lines: Vec<String> = ["no", "x", "y", "xx"].map(str::to_owned).to_vec();
        let numbers: Vec<usize> = found(&lines, 9)
            .unwrap()
            .iter()
            .map(|one| one.line)
            .collect();
        assert_eq!(numbers, [2, 4]);
        assert_eq!(found(&lines, 1).unwrap().len(), 1);

        // Each of these characters has six bytes in JSON.
        let long = vec![format!("x{}", "\u{1}".repeat(2 * MAX_TEXT)); 100];
        let refused = found(&long, usize::MAX).unwrap_err();
        let fit = refused
            .message
            .split(' ')
            .find_map(|word| word.parse().ok());
        let fitting = found(&long, fit.expect("a number")).unwrap();
        assert!(fitting[0].text.contains("were left out"));
        assert!(serde_json::to_vec(&fitting).unwrap().len() < MAX_LINE - (64 << 10));

        let many = vec!["x".to_owned(); MAX_MATCHES + 1];
        assert_eq!(found(&many, MAX_MATCHES).unwrap().len(), MAX_MATCHES);
        assert!(found(&many, usize::MAX).is_err());
    }
}
