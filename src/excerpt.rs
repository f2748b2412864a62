//! Texts that are too long, in part. Pure.

/// The beginning of a text, of at most so many bytes and whole characters.
pub fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The text, or where it is longer than so many bytes its beginning and its end with a mark between them.
pub fn ends(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let first = head(text, most / 2);
    let mut from = text.len() - most / 2;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let last = &text[from..];
    let left_out = text.len() - first.len() - last.len();
    format!("{first}\n[… {left_out} bytes left out …]\n{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut() {
        assert_eq!(head("aéz", 2), "a");
        assert_eq!(head("aéz", 3), "aé");
        assert_eq!(head("aéz", 9), "aéz");
        assert_eq!(ends("ééé", 4), "é\n[… 2 bytes left out …]\né");
        assert_eq!(ends("ééé", 3), "\n[… 6 bytes left out …]\n");
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(ends("ééé", 6), "ééé");
    }
}
