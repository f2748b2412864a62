//! UTF-8 from a stream that may be split anywhere. Pure.

/// A piece of a stream: its text, and the exact bytes if they differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextPiece {
    /// Invalid UTF-8 is U+FFFD in it.
    pub text: String,
    /// Set only if something is not UTF-8.
    pub exact: Option<Vec<u8>>,
}

impl TextPiece {
    fn of(bytes: Vec<u8>) -> TextPiece {
        match String::from_utf8(bytes) {
            Ok(text) => TextPiece { text, exact: None },
            Err(fault) => TextPiece {
                text: String::from_utf8_lossy(fault.as_bytes()).into_owned(),
                exact: Some(fault.into_bytes()),
            },
        }
    }

    pub fn bytes(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// Bytes in, text out: an incomplete character at the end is held back until its rest comes. The text is the same however the
/// stream is split.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    /// The beginning of a character, at most three bytes.
    held: Vec<u8>,
}

impl TextStream {
    /// The text that is complete with `bytes`.
    pub fn push(&mut self, bytes: &[u8]) -> TextPiece {
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(bytes);
        self.held = joined.split_off(joined.len() - unfinished(&joined));
        TextPiece::of(joined)
    }

    /// Whether a character waits for its rest.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Gives up on the rest of a held character.
    pub fn flush(&mut self) -> TextPiece {
        TextPiece::of(std::mem::take(&mut self.held))
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    // The longest character has four.
    let longest = 3.min(bytes.len());
    let begins = (1..=longest).find(|back| bytes[bytes.len() - back] & 0xc0 != 0x80);
    let is_cut = |back: &usize| {
        let end = std::str::from_utf8(&bytes[bytes.len() - back..]);
        end.is_err_and(|fault| fault.error_len().is_none())
    };
    begins.filter(is_cut).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_split_character_comes_whole() {
        let mut stream = TextStream::default();
        let crab = "🦀".as_bytes();
        assert_eq!(stream.push(&crab[..3]), TextPiece::default());
        assert!(stream.is_holding());
        let whole = stream.push(&crab[3..]);
        assert_eq!((whole.text.as_str(), whole.exact), ("🦀", None));
        assert!(!stream.is_holding());
        let piece = stream.push(b"a\xffb\xe2\x82");
        assert_eq!(
            (piece.text.as_str(), piece.bytes()),
            ("a\u{fffd}b", &b"a\xffb"[..])
        );
        let rest = stream.flush();
        assert_eq!(
            (rest.text.as_str(), rest.bytes()),
            ("\u{fffd}", &b"\xe2\x82"[..])
        );
        assert_eq!(stream.flush(), TextPiece::default());
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
            let mut pieces: Vec<TextPiece> = whole.chunks(cut).map(|chunk| stream.push(chunk)).collect();
            pieces.push(stream.flush());
            let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            prop_assert_eq!(text, String::from_utf8_lossy(&whole));
            let bytes: Vec<u8> = pieces.iter().flat_map(TextPiece::bytes).copied().collect();
            prop_assert_eq!(bytes, whole);
        }
    }
}
