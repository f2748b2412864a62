//! A block of rows on a terminal that is redrawn in place. Pure.

/// The text that replaces the last `drawn` rows with these rows, with the cursor below them.
///
/// It works row by row: some terminals keep a cleared screen as history.
pub fn over(drawn: usize, rows: &[String]) -> String {
    let back = match drawn {
        0 => String::new(),
        drawn => format!("\x1b[{drawn}A\r"),
    };
    let rows: String = rows.iter().map(|row| format!("{row}\x1b[K\r\n")).collect();
    format!("{back}{rows}\x1b[J")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::{At, Terminal};

    #[test]
    fn what_stood_there_before_is_gone() {
        let mut terminal = Terminal::new(20, 6);
        let rows = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.to_string())
                .collect::<Vec<_>>()
        };
        let (first, second) = (
            rows(&["one and more", "two", "three"]),
            rows(&["uno", "due"]),
        );
        let text = format!("before\r\n{}{}", over(0, &first), over(3, &second));
        terminal.feed(At::default(), text.as_bytes());
        let lines: Vec<String> = terminal
            .screen()
            .lines
            .iter()
            .map(|line| line.text.clone())
            .collect();
        assert_eq!(lines, ["before", "uno", "due", "", "", ""]);
    }
}
