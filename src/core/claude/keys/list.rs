//! Labels with commas between them, where a label may have commas too.

/// In how many ways a list can be read as labels.
pub(super) enum Readings {
    None,
    /// The rows of the only one, in order.
    One(Vec<usize>),
    Many,
}

/// One way to go on from a part of the list.
#[derive(Clone, Copy, Default)]
struct Rest {
    /// How many ways there are, counted up to two.
    ways: usize,
    row: usize,
    /// The part after this label.
    next: usize,
}

/// Reads the list from its end: how the rest can be read is known for each part before it is needed, so the work grows
/// with the number of parts alone. No label has more than `longest` parts.
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

/// All runs of parts that a label may consist of; those from the first part first, the longest of them first.
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
