//! A text that is too long, with its head and its tail. Pure.

/// Characters of the longest text that goes into an answer: as JSON it fits into a line of the protocol, whatever
/// it is made of.
pub(super) const MOST: usize = 1 << 20;

/// The text, and whether something of it was left out. What is left out is said in its place.
pub(super) fn cut(text: String, most: usize) -> (String, bool) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_and_tail_stay() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let (cut_text, is_cut) = cut(text.clone(), 200);
        assert!(is_cut && cut_text.chars().count() <= 200);
        assert!(cut_text.starts_with("line 0\n") && cut_text.ends_with("line 999\n"));
        assert!(cut_text.contains("characters were left out"));
        assert_eq!(cut(text.clone(), 100_000), (text, false));
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_allowed_or_cut_in_a_character(text in "[aé🦀\n]{0,300}", most in 0usize..200) {
            let length = text.chars().count();
            let (cut_text, is_cut) = cut(text, most);
            prop_assert_eq!(is_cut, length > most);
            prop_assert!(cut_text.chars().count() <= most.max(60));
        }
    }
}
