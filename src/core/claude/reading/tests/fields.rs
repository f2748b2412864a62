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

/// As 2.1.325 draws it, in fewer columns.
const PREVIEWS: &str = "
RULE
 ☐ Layout

Which layout?

❯ 1. A label that is a       ┌──────────────────────┐
    bit longer               │ +---+                │
  2. Layout B                │ | ❯ 1. Yes           │
  3. Layout C                └──────────────────────┘

                             Notes: press n to add notes

RULE
  Chat about this

Enter to select · ↑/↓ to navigate · n to add notes · Esc to cancel";

#[test]
fn previews_are_no_part_of_the_choices_beside_them() {
    let asked = dialog(PREVIEWS);
    assert_eq!(asked.kind, DialogKind::Question);
    let choices = [
        "A label that is a bit longer",
        "Layout B",
        "Layout C",
        "Chat about this",
    ];
    assert_eq!(labels(&asked), choices);
    assert_eq!((asked.selected, asked.digits), (Some(0), Digits::Move));
    assert!(asked.complete);
    assert_eq!(input(&asked, "question"), Some("Which layout?"));
}

#[test]
fn below_the_previews_the_lower_marker_counts() {
    let talk = PREVIEWS.replace("  Chat", "❯ Chat");
    assert_eq!(dialog(&talk).selected, Some(3));
    let notes = PREVIEWS.replace("press n to add notes\n", "because\x1b[7m \x1b[m\n");
    assert_eq!(dialog(&notes).selected, None);
}

#[test]
fn the_panel_of_shortcuts_is_no_menu() {
    let panel =
        "\n  ! for shell mode        double tap esc\n  / for commands\n  /btw for side question";
    let draft = |below: &str| {
        let rows = format!("● Done.\n\nRULE\n❯ hello\nRULE{below}");
        read(&screen(&rows)).composer.expect("an input box")
    };
    assert!(!draft(panel).menu);
    assert_eq!(draft(panel).draft, "hello");
    assert!(draft("\n  /btw  Ask a side question\n  /model  Set the model").menu);
}

/// Newer versions scroll a draft that is too long for a low screen, and say so in the rule above it.
#[test]
fn a_draft_without_its_first_rows_is_a_draft_where_the_cursor_is_in_its_text() {
    let rows = |first: &str| {
        let rule = format!("─── ↑ 1 more {}", "─".repeat(COLS - 13));
        format!("● Done.\n\n{rule}\n{first}\n  the end of it\nRULE\n\x1b[5;16H")
    };
    let composer = |rows: &str| read(&screen(rows)).composer.map(|composer| composer.draft);
    let draft = composer(&rows("  a row of a draft and")).expect("a draft");
    assert!(draft.ends_with("the end of it"), "{draft}");
    let list = rows("  1. One").replace("  the end of it", "  ❯ 2. Two");
    assert_eq!(composer(&list), None);
    let elsewhere = rows("  a row of a draft and").replace("\x1b[5;16H", "\x1b[1;4H");
    assert_eq!(composer(&elsewhere), None);
}
