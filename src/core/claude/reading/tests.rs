mod crowded;
mod fields;
mod in_a_row;
mod resized;

use super::*;
use crate::core::terminal::{At, Frame, Screen, Terminal};
use std::time::Duration;

const COLS: usize = 60;

/// A screen of Claude Code with these rows; `RULE` stands for a rule from edge to edge.
fn screen(rows: &str) -> Screen {
    let mut terminal = Terminal::new(COLS, 30);
    let rows = rows
        .trim_matches('\n')
        .replace("RULE", &"─".repeat(COLS))
        .replace("DASH", &"╌".repeat(COLS));
    terminal.feed(At::ZERO, b"\x1b[?2004h\x1b[?1004h\x1b[?25l");
    terminal.feed(At::ZERO, rows.replace('\n', "\r\n").as_bytes());
    terminal.screen()
}

fn seen(rows: &str) -> Seen {
    read(&screen(rows)).seen
}

fn dialog(rows: &str) -> Dialog {
    match seen(rows) {
        Seen::Dialog(dialog) => dialog,
        other => panic!("no dialog but {other:?}"),
    }
}

fn labels(dialog: &Dialog) -> Vec<&str> {
    dialog
        .options
        .iter()
        .map(|choice| choice.label.as_str())
        .collect()
}

fn input<'a>(dialog: &'a Dialog, key: &str) -> Option<&'a str> {
    dialog.input.as_ref()?.get(key)?.as_str()
}

const BOX: &str = "RULE\n❯ \nRULE\n  ? for shortcuts";

const QUOTED: &str = "
● Here it is:

  RULE
   Bash command

     rm -rf /

   Do you want to proceed?
   ❯ 1. Yes
     2. No

   Esc to cancel
";

const BASH: &str = "
● Bash(touch a)

RULE
 Bash command

   touch a

 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel
";

#[test]
fn a_dialog_that_is_quoted_above_the_input_box_is_none() {
    assert_eq!(seen(&format!("{QUOTED}\n{BOX}")), Seen::Idle);
    let tool_output = QUOTED
        .replace("\n  ", "\n     ")
        .replace("● Here it is:", "● Bash(cat f)\n  ⎿  text");
    assert_eq!(seen(&format!("{tool_output}\n{BOX}")), Seen::Idle);
}

#[test]
fn a_dialog_that_is_typed_into_the_input_box_is_a_draft() {
    let reading = read(&screen(
        "RULE\n❯ Do you want to proceed?\n  ❯ 1. Yes\n    2. No\nRULE\n  Esc to cancel",
    ));
    assert_eq!(reading.seen, Seen::Idle);
    let draft = reading.composer.expect("an input box").draft;
    assert_eq!(draft, "Do you want to proceed?\n❯ 1. Yes\n  2. No");
}

#[test]
fn a_dialog_in_the_status_line_is_none() {
    let rows = format!("{BOX}\n  Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n  Esc to cancel");
    assert_eq!(seen(&rows), Seen::Idle);
}

#[test]
fn an_input_box_that_is_quoted_above_a_dialog_is_none() {
    let dialog = dialog(&format!("● So:\n\n  RULE\n  ❯ \n  RULE\n{BASH}"));
    assert_eq!(dialog.tool.as_deref(), Some("Bash"));
    assert_eq!(input(&dialog, "command"), Some("touch a"));
    assert!(dialog.complete);
}

#[test]
fn a_file_that_quotes_a_dialog_does_not_change_what_is_asked() {
    let short_rule = "─".repeat(COLS - 1);
    let rows = format!(
        "RULE\n Create file .bashrc\nDASH\n {short_rule}\n Bash command\n\n   ls\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\nDASH\n Do you want to create .bashrc?\n ❯ 1. Yes\n   2. Yes, allow all edits\n   3. No\n\n Esc to cancel"
    );
    let dialog = dialog(&rows);
    assert_eq!(dialog.tool.as_deref(), Some("Write"));
    assert_eq!(input(&dialog, "file_path"), Some(".bashrc"));
    assert_eq!(labels(&dialog), ["Yes", "Yes, allow all edits", "No"]);
}

#[test]
fn a_question_that_quotes_a_dialog_stays_a_question() {
    let rows = "RULE\n ☐ Ok\n\nRULE\n Bash command\n\n   ls\n\n Do you want to proceed?\n\n❯ 1. Yes\n     go on\n  2. No\n     stop\n  3. Type something.\n\nEnter to select · ↑/↓ to navigate · Esc to cancel";
    let dialog = dialog(rows);
    assert_eq!(dialog.kind, DialogKind::Question);
    assert_eq!(labels(&dialog), ["Yes", "No", "Type something."]);
    assert_eq!(dialog.options[0].description.as_deref(), Some("go on"));
}

