//! Patterns with `*` for commands and names in rules.

/// Text in which `*` matches anything, split at its stars: a single piece has no star.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    pieces: Vec<String>,
}

impl Wildcard {
    /// `\*` is a literal star and `\\` a literal backslash; any other backslash stands for itself.
    pub fn new(text: &str) -> Wildcard {
        let mut pieces = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let last = pieces.len() - 1;
            match c {
                '*' => pieces.push(String::new()),
                '\\' => pieces[last].push(
                    chars
                        .next_if(|next| matches!(next, '*' | '\\'))
                        .unwrap_or('\\'),
                ),
                _ => pieces[last].push(c),
            }
        }
        Wildcard { pieces }
    }

    /// Writes `text` so that [`Wildcard::new`] reads it as exactly that text.
    pub fn escape(text: &str) -> String {
        text.replace('\\', "\\\\").replace('*', "\\*")
    }

    pub fn is_exact(&self) -> bool {
        self.pieces.len() == 1
    }

    /// The text before the first star.
    pub fn literal_start(&self) -> &str {
        &self.pieces[0]
    }

    pub fn ends_open(&self) -> bool {
        self.pieces.len() > 1 && self.pieces[self.pieces.len() - 1].is_empty()
    }

    pub fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces[0] == text;
        };
        let Some(rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else {
            return false;
        };
        // The leftmost match for each piece leaves the most text for the next one, so greedy matching is correct.
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else {
                return false;
            };
            rest = &rest[at + piece.len()..];
        }
        true
    }

    /// `word *` also means `word` alone: the pattern without its last star and the space before it.
    fn without_open_end(&self) -> Option<Wildcard> {
        let before_star = self.pieces.len().checked_sub(2)?;
        if !self.ends_open() {
            return None;
        }
        let mut pieces = self.pieces[..=before_star].to_vec();
        pieces[before_star] = pieces[before_star].strip_suffix(' ')?.to_owned();
        Some(Wildcard { pieces })
    }
}

/// The specifier of `Bash(…)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    text: String,
    whole: Wildcard,
    alone: Option<Wildcard>,
}

/// Collapses runs of spaces outside quotes to one. Line breaks stay.
pub fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let is_space = matches!(c, ' ' | '\t');
        match quote {
            None if is_space && out.ends_with([' ', '\n']) => continue,
            None if is_space => out.push(' '),
            _ => out.push(c),
        }
        quote = match (quote, c) {
            (None, '\'' | '"') => Some(c),
            (Some(open), _) if open == c => None,
            _ => quote,
        };
        if c == '\\' && quote != Some('\'') {
            out.extend(chars.next());
        }
    }
    out
}

impl CommandPattern {
    pub fn new(text: &str) -> CommandPattern {
        let collapsed = collapse(text.trim());
        let spelled = match collapsed.strip_suffix(":*") {
            Some(prefix) => format!("{prefix} *"),
            None => collapsed,
        };
        let whole = Wildcard::new(&spelled);
        CommandPattern {
            alone: whole.without_open_end(),
            whole,
            text: spelled,
        }
    }

    pub fn matches(&self, command: &str) -> bool {
        self.whole.matches(command)
            || self
                .alone
                .as_ref()
                .is_some_and(|alone| alone.matches(command))
    }

    /// The rule as it was written, with single spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches exactly one command.
    pub fn is_exact(&self) -> bool {
        self.whole.is_exact()
    }

    /// The first word of every command that it matches, if it is always the same.
    pub fn program(&self) -> Option<&str> {
        match self.whole.literal_start().split_once(' ') {
            Some((program, _)) => Some(program),
            None => self.is_exact().then(|| self.whole.literal_start()),
        }
    }

    /// The text before the first star.
    pub fn literal_start(&self) -> &str {
        self.whole.literal_start()
    }

    /// The texts before each star, and whether a word begins within the text.
    pub fn before_stars(&self) -> impl Iterator<Item = (&str, bool)> {
        let pieces = &self.whole.pieces;
        let before = pieces[..pieces.len() - 1].iter().enumerate();
        before.map(|(at, piece)| (piece.as_str(), at == 0 || piece.contains(' ')))
    }

    /// How many words of a matching command the rule spells out, counted from the first.
    pub fn literal_words(&self) -> usize {
        if self.is_exact() {
            return usize::MAX;
        }
        // The last word before the star is complete only if a space follows it.
        self.whole.literal_start().matches(' ').count()
    }
}

/// Whether a glob may match `name`: the name must begin with the glob's literal start. A glob that does not begin with a dot does
/// not match hidden files.
pub fn fits(glob: &str, name: &str) -> bool {
    if name.starts_with('.') && !glob.starts_with('.') {
        return false;
    }
    let start = glob.split(['*', '?', '[']).next().unwrap_or_default();
    let end = glob.rsplit(['*', '?', ']']).next().unwrap_or_default();
    name.starts_with(start) && name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_after_a_space_is_a_word_boundary() {
        let pattern = CommandPattern::new("ls *");
        assert!(pattern.matches("ls"));
        assert!(pattern.matches("ls -la"));
        assert!(!pattern.matches("lsof"));
        assert!(CommandPattern::new("ls*").matches("lsof"));
    }

    #[test]
    fn colon_star_is_special_only_at_the_end() {
        assert!(CommandPattern::new("git:*").matches("git push"));
        assert!(!CommandPattern::new("git:*").matches("gitk"));
        assert!(!CommandPattern::new("git:* push").matches("git push"));
        assert!(CommandPattern::new("git:* push").matches("git:x push"));
    }

    #[test]
    fn stars_can_stand_anywhere_and_be_escaped() {
        assert!(CommandPattern::new("git * main").matches("git push origin main"));
        assert!(!CommandPattern::new("git * main").matches("git main"));
        assert!(CommandPattern::new("* --version").matches("node --version"));
        assert!(CommandPattern::new("a*b*c").matches("aXbYbZc"));
        assert!(!CommandPattern::new("ab*bc").matches("abc"));
        let literal = CommandPattern::new(&Wildcard::escape(r"ls *.rs \n"));
        assert!(literal.is_exact());
        assert!(literal.matches(r"ls *.rs \n"));
    }

    #[test]
    fn literal_words_are_counted_up_to_the_star() {
        assert_eq!(CommandPattern::new("git -c *").literal_words(), 2);
        assert_eq!(CommandPattern::new("git*").literal_words(), 0);
        assert_eq!(CommandPattern::new("*").literal_words(), 0);
        assert_eq!(
            CommandPattern::new("git status").literal_words(),
            usize::MAX
        );
    }
}
