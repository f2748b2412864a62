//! Whether two globs may stand for the same text.

/// Where a glob may be.
enum Piece {
    /// Any text, also none.
    Star,
    /// One character that is not known.
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
                // What stands in the brackets is not looked at: it is one character.
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

/// Whether some text fits both globs. A star stands for everything, also for slashes and for names that begin with a dot:
/// that is what git does, and more than a shell does.
pub fn may_share(one: &str, other: &str) -> bool {
    let (one, other) = (pieces(one), pieces(other));
    // Which starts of `other` fit the start of `one` that was looked at so far.
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

/// A star stands for nothing too.
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
