//! Whether two globs may match the same text.

/// One element of a glob.
enum Piece {
    /// Any text, also the empty one.
    Star,
    /// One unknown character.
    One,
    Plain(char),
}

fn pieces(glob: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut chars = glob.chars().peekable();
    while let Some(c) = chars.next() {
        found.push(match c {
            '*' => Piece::Star,
            '?' => Piece::One,
            '[' => {
                // The characters in the brackets do not matter: the bracket matches one character.
                let mut rest = chars.clone();
                match rest.find(|c| *c == ']') {
                    Some(_) => {
                        chars = rest;
                        Piece::One
                    }
                    None => Piece::Plain('['),
                }
            }
            '\\' => Piece::Plain(chars.next().unwrap_or('\\')),
            other => Piece::Plain(other),
        });
    }
    found
}

/// Whether some text matches both globs. A star also matches slashes and names that begin with a dot, as in git; a shell matches
/// less.
pub fn may_share(one: &str, other: &str) -> bool {
    let (one, other) = (pieces(one), pieces(other));
    // Which prefixes of `other` match the prefix of `one` that was processed so far.
    let mut fits = vec![false; other.len() + 1];
    fits[0] = true;
    spread(&mut fits, &other);
    for piece in &one {
        let mut next = vec![false; other.len() + 1];
        for at in 0..=other.len() {
            if !fits[at] {
                continue;
            }
            match piece {
                Piece::Star => next[at..].fill(true),
                _ => step(piece, at, &other, &mut next),
            }
        }
        spread(&mut next, &other);
        fits = next;
    }
    fits[other.len()]
}

fn step(piece: &Piece, at: usize, other: &[Piece], next: &mut [bool]) {
    match (piece, other.get(at)) {
        (_, None) => {}
        (_, Some(Piece::Star)) => next[at] = true,
        (Piece::Plain(one), Some(Piece::Plain(two))) => next[at + 1] |= one == two,
        _ => next[at + 1] = true,
    }
}

/// A star also matches the empty text.
fn spread(fits: &mut [bool], other: &[Piece]) {
    for (at, piece) in other.iter().enumerate() {
        if fits[at] && matches!(piece, Piece::Star) {
            fits[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::may_share;

    #[test]
    fn globs_that_share_a_text_are_found() {
        for (one, other) in [
            ("a", "a"),
            ("*", ""),
            ("*.env", ".env"),
            (".e*", ".env"),
            (".[e]nv", ".env"),
            (".?nv", ".env"),
            ("key*", "*.pem"),
            ("a*c", "*b*"),
            ("src/*", "src/a/b"),
            ("*a*b*", "*b*a*"),
            (r"\*", "*"),
        ] {
            assert!(may_share(one, other), "{one} {other}");
            assert!(may_share(other, one), "{other} {one}");
        }
        for (one, other) in [
            ("a", "b"),
            ("", "a"),
            ("*.rs", ".env"),
            ("a*", "b*"),
            ("*.rs", "*.pem"),
            ("a?", "a"),
            (r"\*", "a"),
        ] {
            assert!(!may_share(one, other), "{one} {other}");
            assert!(!may_share(other, one), "{other} {one}");
        }
    }
}
