//! The answer as the screen shows it: wrapped and perhaps cut, for where there is no transcript.

use crate::core::terminal::Screen;

const BULLETS: [char; 2] = ['●', '⏺'];

/// The last block of text that the assistant wrote, without its bullet and indentation.
pub fn last_answer(screen: &Screen) -> Option<String> {
    let lines: Vec<&str> = screen.lines.iter().map(|line| line.text.as_str()).collect();
    let first = lines.iter().rposition(|line| line.starts_with(BULLETS))?;
    let text = lines[first].trim_start_matches(BULLETS).trim().to_owned();
    let rest = lines[first + 1..].iter();
    let more = rest.take_while(|line| line.is_empty() || line.starts_with("  "));
    let answer = more.fold(text, |answer, line| {
        format!("{answer}\n{}", line.trim_start())
    });
    Some(answer.trim_end().to_owned()).filter(|answer| !answer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::{Line, Terminal};

    #[test]
    fn the_last_block_is_taken_without_its_bullet() {
        let mut screen = Terminal::new(40, 8).screen();
        let rows = [
            "❯ hi",
            "",
            "● one",
            "● two",
            "  more",
            "",
            "✻ Baked for 1s",
            "────",
        ];
        screen.lines = rows
            .iter()
            .map(|text| Line {
                text: (*text).into(),
                ..Line::default()
            })
            .collect();
        assert_eq!(last_answer(&screen).as_deref(), Some("two\nmore"));
        screen.lines.truncate(2);
        assert_eq!(last_answer(&screen), None);
    }
}
