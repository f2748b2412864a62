//! A line of a slot's screen, with its colours, as spans. Pure.

use crate::cli::sanitise;
use crate::core::terminal::sequences::{SequenceKind, SequencePiece, Sequences};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

/// Colours and weights are obeyed, every other sequence is left out.
pub fn line(text: &str, colours: bool) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut style = Style::default();
    Sequences::default().split(text.as_bytes(), |SequencePiece { kind, raw }| match kind {
        SequenceKind::Text => {
            let text = String::from_utf8_lossy(raw);
            let text: String = sanitise::text(&text).chars().flat_map(cells).collect();
            spans.push(Span::styled(text, style));
        }
        SequenceKind::Csi if colours && raw.ends_with(b"m") => {
            let body = &raw[2..raw.len() - 1];
            style = select(style, &String::from_utf8_lossy(body));
        }
        _ => {}
    });
    Line::from(spans)
}

/// The line in letters of ASCII, each in its cells: a terminal that knows no others may take a part of them for a command.
pub fn ascii(mut line: Line<'static>) -> Line<'static> {
    for span in &mut line.spans {
        span.content = span.content.chars().flat_map(in_ascii).collect();
    }
    line
}

fn in_ascii(c: char) -> impl Iterator<Item = char> {
    let like = match c {
        c if c.is_ascii() => c,
        '─' | '━' | '═' | '╌' | '—' | '–' => '-',
        '│' | '┃' | '║' | '╎' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╯' | '╰' => {
            '+'
        }
        '❯' | '›' | '▸' | '→' => '>',
        '●' | '•' | '✻' | '✽' | '✶' | '✳' | '✢' | '·' | '⏺' => '*',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        _ => '?',
    };
    std::iter::repeat_n(like, c.width().unwrap_or(0))
}

/// A character as it stands alone in its cells. Joiners and marks would change cells beside it, which are not its own.
fn cells(c: char) -> impl Iterator<Item = char> {
    let width = c.width().unwrap_or(0);
    let is_filler = matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    let (shown, count) = match is_filler {
        true => (' ', width),
        false => (c, width.min(1)),
    };
    std::iter::repeat_n(shown, count)
}

/// Applies the parameters of one "select graphic rendition".
fn select(mut style: Style, parameters: &str) -> Style {
    let numbers = parameters.split([';', ':']);
    let numbers: Vec<u8> = numbers.map(|n| n.parse().unwrap_or(0)).collect();
    let mut rest = numbers.as_slice();
    while let [first, tail @ ..] = rest {
        rest = tail;
        style = match *first {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            n @ 30..=37 => style.fg(Color::Indexed(n - 30)),
            n @ 90..=97 => style.fg(Color::Indexed(n - 90 + 8)),
            n @ 40..=47 => style.bg(Color::Indexed(n - 40)),
            n @ 100..=107 => style.bg(Color::Indexed(n - 100 + 8)),
            39 => style.fg(Color::Reset),
            49 => style.bg(Color::Reset),
            n @ (38 | 48) => {
                let (colour, behind) = extended(rest);
                rest = behind;
                match (n, colour) {
                    (38, Some(colour)) => style.fg(colour),
                    (48, Some(colour)) => style.bg(colour),
                    _ => style,
                }
            }
            _ => style,
        };
    }
    style
}

/// A colour of the palette of 256, or by its red, green and blue.
fn extended(numbers: &[u8]) -> (Option<Color>, &[u8]) {
    match numbers {
        [5, index, rest @ ..] => (Some(Color::Indexed(*index)), rest),
        [2, red, green, blue, rest @ ..] => (Some(Color::Rgb(*red, *green, *blue)), rest),
        _ => (None, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_styles_and_nothing_else_is_obeyed() {
        let line = line("a\u{1b}[1;31mb\u{1b}[38;5;208mc\u{1b}[0m\u{1b}[2Jd", true);
        let parts: Vec<(&str, Style)> = line
            .spans
            .iter()
            .map(|span| (span.content.as_ref(), span.style))
            .collect();
        let bold = Style::default().add_modifier(Modifier::BOLD);
        assert_eq!(
            parts,
            [
                ("a", Style::default()),
                ("b", bold.fg(Color::Indexed(1))),
                ("c", bold.fg(Color::Indexed(208))),
                ("d", Style::default()),
            ]
        );
    }

    #[test]
    fn no_character_reaches_into_the_cells_of_another() {
        let line = line("a\u{200d}b\u{115f}c\u{301}字", true);
        assert_eq!(line.to_string(), "ab  c字");
    }

    #[test]
    fn without_colours_the_text_stays() {
        let line = line("\u{1b}[31mred\u{1b}[0m", false);
        assert_eq!(line.to_string(), "red");
        assert!(line.spans.iter().all(|span| span.style == Style::default()));
    }

    #[test]
    fn a_terminal_without_other_letters_gets_ascii_in_the_same_cells() {
        let text = "\u{1b}[31m❯ ─│╭ ● “é” 日 ok";
        let shown = ascii(line(text, true));
        let words: String = shown.spans.iter().map(|span| &*span.content).collect();
        assert_eq!(words, "> -|+ * \"?\" ?? ok");
        assert_eq!(shown.spans[0].style.fg, Some(Color::Indexed(1)));
    }
}
