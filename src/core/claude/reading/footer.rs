//! What the lines below the input box tell.

use crate::core::claude::vocabulary::{INSERT_MODE, INTERRUPTIBLE, MODES};

pub(super) fn mode(footer: &[&str]) -> Option<String> {
    let line = mode_line(footer)?;
    let named = MODES.iter().find(|(words, _)| line.contains(words));
    named.map(|(_, mode)| (*mode).to_owned())
}

/// The line of the permission mode, below the user's status line. It begins with a sign of its own, which a status line
/// would have to copy; an editor's mode may stand before it.
fn mode_line<'a>(footer: &[&'a str]) -> Option<&'a str> {
    let lines = footer.iter().rev().map(|line| line.trim_start());
    let mut own = lines.map(|line| line.strip_prefix(INSERT_MODE).unwrap_or(line));
    own.find(|line| line.starts_with(['⏸', '⏵']))
}

/// Whether the words stand where Claude Code puts them: between the dots of the mode's line, or, where there is none, at
/// the beginning of the first line. Any other line may be the user's own.
pub(super) fn interruptible(footer: &[&str]) -> bool {
    let first = footer.first().map(|line| line.trim_start());
    match mode_line(footer) {
        Some(line) => line
            .split('·')
            .any(|part| part.trim_start().starts_with(INTERRUPTIBLE)),
        None => first.is_some_and(|line| line.starts_with(INTERRUPTIBLE)),
    }
}

/// How many shells and agents run behind the conversation: `· 1 shell · 2 agents ·`.
pub(super) fn background(footer: &[&str]) -> u32 {
    let parts = footer.iter().flat_map(|line| line.split('·'));
    parts
        .filter_map(|part| counted(part.trim()))
        .fold(0, u32::saturating_add)
}

/// `Context left until auto-compact: 8%`, `Context low (8% remaining) · Run /compact …`, `92% context used`.
pub(super) fn context_left(footer: &[&str]) -> Option<u32> {
    footer.iter().find_map(|line| {
        let line = line.to_lowercase();
        let about = line.contains("context") || line.contains("auto-compact");
        let (before, after) = line.split_once('%').filter(|_| about)?;
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let percent: u32 = before[digits..]
            .parse()
            .ok()
            .filter(|percent| *percent <= 100)?;
        let used = after.trim_start().starts_with("used") || after.contains("context used");
        Some(if used { 100 - percent } else { percent })
    })
}

fn counted(part: &str) -> Option<u32> {
    let (number, what) = part.split_once(' ')?;
    let tasks = [
        "shell",
        "bash",
        "agent",
        "background task",
        "local agent",
        "task",
        "monitor",
    ];
    let named = tasks
        .iter()
        .any(|task| what.strip_prefix(task).is_some_and(is_word_end));
    if named { number.parse().ok() } else { None }
}

fn is_word_end(rest: &str) -> bool {
    matches!(rest, "" | "s" | "es") || rest.starts_with("s ") || rest.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_named_on_the_line_with_its_sign() {
        assert_eq!(
            mode(&["  ⏵⏵ accept edits on (shift+tab to cycle)"]),
            Some("acceptEdits".to_owned())
        );
        assert_eq!(mode(&["  plan mode on", "  ? for shortcuts"]), None);
    }

    #[test]
    fn the_offer_to_interrupt_is_no_word_of_the_status_line() {
        assert!(interruptible(&["  esc to interrupt     ● high · /effort"]));
        let own = "  -- INSERT -- ⏸ manual mode on · esc to interrupt · ← for agents";
        assert!(interruptible(&["  main", own]));
        let forged = "  ──────────── esc to interrupt ────────────";
        assert!(!interruptible(&["  main", forged, "  ⏸ manual mode on"]));
        assert!(!interruptible(&["  main", "  esc to interrupt", ""]));
        assert!(!interruptible(&[forged]));
    }

    #[test]
    fn what_is_left_of_the_context_is_a_percentage() {
        let left = |line: &str| context_left(&[line]);
        assert_eq!(left("   Context left until auto-compact: 8%"), Some(8));
        assert_eq!(left("Context low (3% remaining) · Run /compact"), Some(3));
        assert_eq!(left("  92% context used"), Some(8));
        assert_eq!(left("  main · 12%"), None);
        assert_eq!(left("context 999%"), None);
    }

    #[test]
    fn background_work_is_counted() {
        assert_eq!(
            background(&["  ⏸ manual mode on · 1 shell · 2 agents · ↓ to manage"]),
            3
        );
        assert_eq!(
            background(&["  ? for shortcuts · ← for agents", "3 files"]),
            0
        );
    }
}
