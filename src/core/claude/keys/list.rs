//! Labels separated by commas, if a label may contain commas too.

/// In how many ways a list can be read as labels.
pub(super) enum Readings {
    None,
    /// The rows of the only reading, in order.
    One(Vec<usize>),
    Many,
}

/// One way to continue from a part of the list.
#[derive(Clone, Copy, Default)]
struct Rest {
    /// The number of ways, counted up to two.
    ways: usize,
    row: usize,
    /// The part after this label.
    next: usize,
}

/// Reads the list from its end: the readings of the rest are known before they are needed, so the work grows only with the number
/// of parts. No label has more than `longest` parts.
pub(super) fn readings(
    parts: &[&str],
    longest: usize,
    row: impl Fn(&str) -> Option<usize>,
) -> Readings {
    let mut rest = vec![Rest::default(); parts.len() + 1];
    rest[parts.len()].ways = 1;
    for from in (0..parts.len()).rev() {
        for next in ends(parts, from, longest) {
            let ways = rest[next].ways;
            if ways == 0 {
                continue;
            }
            if let Some(row) = row(&joined(&parts[from..next])) {
                let ways = (rest[from].ways + ways).min(2);
                rest[from] = Rest { ways, row, next };
            }
        }
    }
    match rest[0].ways {
        0 => Readings::None,
        1 => Readings::One(rows(&rest)),
        _ => Readings::Many,
    }
}

fn rows(rest: &[Rest]) -> Vec<usize> {
    let mut rows = Vec::new();
    let mut at = 0;
    while at + 1 < rest.len() {
        rows.push(rest[at].row);
        at = rest[at].next;
    }
    rows
}

/// All sequences of parts that may be one label: first those from the first part, and the longest of them first.
pub(super) fn runs<'a>(parts: &'a [&'a str], longest: usize) -> impl Iterator<Item = String> + 'a {
    (0..parts.len()).flat_map(move |from| {
        let ends = ends(parts, from, longest).rev();
        ends.map(move |next| joined(&parts[from..next]))
    })
}

fn ends(
    parts: &[&str],
    from: usize,
    longest: usize,
) -> impl DoubleEndedIterator<Item = usize> + use<> {
    from + 1..=(from + longest).min(parts.len())
}

fn joined(parts: &[&str]) -> String {
    parts.join(",").trim().to_owned()
}
