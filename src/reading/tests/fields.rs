//! Options that are more than a label: a text field in them, or previews beside them.

use super::*;

/// A dialog of 2.1.325 with its cursor where `\x1b7` stands.
fn at_cursor(rows: &str) -> Dialog {
    dialog(&format!("{}\x1b8", rows.trim_matches('\n')))
}

const AMENDED: &str = "
RULE
 Bash command

   make amend

 Do you want to proceed?
 ❯ 1. Yes, go on
   2. No

 Esc to cancel";

#[test]
fn a_cursor_behind_the_label_is_in_its_text_field() {
    let parked = at_cursor(&AMENDED.replace("go on", "go on\x1b7"));
    assert_eq!(parked.digits, Digits::Write);
    let empty = AMENDED.replace("go on", "\x1b7and tell Claude what to do next");
    assert_eq!(at_cursor(&empty).digits, Digits::Write);
    let drawn = AMENDED.replace("go on", "go on\x1b[7m \x1b[m");
    assert_eq!(dialog(&drawn).digits, Digits::Write);
}

#[test]
fn a_cursor_on_the_marker_or_below_the_dialog_is_in_no_field() {
    let marked = at_cursor(&AMENDED.replace(" ❯", " \x1b7❯"));
    assert_eq!(marked.digits, Digits::Pick);
    assert_eq!(dialog(AMENDED).digits, Digits::Pick);
    let other = at_cursor(&AMENDED.replace("No", "\x1b7No"));
    assert_eq!(other.digits, Digits::Pick);
}
