//! Texts that are too long, in part. Pure.

/// The beginning of a text, of at most so many bytes and whole characters.
pub fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut() {
        assert_eq!(head("aéz", 2), "a");
        assert_eq!(head("aéz", 3), "aé");
        assert_eq!(head("aéz", 9), "aéz");
    }
}