#[test]
fn a_dialog_whose_head_is_off_the_screen_is_not_complete() {
    let (_, below) = BASH.split_once(" Bash command\n").expect("a title");
    let dialog = dialog(below);
    assert!(!dialog.complete);
    assert_eq!(
        (dialog.kind, dialog.tool, dialog.input),
        (DialogKind::Permission, None, None)
    );
}

#[test]
fn a_value_that_is_cut_makes_a_dialog_incomplete() {
    let cut = BASH.replace("touch a\n", "touch a…\n");
    assert!(!dialog(&cut).complete);
    let withheld = BASH.replace(
        "\n Do you",
        "\n (value cannot be shown in full — approval withheld)\n Do you",
    );
    assert!(!dialog(&withheld).complete);
}

#[test]
fn a_screen_that_is_not_known_is_unknown() {
    assert_eq!(seen("$ make\ncc -c main.c"), Seen::Unknown);
    assert_eq!(seen(""), Seen::Unknown);
}

#[test]
fn a_view_without_an_input_box_takes_the_keys() {
    let dialog =
        dialog("❯ hello\n\n● Hello.\n\nRULE\n  Showing detailed transcript · ctrl+o to toggle");
    assert_eq!(dialog.kind, DialogKind::Other);
    assert!(dialog.options.is_empty());
}

#[test]
fn a_finished_turn_is_idle_and_a_spinner_is_not() {
    let turn = |line: &str| seen(&format!("❯ hello\n\n{line}\n\n{BOX}"));
    assert_eq!(turn("✻ Baked for 8s · done 1:02 AM"), Seen::Idle);
    assert_eq!(turn("✻ Burrowing… (3s · ↓ 22 tokens)"), Seen::Thinking);
    assert_eq!(turn("* Burrowing…\n  ⎿  Tip: use less"), Seen::Thinking);
    assert_eq!(
        turn("✻ 529 Overloaded · Retrying in 3s · attempt 4/10"),
        Seen::Thinking
    );
    assert_eq!(turn("● Some words\n\n✻ Burrowing…"), Seen::Responding);
    // The message of the next turn is not drawn yet.
    let next = "● Some words\n\n✻ Baked for 8s · done 1:02 AM\n\n✢ Forging…";
    assert_eq!(turn(next), Seen::Thinking);
    assert_eq!(
        turn("● Bash(sleep 5)\n  ⎿  Running…\n\n✻ Burrowing…"),
        Seen::ToolRunning
    );
}

