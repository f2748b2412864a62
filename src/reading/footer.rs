//! What the lines below the input box tell.

/// What is named in the footer while Claude Code can be interrupted, that is while it works.
pub(super) const INTERRUPTIBLE: &str = "esc to interrupt";

/// The footer's words for a permission mode, and Claude Code's own name for it.
const MODES: [(&str, &str); 7] = [
    ("manual mode on", "manual"),
    ("auto mode on", "auto"),
    ("plan mode on", "plan"),
    ("accept edits on", "acceptEdits"),
    ("auto-accept edits on", "acceptEdits"),
    ("bypass permissions on", "bypassPermissions"),
    ("don't ask on", "dontAsk"),
];

/// The permission mode. Its line begins with a sign of its own, which a status line would have to copy.
pub(super) fn mode(footer: &[&str]) -> Option<String> {
    let line = footer
        .iter()
        .rev()
        .find(|line| line.trim_start().starts_with(['⏸', '⏵']))?;
    let named = MODES.iter().find(|(words, _)| line.contains(words));
    named.map(|(_, mode)| (*mode).to_owned())
}

pub(super) fn interruptible(footer: &[&str]) -> bool {
    footer.iter().any(|line| line.contains(INTERRUPTIBLE))
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
