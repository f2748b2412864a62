//! UTF-8 from a stream that may be cut anywhere. Pure.

/// Bytes in, text out: what is not UTF-8 becomes U+FFFD, and a character that is cut off at the end is
/// held back until its rest comes. However the stream is cut, the text is that of the whole.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    /// The beginning of a character, at most three bytes.
    held: Vec<u8>,
}

impl TextStream {
    /// The text that is complete with `bytes`.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(bytes);
        let mut text = String::with_capacity(joined.len());
        let mut rest = joined.as_slice();
        while let Err(fault) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(fault.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(invalid) = fault.error_len() else {
                self.held = after.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &after[invalid..];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        text
    }

    /// Whether a character waits for its rest.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Gives up waiting for the rest of a held character.
    pub fn flush(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_split_character_comes_whole() {
        let mut stream = TextStream::default();
        let crab = "🦀".as_bytes();
        assert_eq!(stream.push(&crab[..3]), "");
        assert!(stream.is_holding());
        assert_eq!(stream.push(&crab[3..]), "🦀");
        assert!(!stream.is_holding());
        assert_eq!(stream.push(b"a\xffb\xe2\x82"), "a\u{fffd}b");
        assert_eq!(stream.flush(), "\u{fffd}");
        assert_eq!(stream.flush(), "");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_text_of_the_whole(
            parts in prop::collection::vec(
                prop_oneof![
                    any::<char>().prop_map(|c| c.to_string().into_bytes()),
                    prop::collection::vec(any::<u8>(), 0..3),
                ],
                0..40,
            ),
            cut in 1usize..5,
        ) {
            let whole = parts.concat();
            let mut stream = TextStream::default();
            let mut text: String = whole.chunks(cut).map(|chunk| stream.push(chunk)).collect();
            text.push_str(&stream.flush());
            prop_assert_eq!(text, String::from_utf8_lossy(&whole));
        }
    }
}