/// A line that ends where the next word would not fit looks like one that was wrapped.
#[test]
fn a_command_of_several_rows_is_marked() {
    let asked = |rows: &str| {
        dialog(&format!(
            "RULE\n Bash command\n x\nDASH\n{rows}\nDASH\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        ))
    };
    let hidden = format!(" │ ls #\n │ touch${{IFS}}p;{}", "true;".repeat(8));
    let hidden = asked(&hidden);
    assert!(input(&hidden, "command").is_some_and(|command| command.starts_with("ls # touch")));
    assert!(hidden.several_rows);
    assert!(asked(" │ ls\n │ touch p").several_rows);
    assert!(!asked(" ls").several_rows);
    assert!(!dialog(BASH).several_rows);
}

/// A line break before a row that is indented by a blank looks like wrapping. With a bar beside the command the blank at
/// which a line was wrapped is never shown, without one only behind a row that is full.
#[test]
fn a_row_that_begins_with_a_blank_is_a_line_unless_the_row_above_is_full() {
    let choices = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel";
    let command = |rows: &str| {
        let dialog = dialog(&format!("RULE\n Bash command\n{rows}\n{choices}"));
        assert!(dialog.complete, "{rows}");
        input(&dialog, "command").map(str::to_owned)
    };
    // 54 columns are left for a command, and 56 beside a bar.
    for (length, joint) in [(46, "\n "), (47, "\n "), (48, " ")] {
        let file = "x".repeat(length);
        let plain = command(&format!(
            "\n   touch {file}\n    rm after\n   \x1b[2mMake it\x1b[22m\n"
        ));
        assert_eq!(plain, Some(format!("touch {file}{joint}rm after")));
    }
    for length in 48..=50 {
        let file = "x".repeat(length);
        let barred = command(&format!(
            " Make it\nDASH\n │ touch {file}\n │  rm after\nDASH"
        ));
        assert_eq!(barred, Some(format!("touch {file}\n rm after")));
    }
}

/// A line that ends where the next word has no room looks like a wrapped one. The call above the dialog is wrapped at other
/// places, and may tell.
#[test]
fn the_call_tells_whether_a_line_ends_or_is_wrapped() {
    let (one, two) = ("x".repeat(30), "y".repeat(17));
    let command = |call: &str| {
        let dialog = dialog(&format!(
            "❯ go\n\n● Doing it\n  ⎿  $ {call}\n\nRULE\n Bash command\n x\nDASH\n │ touch {one} {two}\n │ rm after\nDASH\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        ));
        input(&dialog, "command").map(str::to_owned)
    };
    let wrapped = command(&format!("touch {one}\n     {two} rm\n     after"));
    assert_eq!(wrapped, Some(format!("touch {one} {two} rm after")));
    let line = command(&format!("touch {one}\n     {two}\n     rm after"));
    assert_eq!(line, Some(format!("touch {one} {two}\nrm after")));
}

/// The rows of a value of several lines may be one line that was wrapped, in versions with dashed lines and without.
#[test]
fn a_value_that_may_be_wrapped_is_not_whole() {
    let asked = |dashes: &str, value: &str| {
        dialog(&format!(
            "RULE\n Tool use\n\n   demo — Look Tool: (MCP)\n{dashes}\n   what:\n{value}\n   where: \"here\"\n{dashes}\n   About the demo — Look Tool:\n   │ Looks at something\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        ))
    };
    let long = "word ".repeat(COLS / 5 - 2);
    let wrapped = format!("     │ {}\n     │ word and more", long.trim());
    for dashes in ["DASH", ""] {
        assert!(!asked(dashes, &wrapped).complete, "{dashes:?}");
        assert!(
            asked(dashes, "     │ one\n     │ two").complete,
            "{dashes:?}"
        );
    }
}

#[test]
fn a_login_that_is_refused_is_named_while_it_is_tried_again() {
    let login = |line: &str| {
        let text = format!("❯ hello\n\n{line}\n\n{BOX}");
        read(&screen(&text)).notices.login
    };
    let retry = "✻ 401 invalid x-api-key · Retrying in 37s · attempt 7/10";
    assert_eq!(login(retry), Some(Login::Refused));
    let expired = "✻ 401 OAuth token has expired · Retrying in 3s · attempt 4";
    assert_eq!(login(expired), Some(Login::Expired));
    assert_eq!(
        login("✻ 529 Overloaded · Retrying in 3s · attempt 4/10"),
        None
    );
    // What the model says is no spinner.
    assert_eq!(login(&format!("● Look:\n  {retry}")), None);
}

#[test]
fn a_notice_at_the_right_does_not_hide_the_text_that_streams() {
    let text = (1..20)
        .map(|n| format!("  line {n}\n\n"))
        .collect::<String>();
    let notice = " ".repeat(COLS - 12) + "◐ medium";
    let footer = "  ⏸ manual mode on · esc to interrupt";
    let rows = |head: &str| format!("{head}\n{text}{notice}\nRULE\n❯\u{a0}\nRULE\n{footer}");
    assert_eq!(seen(&rows("")), Seen::Responding);
    assert_eq!(seen(&rows("● Bash(make)\n  ⎿  ok")), Seen::Responding);
}

#[test]
fn a_call_that_was_refused_is_not_running_however_it_is_drawn() {
    let after = |outputs: &str, end: &str| {
        seen(&format!(
            "❯ do it\n\n● Running 1 shell command…\n{outputs}\n\n✻ Baked for 0s\n\n{end}{BOX}"
        ))
    };
    let (command, refused) = (
        "  ⎿  $ make",
        "  ⎿  Interrupted · What should Claude do instead?",
    );
    for outputs in [
        format!("{command}\n{refused}"),
        format!("{refused}\n{command}"),
    ] {
        assert_eq!(after(&outputs, ""), Seen::Idle, "{outputs}");
        let next = after(&outputs, "❯ go on\n\n✢ Forging…\n\n");
        assert_eq!(next, Seen::Thinking, "{outputs}");
    }
    assert_eq!(
        after(command, "❯ later\n\n✢ Forging…\n\n"),
        Seen::ToolRunning
    );
}

#[test]
fn an_error_above_the_input_box_is_told() {
    let rows = format!("❯ hello\n  ⎿  API Error: 400 bad\n     request\n\n{BOX}");
    let reading = read(&screen(&rows));
    assert_eq!(reading.seen, Seen::Idle);
    assert_eq!(
        reading.last_error.as_deref(),
        Some("API Error: 400 bad request")
    );
}

fn frame(ms: u64, rows: &str) -> Frame {
    Frame {
        at: Duration::from_millis(ms),
        drawn: Duration::from_millis(ms),
        screen: screen(rows),
        resized: None,
        redrawn: None,
        outdated: false,
    }
}

/// An answer may have rows that look like a call at work; a call has them right below it.
#[test]
fn rows_of_a_call_in_an_answer_are_no_work() {
    for (between, is_idle) in [("", false), ("\n", true)] {
        let rows = format!("● Look:\n{between}  ⎿  $ sleep 8 (4s)\n\n{BOX}");
        let seen = read(&screen(&rows)).seen;
        assert_eq!(seen == Seen::Idle, is_idle, "{seen:?}");
    }
}

/// Some versions leave out what can't be seen, and only say so.
#[test]
fn a_command_with_characters_that_are_not_drawn_is_not_whole() {
    for note in [
        "Contains Unicode whitespace",
        "Contains control characters",
        "Contains invisible format characters",
    ] {
        let noted = BASH.replace(" Do you want", &format!(" {note}\n\n Do you want"));
        assert!(!dialog(&noted).complete, "{note}");
        let quoted = BASH.replace("touch a", &format!("echo '{note}'"));
        assert!(dialog(&quoted).complete, "{note} in the command");
    }
}

/// Where two rows of a value meet there may have been a blank, a line break or nothing.
#[test]
fn a_value_that_is_wrapped_is_not_whole() {
    let value = |first: &str, second: &str| {
        let rows = format!(" what:\n   │ {first}\n   │ {second}\n where: \"here\"");
        let asked = format!(
            "RULE\n Tool use\n\n demo — Look Tool: (MCP)\nDASH\n{rows}\nDASH\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        );
        dialog(&asked)
    };
    let short = value("first line", "second line");
    assert_eq!(short.tool.as_deref(), Some("mcp__demo__look"));
    assert!(short.complete);
    assert!(
        !value(
            "the sky above the harbour, the clouds that come in",
            "from the west"
        )
        .complete
    );
}

#[test]
fn what_a_command_says_does_not_change_the_kind_of_its_dialog() {
    for words in [
        "echo ANTHROPIC_API_KEY: API key",
        "echo exit plan mode",
        "echo do you trust this folder",
        "echo Read(/etc/passwd)",
    ] {
        let dialog = dialog(&BASH.replace("touch a", words));
        assert_eq!(
            (dialog.kind, dialog.tool.as_deref()),
            (DialogKind::Permission, Some("Bash"))
        );
        assert_eq!(input(&dialog, "command"), Some(words));
    }
}

#[test]
fn a_permission_dialog_with_an_unknown_title_names_no_tool() {
    let dialog = dialog(
        &BASH
            .replace("Bash command", "Launch rocket")
            .replace("touch a\n", "Read(/etc/passwd)\n"),
    );
    assert_eq!(
        (dialog.kind, dialog.tool, dialog.input),
        (DialogKind::Permission, None, None)
    );
}

#[test]
fn tools_of_servers_are_named_as_claude_code_names_them() {
    let older = BASH
        .replace("Bash command", "Tool use")
        .replace("touch a\n", "demo - look (MCP)(what: \"a, b\", n: 3)\n");
    let dialog = dialog(&older);
    assert_eq!(dialog.tool.as_deref(), Some("mcp__demo__look"));
    let expected = serde_json::json!({"what": "a, b", "n": 3});
    assert_eq!(dialog.input.map(serde_json::Value::Object), Some(expected));
}

#[test]
fn a_pasted_text_is_recognised_in_the_input_box() {
    let composer = |draft: &str| Composer {
        draft: draft.to_owned(),
        menu: false,
    };
    assert!(composer("one two three").holds("one two\nthree"));
    assert!(composer("漢字 ❤ end").holds("漢字 ❤\u{fe0f} end"));
    assert!(composer("می خواهم").holds("می\u{200c} خواهم"), "a joiner");
    let literal = "[Pasted text #1 +3 lines]";
    assert!(composer(literal).holds(literal), "it is the message itself");
    assert!(!composer("").holds("🙂"));
    assert!(composer("[Pasted text #1 +7 lines]").holds(&["x"; 8].join("\n")));
    assert!(composer("[Pasted text #2]").holds(&"x".repeat(900)));
    assert!(!composer("[Pasted text #1 +7 lines]").holds("x\ny"));
    let long: String = (0..100).map(|n| format!("word{n} ")).collect();
    assert!(composer(&long[300..]).holds(&long));
    assert!(!composer("three").holds("one two three"));
    assert!(!composer("one two").holds("one two three"));
    assert!(!composer("").holds("one"));
}

/// `/model [model]`: what is grey behind the cursor was not typed. What a person has typed behind it is plain.
#[test]
fn the_arguments_that_a_command_takes_are_no_part_of_the_draft() {
    let draft = |row: &str| {
        let reading = read(&screen(&format!("RULE\n{row}\nRULE\n  ? for shortcuts")));
        reading.composer.map(|composer| composer.draft)
    };
    let grey = "\x1b[38;2;153;153;153m [model]\x1b[39m";
    let proposed = draft(&format!("> /model\x1b[7m \x1b[27m{grey}"));
    assert_eq!(proposed.as_deref(), Some("/model"));
    let broken = draft(&format!("> /model\n  \x1b[7m \x1b[27m{grey}"));
    assert_eq!(broken.as_deref(), Some("/model"));
    let typed = draft("> fix\x1b[7m \x1b[27mthe [model]");
    assert_eq!(typed.as_deref(), Some("fix the [model]"));
}

#[test]
fn a_wrapped_address_is_put_together_again() {
    let address = format!("https://docs.example.org/{}", "a".repeat(90));
    let (first, second) = address.split_at(COLS - 6);
    let (second, third) = second.split_at(COLS - 6);
    let body = format!(
        "{first}\n   {second}\n   {third}\n   Claude wants to fetch content from docs.example.org\n"
    );
    let dialog = dialog(
        &BASH
            .replace("Bash command", "Fetch")
            .replace("touch a\n", &body),
    );
    assert_eq!(dialog.tool.as_deref(), Some("WebFetch"));
    assert_eq!(input(&dialog, "url"), Some(address.as_str()));
}

const TOPPINGS: &str = "
RULE
←  ☐ Toppings  ✔ Submit  →

Which toppings?

❯ 1. [ ] Cheese
         yellow
  2. [✔] Ham
         pink
  3. [ ] Type something
     Submit
RULE
  4. Chat about this

Enter to select · ↑/↓ to navigate · Esc to cancel
";

#[test]
fn the_button_of_a_question_is_a_choice_of_its_own() {
    let on_button = TOPPINGS
        .replace("❯ 1.", "  1.")
        .replace("     Submit", "❯    Submit");
    let own_words = TOPPINGS.replace("Type something", "more of it");
    for (rows, selected) in [(TOPPINGS, 0), (&on_button, 3), (&own_words, 0)] {
        let dialog = dialog(rows);
        assert_eq!((dialog.kind, dialog.complete), (DialogKind::Question, true));
        assert_eq!(labels(&dialog)[3..], ["Submit", "Chat about this"]);
        assert_eq!(dialog.options[2].description, None);
        let checked: Vec<Option<bool>> = dialog.options.iter().map(|one| one.checked).collect();
        assert_eq!(checked, [Some(false), Some(true), Some(false), None, None]);
        assert_eq!(
            (dialog.selected, dialog.free_line()),
            (Some(selected), Some(2))
        );
        assert_eq!(input(&dialog, "question"), Some("Which toppings?"));
    }
    let mut observer = Observer::new();
    let mut id = |ms, rows: &str| {
        let observed = observer.see(&frame(ms, rows));
        observed.dialog.clone().map(|dialog| dialog.id)
    };
    let first = id(0, TOPPINGS);
    assert!(first.is_some());
    assert_eq!(id(1, &on_button), first);
    assert_eq!(
        id(2, &own_words),
        first,
        "what is written into it leaves it the same"
    );
}

#[test]
fn the_path_of_a_notebook_is_not_what_is_done_to_it() {
    let rows = "RULE\n Edit notebook\n /home/nb.ipynb\n Replace cell contents for cell c1\nDASH\n  1 -a\n  1 +b\nDASH\n Do you want to make this edit to nb.ipynb?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel";
    let whole = dialog(rows);
    assert_eq!(whole.tool.as_deref(), Some("NotebookEdit"));
    assert_eq!(input(&whole, "notebook_path"), Some("/home/nb.ipynb"));
    let half = dialog(
        "RULE\n Edit notebook\n\n Do you want to make this edit to nb.ipynb?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel",
    );
    assert_eq!((half.input, half.complete), (None, false));
}
