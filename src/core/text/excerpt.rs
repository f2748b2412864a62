//! Excerpts of long texts. Pure.

/// The beginning of a text, at most `most` bytes, without a cut character.
pub fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The beginning and the end of a text of more than `most` characters, with the number of omitted ones between; and whether it
/// was shortened.
pub fn head_and_tail(text: String, most: usize) -> (String, bool) {
    let length = text.chars().count();
    if length <= most {
        return (text, false);
    }
    let mark = |left_out| format!("\n[… {left_out} characters were left out …]\n");
    let room = most.saturating_sub(mark(length).chars().count());
    let (head, tail) = (room - room / 2, room / 2);
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head_end, tail_start) = (place(head), place(length - tail));
    let left_out = mark(length - head - tail);
    let text = format!("{}{left_out}{}", &text[..head_end], &text[tail_start..]);
    (text, true)
}

/// The same for callers that need not know whether something is missing: the mark shows it.
pub fn ends(text: &str, most: usize) -> String {
    head_and_tail(text.to_owned(), most).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_character_is_cut() {
        assert_eq!(head("aéz", 2), "a");
        assert_eq!(head("aéz", 3), "aé");
        assert_eq!(head("aéz", 9), "aéz");
    }

    #[test]
    fn head_and_tail_stay() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let (part, is_cut) = head_and_tail(text.clone(), 200);
        assert!(is_cut && part.chars().count() <= 200);
        assert!(part.starts_with("line 0\n") && part.ends_with("line 999\n"));
        assert!(part.contains("characters were left out"));
        assert_eq!(head_and_tail(text.clone(), 100_000), (text, false));
    }

    proptest! {
        #[test]
        fn nothing_is_longer_than_allowed(text in "[aé🦀\n]{0,300}", most in 0usize..200) {
            let length = text.chars().count();
            let (part, is_cut) = head_and_tail(text, most);
            prop_assert_eq!(is_cut, length > most);
            // The mark itself is always complete.
            prop_assert!(part.chars().count() <= most.max(60));
        }
    }
}
