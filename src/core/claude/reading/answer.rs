//! The answer as the screen shows it: wrapped and perhaps cut, for a turn of which the transcript has nothing.

use super::composer::Box;
use super::page::{MARKER, Page};
use super::stream::rows_of_entry;
use super::{activity, is_shown, pasted_line_breaks};
use crate::core::terminal::Screen;

/// The characters of a shortened message that must be there for it to be known.
const ENOUGH_OF_A_HEAD: usize = 40;

/// The last text that the assistant wrote below this message, without its bullet and indentation. What stands above the
/// last message on the screen is of another turn; a command that opens a view leaves no message there at all.
pub fn answer_to(screen: &Screen, message: &str) -> Option<String> {
    let page = Page::new(screen);
    let end = Box::find(&page)?.top();
    let asked = page.above(end, |row| activity::is_prompt(page.text(row)))?;
    let head = activity::last_entry(&page, end).filter(|head| *head > asked)?;
    let is_text = activity::is_bullet(page.text(head)) && !activity::has_output(&page, head);
    if !is_text || !is_message(&page, asked, message) {
        return None;
    }
    let answer = rows_of_entry(&page, head, end).join("\n");
    Some(answer).filter(|answer| !answer.is_empty())
}

/// Whether the message in row `first` is this one. A long one may be shown shortened, or as a note of what was pasted.
fn is_message(page: &Page, first: usize, message: &str) -> bool {
    let belongs = |row: &usize| page.is_blank(*row) || page.row(*row).indent() >= 2;
    let is_part = |row: &usize| belongs(row) && !activity::is_output(page, *row);
    let more = (first + 1..page.len()).take_while(is_part);
    let rows = std::iter::once(first).chain(more);
    let shown: Vec<&str> = rows.map(|row| page.text(row)).collect();
    let shown = shown.join("\n");
    let shown = shown.trim_start_matches([MARKER, '>']).trim();
    let sent = signs(message);
    match shown.split_once('…') {
        _ if signs(shown) == sent => true,
        Some((head, _)) => {
            let head = signs(head);
            head.len() >= ENOUGH_OF_A_HEAD && sent.starts_with(&head)
        }
        None => pasted_line_breaks(shown) == Some(message.trim_end().matches('\n').count()),
    }
}

fn signs(text: &str) -> String {
    text.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::{At, Terminal};

    /// The rows of a screen, over an input box with a footer.
    fn screen(rows: &[&str]) -> Screen {
        let mut terminal = Terminal::new(60, 24);
        let rule = "─".repeat(60);
        let below = [
            &rule,
            "❯ ",
            &rule,
            "  ⏸ manual mode on",
            "● main  ↑/↓ to select",
        ];
        let rows: Vec<&str> = rows.iter().copied().chain(below).collect();
        terminal.feed(At::ZERO, rows.join("\r\n").as_bytes());
        terminal.screen()
    }

    const EARLIER: [&str; 4] = ["❯ hi", "", "● An earlier answer.", ""];

    fn after_earlier(rows: &[&str], message: &str) -> Option<String> {
        answer_to(&screen(&[&EARLIER, rows].concat()), message)
    }

    #[test]
    fn the_last_text_below_the_message_is_taken_without_its_bullet() {
        let rows = [
            "❯ and now?",
            "",
            "● one",
            "● two",
            "  more",
            "",
            "    code",
            "",
            "✻ Baked for 1s",
            "",
        ];
        let answer = after_earlier(&rows, "and now?");
        assert_eq!(answer.as_deref(), Some("two\nmore\n\n  code"));
    }

    /// A view leaves nothing on the screen, and another message may have come in between.
    #[test]
    fn what_another_turn_has_said_is_no_answer() {
        let tables: [(&[&str], &str); 7] = [
            (&[], "/status"),
            (&[], "and now?"),
            (&[], "h"),
            (&[], "hi there"),
            (&["❯ /resume", "  ⎿  Resume cancelled", ""], "/resume"),
            (&["❯ and now?", ""], "and now?"),
            (&["❯ other", "", "● Another answer.", ""], "and now?"),
        ];
        for (rows, message) in tables {
            assert_eq!(after_earlier(rows, message), None, "{message} {rows:?}");
        }
    }

    #[test]
    fn a_call_is_no_answer() {
        let rows = ["❯ make", "", "● Bash(make)", "  ⎿  done", ""];
        assert_eq!(after_earlier(&rows, "make"), None);
    }

    /// What Claude Code says at the right margin above the input box, and all that stands below it, is not the answer.
    #[test]
    fn notices_and_the_footer_are_no_part_of_it() {
        let notice = format!("{}◐ medium · /effort", " ".repeat(40));
        let rows = ["❯ go", "", "● Done.", "", &notice];
        assert_eq!(after_earlier(&rows, "go").as_deref(), Some("Done."));
    }

    #[test]
    fn a_message_of_several_rows_is_known() {
        let rows = ["❯ one two", "  three", "", "  four", "", "● Yes.", ""];
        let answer = after_earlier(&rows, "one two three\n\nfour");
        assert_eq!(answer.as_deref(), Some("Yes."));
        let rows = ["❯ [Pasted text #1 +2 lines]", "", "● Yes.", ""];
        assert_eq!(after_earlier(&rows, "a\nb\nc").as_deref(), Some("Yes."));
        assert_eq!(after_earlier(&rows, "a\nb"), None);
    }
}
