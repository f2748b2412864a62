//! Other spellings of the same command, for rules that restrict: a superfluous one does little harm there.

use super::join;

/// The most short options that are permuted: nobody writes a rule for more.
const MOST_LETTERS: usize = 4;

/// The command without the options before the first operand (`git --no-pager push` as `git push`), and with its short options
/// combined in every order (`rm -f -r x` and `rm x -fr` as `rm -rf x`).
pub fn of(words: &[&str]) -> Vec<String> {
    let Some((program, rest)) = words.split_first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (at, _) in operands_behind_options(rest) {
        found.push(join(
            std::iter::once(*program).chain(rest[at..].iter().copied()),
        ));
    }
    let (letters, others) = short_options(rest);
    if (1..=MOST_LETTERS).contains(&letters.len()) {
        for order in orders(&letters) {
            let cluster = format!("-{order}");
            let start = [*program, cluster.as_str()];
            found.push(join(start.into_iter().chain(others.iter().copied())));
        }
    }
    found
}

/// The possible positions of the subcommand: an option may or may not take the next word as its value.
fn operands_behind_options<'w>(rest: &[&'w str]) -> Vec<(usize, &'w str)> {
    let mut found = Vec::new();
    let mut open = 0;
    for (at, word) in rest.iter().enumerate() {
        if word.starts_with('-') {
            open += usize::from(!word.contains('='));
        } else if at == 0 {
            break;
        } else {
            found.push((at, *word));
            if open == 0 {
                break;
            }
            open -= 1;
        }
    }
    found
}

/// The letters of all short options, and the other words.
fn short_options<'w>(rest: &[&'w str]) -> (Vec<char>, Vec<&'w str>) {
    let (mut letters, mut others) = (Vec::new(), Vec::new());
    for word in rest {
        let cluster = match *word {
            "--recursive" => "r",
            "--force" => "f",
            _ => word.strip_prefix('-').unwrap_or_default(),
        };
        match !cluster.is_empty() && cluster.chars().all(|c| c.is_ascii_alphabetic()) {
            true => letters.extend(cluster.chars()),
            false => others.push(*word),
        }
    }
    letters.sort_unstable();
    letters.dedup();
    (letters, others)
}

fn orders(letters: &[char]) -> Vec<String> {
    match letters {
        [] => vec![String::new()],
        _ => (0..letters.len())
            .flat_map(|at| {
                let mut rest = letters.to_vec();
                let first = rest.remove(at);
                orders(&rest)
                    .into_iter()
                    .map(move |order| format!("{first}{order}"))
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(text: &str) -> Vec<String> {
        of(&text.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn options_before_the_subcommand_are_left_out() {
        assert!(variants("git --no-pager push x").contains(&"git push x".to_owned()));
        assert!(variants("git -C dir push x").contains(&"git push x".to_owned()));
        assert!(variants("kubectl -n=x delete y").contains(&"kubectl delete y".to_owned()));
        assert!(variants("git push").is_empty());
    }

    #[test]
    fn short_options_are_put_together_in_every_order() {
        for text in [
            "rm -fr x",
            "rm -r -f x",
            "rm x -fr",
            "rm --recursive --force x",
            "rm -f x -r",
        ] {
            assert!(variants(text).contains(&"rm -rf x".to_owned()), "{text}");
        }
        assert_eq!(orders(&['a', 'b', 'c', 'd']).len(), 24);
    }
}
