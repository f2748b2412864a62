//! Here-documents whose text is literal: with a quoted delimiter, or with nothing that a shell would expand.

/// A here-document that begins on a line.
#[derive(Debug)]
pub struct Here {
    mark: String,
    /// Nothing in its text is expanded.
    quoted: bool,
    /// `<<-`: tabs at the beginning of its lines are removed.
    strips_tabs: bool,
    /// The length of the delimiter as written.
    pub length: usize,
}

/// Its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Body<'t> {
    pub text: &'t str,
    /// Includes the line of the delimiter.
    pub length: usize,
}

impl Here {
    /// Parses the text after `<<`.
    pub fn read(rest: &str) -> Option<Here> {
        let strips_tabs = rest.starts_with('-');
        let begin = usize::from(strips_tabs);
        let spaces = rest[begin..].len() - rest[begin..].trim_start_matches([' ', '\t']).len();
        let written = &rest[begin + spaces..];
        let quote = written.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inner = written.strip_prefix(['\'', '"']).unwrap_or(written);
        let is_mark = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = inner.find(|c| !is_mark(c)).unwrap_or(inner.len());
        let behind = &inner[length..];
        let closed = quote.is_none_or(|quote| behind.starts_with(quote));
        let quotes = if quote.is_some() { 2 } else { 0 };
        let next = written.as_bytes().get(length + quotes);
        let ends = next.is_none_or(|byte| b" \t\n;|&)<>".contains(byte));
        (length > 0 && closed && ends).then(|| Here {
            mark: inner[..length].to_owned(),
            quoted: quote.is_some(),
            strips_tabs,
            length: begin + spaces + length + quotes,
        })
    }

    /// Its text, which begins here; `None` if it has no end, or anything that may be expanded.
    pub fn body<'t>(&self, rest: &'t str) -> Option<Body<'t>> {
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let bare = match self.strips_tabs {
                true => bare.trim_start_matches('\t'),
                false => bare,
            };
            if bare == self.mark {
                let text = &rest[..end];
                let is_literal = self.quoted || !text.contains(['$', '`', '\\']);
                let length = end + line.len();
                return is_literal.then_some(Body { text, length });
            }
            // Some shells accept `EOF)` as the end in a substitution.
            let seems_end = bare.trim().strip_prefix(self.mark.as_str());
            if seems_end.is_some_and(|rest| !rest.starts_with(is_of_word)) {
                return None;
            }
            end += line.len();
        }
        None
    }

    /// Its text as a program gets it.
    pub fn content(&self, body: &Body<'_>) -> String {
        match self.strips_tabs {
            false => body.text.to_owned(),
            true => body
                .text
                .split_inclusive('\n')
                .map(|line| line.trim_start_matches('\t'))
                .collect(),
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
