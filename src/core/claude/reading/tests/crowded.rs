//! Screens that are too small for what is on them, and looks of single versions.

use super::*;

#[test]
fn a_thought_is_no_call() {
    let rows = format!("> so\n\n∴ Thinking…\n\n✻ Perusing… (esc to interrupt)\n\n{BOX}");
    assert_eq!(seen(&rows), Seen::Thinking);
}

#[test]
fn a_full_label_may_leave_no_blank_behind_the_marker() {
    let dialog = dialog(
        "RULE\n ☐ Way\n\nWhich way?\n\n❯1. Along the river by the old mill and over the bridge into\n  the wood\n  2. Back\n     the short way\n\nEnter to select · Esc to cancel",
    );
    assert_eq!(dialog.kind, DialogKind::Question);
    assert_eq!(dialog.selected, Some(0));
    let along = "Along the river by the old mill and over the bridge into the wood";
    assert_eq!(labels(&dialog), [along, "Back"]);
}

#[test]
fn a_dialog_without_its_head_is_known_by_what_it_asks() {
    let create = dialog(
        " 119 line\n 120 line\nDASH\n Do you want to create tall.txt?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel",
    );
    assert_eq!(create.tool.as_deref(), Some("Write"));
    assert_eq!(input(&create, "file_path"), Some("tall.txt"));
    let command = dialog(
        "   mkfifo p7 && mkfifo p8\n\n This command requires approval\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No",
    );
    assert_eq!(
        (command.tool.as_deref(), &command.input),
        (Some("Bash"), &None)
    );
    let pane = dialog(
        " Make a pipe\nDASH\n │ mkfifo p7 &&\n │ mkfifo p8\nDASH\n This command requires approval\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No",
    );
    assert_eq!(input(&pane, "command"), Some("mkfifo p7 &&\nmkfifo p8"));
    let plan = dialog(
        " 79. The end\nDASH\n\n Would you like to proceed?\n\n ❯ 1. Yes, and auto-accept edits\n   2. Type here to tell Claude what to change",
    );
    assert_eq!(plan.kind, DialogKind::Plan);
    let quoted = dialog("   a command\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No");
    assert_eq!(quoted.tool, None);
    assert!(
        [create, command, pane, plan, quoted]
            .iter()
            .all(|dialog| !dialog.complete)
    );
}

#[test]
fn the_name_of_an_agent_behind_a_title_is_no_path() {
    let of_agent = |title: &str, rows: &str| {
        dialog(&format!(
            "RULE\n {title} · from the general-purpose agent\n{rows}\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        ))
    };
    let change = " lib/evil.txt\nDASH\n  1 evil\nDASH\n Do you want to create evil.txt?";
    for (title, tool) in [
        ("Create file", "Write"),
        ("Overwrite file", "Write"),
        ("Edit file", "Edit"),
    ] {
        let file = of_agent(title, change);
        assert_eq!(file.tool.as_deref(), Some(tool));
        assert_eq!(input(&file, "file_path"), Some("lib/evil.txt"), "{title}");
    }
    let bash = of_agent(
        "Bash command",
        "\n   ls\n   List\n\n Do you want to proceed?",
    );
    assert_eq!(bash.tool.as_deref(), Some("Bash"));
    let skill = of_agent("Use skill \"pdf\"?", "\n Do you want to proceed?");
    assert_eq!(skill.tool.as_deref(), Some("Skill"));
    assert_eq!(input(&skill, "skill"), Some("pdf"));
    let framed = of_agent(
        "Create file",
        "DASH\n lib/ok.txt\nDASH\n Do you want to create it?",
    );
    assert_eq!(
        input(&framed, "file_path"),
        None,
        "the path is behind the title"
    );
    let named = dialog(
        "RULE\n Create file a · from the b agent\nDASH\n 1 x\nDASH\n Do you want to create it?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel",
    );
    let path = "a · from the b agent";
    assert_eq!(input(&named, "file_path"), Some(path));
    let wrapped = dialog(
        "RULE\n Create file · from the general-purpose\n agent\n lib/evil.txt\nDASH\n 1 x\nDASH\n Do you want to create it?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel",
    );
    assert_eq!(input(&wrapped, "file_path"), None);
}

#[test]
fn a_pane_with_more_below_is_not_whole() {
    let plan = |edge: &str| {
        let row = format!("{:57}{edge}", "   1. Look");
        dialog(&format!(
            "RULE\n Ready to code?\n\n Here is the plan:\nDASH\n{row}\nDASH\n Would you like to proceed?\n\n ❯ 1. Yes, and use auto mode\n   2. No"
        ))
    };
    assert!(plan("").complete);
    assert!(!plan("↓").complete);
}

/// Grep and Glob are shown by the same word: a rule for one of them must not answer for the other.
#[test]
fn a_search_is_told_from_a_read_by_its_call_and_names_a_tool_if_only_one_can_make_it() {
    let search = |values: &str| {
        let rows = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel";
        dialog(&format!("RULE\n Read file\n\n  Search({values})\n\n{rows}"))
    };
    let either = search(r#"pattern: "root", path: "/etc""#);
    assert_eq!(either.tool, None);
    assert_eq!(input(&either, "pattern"), Some("root"));
    assert_eq!(input(&either, "path"), Some("/etc"));
    let grep = search(r#"pattern: "root", path: "/etc", type: "rs""#);
    assert_eq!(grep.tool.as_deref(), Some("Grep"));
}

/// The upper rule of the box is off the screen, and what stood above it.
#[test]
fn a_draft_longer_than_the_screen_keeps_the_state() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BOX));
    let grown = "  row 11\n  row 12\n  \x1b[7m \x1b[0m\nRULE\n   Thinking on (tab to toggle)";
    observer.see(&frame(10, grown));
    assert_eq!(observer.wait(At::MAX), None);
    let observed = observer.observed();
    assert_eq!((observed.state, &observed.dialog), (State::Idle, &None));
    let draft = observed
        .reading
        .composer
        .as_ref()
        .map(|composer| composer.draft.as_str());
    assert_eq!(draft, Some("row 11\nrow 12"));
    observer.see(&frame(
        20,
        "  row 11\n  a \x1b[7mf\x1b[0mield\nRULE\n  Enter to select · Esc to cancel",
    ));
    assert_eq!(observer.observed().state, State::Confirming);
}

#[test]
fn a_question_without_its_head_is_known_by_the_list_that_a_rule_divides() {
    let dialog = dialog(
        "light is going?\n\n❯1. Along the river by the old mill and over the bridge into\n  2. Back\n     the short way\n  3. Type something.\nRULE\n  4. Chat about this\n\nEnter to select · Esc to cancel",
    );
    assert_eq!(dialog.kind, DialogKind::Question);
    assert_eq!((dialog.options.len(), dialog.selected), (4, Some(0)));
    assert_eq!(input(&dialog, "question"), Some("light is going?"));
    assert!(!dialog.complete);
}

#[test]
fn a_rule_between_a_plan_and_its_choices_is_not_its_head() {
    let rows = " Ready to code?\n\n Here is the plan:\nDASH\n 1. Look\nDASH\n\nRULE\n It is written up. Would you\n like to proceed?\n\n ❯ 1. Yes, and use auto mode\n   2. No";
    let whole = dialog(&format!("RULE\n{rows}"));
    assert_eq!((whole.kind, whole.complete), (DialogKind::Plan, true));
    assert!(whole.text.contains("1. Look"), "{}", whole.text);
    let cut = dialog(rows);
    assert_eq!((cut.kind, cut.complete), (DialogKind::Plan, false));
}

#[test]
fn a_field_below_the_input_box_takes_the_keys() {
    let below = "RULE\n❯ \nRULE\n  search prompts: \x1b[7m \x1b[0m";
    assert_eq!(dialog(below).kind, DialogKind::Other);
    let inside = "RULE\n❯ \x1b[7m \x1b[0m\nRULE\n  search prompts:";
    assert_eq!(seen(inside), Seen::Idle);
}

/// As 2.1.140 draws what some tools ask.
#[test]
fn a_dialog_above_the_input_box_counts_where_the_cursor_is_parked_on_it() {
    let rows = "● Fetch(https://docs.rs)\n\nRULE\n Fetch\n\n   url: \"https://docs.rs\"\n\n Do you want to allow Claude to fetch this content?\n ❯ 1. Yes\n   2. No\n\n✻ Zesting… (7s)\n\nRULE\n❯ \nRULE\n  esc to interrupt";
    let parked = dialog(&format!("{rows}\x1b[9;2H"));
    assert_eq!(parked.tool.as_deref(), Some("WebFetch"));
    assert_eq!((parked.selected, parked.complete), (Some(0), true));
    assert_eq!(seen(&format!("{rows}\x1b[15;3H")), Seen::ToolRunning);
    assert_eq!(seen(&format!("{rows}\x1b[10;2H")), Seen::ToolRunning);
}

/// As 2.0.50 draws a label that fills its row.
#[test]
fn the_marker_may_stand_in_a_later_row_of_its_choice() {
    let dialog = dialog(
        "● Bash(mkfifo p)\n\nRULE\n Bash command\n\n   mkfifo p\n\n Do you want to proceed?\n   1. Yes\n  2. Yes, and don't ask again for mkfifo p and rm p commands\n ❯ in /home/user/project\n  3. Type here to tell Claude what to do differently\n\n\n Esc to exit",
    );
    let always = "Yes, and don't ask again for mkfifo p and rm p commands in /home/user/project";
    let differently = "Type here to tell Claude what to do differently";
    assert_eq!(labels(&dialog), ["Yes", always, differently]);
    assert_eq!((dialog.selected, dialog.complete), (Some(1), true));
    assert_eq!(dialog.tool.as_deref(), Some("Bash"));
}

/// As 2.1.30 draws one that is a little longer than its row.
#[test]
fn the_marker_may_stand_alone_below_its_choice() {
    let dialog = dialog(
        "RULE\n Bash command\n\n   mkfifo p\n\n Do you want to proceed?\n   1. Yes\n  2. Yes, and always allow access to project/ from this proj\n ❯\n   3. No\n\n Esc to cancel",
    );
    assert_eq!((dialog.options.len(), dialog.selected), (3, Some(1)));
    assert_eq!(dialog.kind, DialogKind::Permission);
}

#[test]
fn a_spinner_that_says_so_is_thinking() {
    let rows = |spinner: &str| format!("❯ so\n\n  Thinking\n  ⎿  Hmm…\n\n{spinner}\n\n{BOX}");
    assert_eq!(seen(&rows("✽ Crafting… (thinking)")), Seen::Thinking);
    assert_eq!(
        seen(&rows("✽ Crafting… (2s · thinking with high effort)")),
        Seen::Thinking
    );
    let runs = format!("● Bash(sleep 5)\n  ⎿  Running…\n\n✽ Crafting… (2s · thinking)\n\n{BOX}");
    assert_eq!(seen(&runs), Seen::ToolRunning);
}

#[test]
fn a_list_may_push_the_input_box_up() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BOX));
    let rows =
        "> look at @a\x1b[7m \x1b[0m\nRULE\n  a.txt\n  agent-Plan\n      Agent: plans\n  fake.txt";
    observer.see(&frame(10, rows));
    assert_eq!(observer.wait(At::MAX), None);
    assert_eq!(observer.observed().state, State::Idle);
    let composer = observer.observed().reading.composer.clone();
    assert!(composer.is_some_and(|composer| composer.menu && composer.draft == "look at @a"));
}

#[test]
fn a_call_without_its_title_is_named_by_its_row_or_by_a_label() {
    let rest = "\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don't ask again for demo - look commands in /p\n   3. No\n\n Esc to cancel";
    let shown = dialog(&format!(
        "   demo - look(what: \"the sky\") (MCP)\n   Looks{rest}"
    ));
    assert_eq!(shown.tool.as_deref(), Some("mcp__demo__look"));
    assert_eq!(input(&shown, "what"), Some("the sky"));
    let gone = dialog(&format!("   Looks at something{rest}"));
    assert_eq!(
        (gone.tool.as_deref(), &gone.input),
        (Some("mcp__demo__look"), &None)
    );
    assert!(!shown.complete && !gone.complete);
}

/// As 2.0.76 draws one that is longer still.
#[test]
fn a_word_of_a_label_may_stand_at_the_very_left() {
    let rows = |second: &str| {
        dialog(&format!(
            "RULE\n Bash command\n\n   mkfifo p\n\n Do you want to proceed?\n   1. Yes\n  2.Yes, and don't ask again for mkfifo p and rm p commands\nin\n{second}\n\n   3. No"
        ))
    };
    let always = "Yes, and don't ask again for mkfifo p and rm p commands in /home/user/project";
    let marked = rows(" ❯  /home/user/project");
    assert_eq!(labels(&marked), ["Yes", always, "No"]);
    assert_eq!(marked.selected, Some(1));
}

#[test]
fn an_address_of_several_rows_has_a_bar_beside_it() {
    let first = format!("http://h/{}", "z".repeat(42));
    let rows = format!(
        "RULE\n Fetch\n Claude wants to fetch content from h\nDASH\n │ url: {first}\n │ zzz\n prompt: what?\nDASH\n Do you want to allow Claude to fetch this content?\n ❯ 1. Yes\n   2. No"
    );
    let url = format!("{first}zzz");
    assert_eq!(input(&dialog(&rows), "url"), Some(url.as_str()));
}

#[test]
fn a_title_that_turns_is_work_only_where_there_are_no_colours() {
    let with_title = |rows: &str| {
        let title = "◐ Claude Code".to_owned();
        let page = Screen {
            title,
            ..screen(rows)
        };
        read(&page).seen
    };
    let plain = format!("● Hello\n\n{BOX}");
    assert_ne!(with_title(&plain), Seen::Idle, "nothing else can tell");
    let grey = plain.replace("  ? for", "\x1b[2m  ? for");
    assert_eq!(with_title(&grey), Seen::Idle, "a title is easily forged");
}

#[test]
fn a_label_may_begin_with_a_digit() {
    let asked = |rows: &str| {
        dialog(&format!(
            "RULE\n ☐ Indent\n\nHow wide?\n\n{rows}\nRULE\n  5. Chat about this\n\nEnter to select · Esc to cancel"
        ))
    };
    let mixed = asked(
        "❯ 1. Tabs\n     as wide as you like\n  2. 2 spaces\n  3. 4 spaces\n  4. Type something.",
    );
    let all = [
        "Tabs",
        "2 spaces",
        "4 spaces",
        "Type something.",
        "Chat about this",
    ];
    assert_eq!(labels(&mixed), all);
    let digits = asked("❯ 1. 2 spaces\n  2. 4 spaces\n  3. 2.5 cm\n  4. Type something.");
    let all = [
        "2 spaces",
        "4 spaces",
        "2.5 cm",
        "Type something.",
        "Chat about this",
    ];
    assert_eq!(labels(&digits), all);
    assert_eq!((digits.selected, digits.complete), (Some(0), true));
    let version =
        asked("❯ 1. Now\n     2.5 hours of work\n  2. Later\n  3. Never\n  4. Type something.");
    assert_eq!(
        version.options[0].description.as_deref(),
        Some("2.5 hours of work")
    );
}

/// As 2.1.325 draws a named session: the upper rule of its input box is left at the bottom.
#[test]
fn a_rule_below_a_tall_dialog_is_not_its_head() {
    let name = format!("{} my session ─", "─".repeat(COLS - 13));
    let rows = format!(
        " │ make a\n │ make b\nDASH\n This command requires approval\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don’t ask again for: make *\n   3. No\n\n Esc to cancel · Tab to amend\n\n{name}"
    );
    let parked = dialog(&format!("{rows}\x1b[7;2H"));
    assert_eq!(
        (parked.kind, parked.complete),
        (DialogKind::Permission, false)
    );
    assert_eq!(parked.tool.as_deref(), Some("Bash"));
    assert_eq!((parked.options.len(), parked.selected), (3, Some(0)));
    // Without the cursor it may be quoted by what has been said, the input box being half drawn.
    let quoted = dialog(&rows);
    assert_eq!((quoted.kind, quoted.complete), (DialogKind::Other, false));
    assert!(quoted.options.is_empty());
}

#[test]
fn a_menu_that_goes_on_beyond_the_screen_is_not_whole() {
    let menu = |rows: &str| {
        dialog(&format!(
            "RULE\n Settings\n\n{rows}\n\n Enter to change · Esc to close"
        ))
    };
    let list = " ❯ Auto-compact   true\n   Show tips      true\n   Theme          dark";
    assert!(menu(list).complete);
    for note in [
        "   ↓ 14 more",
        "   ↓ 9 more below",
        "      … +3 models",
        " ↓ Verbose        true",
    ] {
        assert!(!menu(&format!("{list}\n{note}")).complete, "{note}");
    }
    assert!(!menu(&format!("   ↑ 3 more\n{list}")).complete);
    assert!(!menu(" ❯ 1. One\n   2. Two\n ↓ 3. Three").complete);
    assert!(menu(&format!("{list}\n\n ↓ to select")).complete);
    let counted = |title: &str| {
        dialog(&format!(
            "RULE\n {title}\n\n ❯ one\n   two\n\n Esc to cancel"
        ))
    };
    assert!(counted("Resume session (1 of 2)").complete);
    assert!(!counted("Resume session (1 of 17)").complete);
}

#[test]
fn what_nobody_listens_behind_is_no_work() {
    let mut observer = Observer::new();
    let busy = format!("❯ hello\n\n✻ Burrowing…\n\n{BOX}");
    assert_eq!(observer.see(&frame(0, &busy)).state, State::Thinking);
    let mut crashed = frame(10, "  ERROR  it is not defined\n\n - at main (cli.js:1:1)");
    crashed.screen.modes = Default::default();
    crashed.screen.cursor.visible = true;
    crashed.screen.title = "✳ Claude Code".to_owned();
    assert_eq!(
        observer.see(&crashed).state,
        State::Thinking,
        "it may be drawn on"
    );
    assert!(observer.wait(Duration::from_millis(400)).is_some());
    let id = observer
        .observed()
        .dialog
        .clone()
        .map(|dialog| (dialog.kind, dialog.id));
    assert_eq!(observer.observed().state, State::Confirming);
    assert!(
        id.as_ref()
            .is_some_and(|(kind, _)| *kind == DialogKind::Other)
    );
    crashed.at = Duration::from_millis(500);
    let still = observer.see(&crashed).dialog.clone();
    assert_eq!(still.map(|dialog| (dialog.kind, dialog.id)), id);
    assert_eq!(observer.see(&frame(600, BOX)).state, State::Idle);
}

/// As 2.1.50 draws `/login`, `/sandbox` and others: nothing of it is known.
#[test]
fn a_menu_that_nobody_knows_is_no_rest() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BOX));
    let menu = "❯ /login\n\n\n Select login method:\n\n ❯ 1. Claude account\n\n   2. Anthropic Console account\n\n   3. 3rd-party platform";
    observer.see(&frame(10, menu));
    observer.wait(Duration::from_millis(400));
    let observed = observer.observed();
    assert_eq!(observed.state, State::Confirming);
    let dialog = observed.dialog.as_ref().expect("a view");
    let all = [
        "Claude account",
        "Anthropic Console account",
        "3rd-party platform",
    ];
    assert_eq!(
        (dialog.kind, labels(dialog)),
        (DialogKind::Other, all.to_vec())
    );
    assert!(!dialog.complete);
}

#[test]
fn a_tick_may_stand_in_front_of_a_label() {
    let menu = |rows: &str| {
        dialog(&format!(
            "RULE\n Theme\n\n{rows}\n\n Enter to select · Esc to cancel"
        ))
    };
    let ticked = menu("     Auto\n ❯ ✔ Dark mode\n     Light mode\n     New theme…");
    let all = ["Auto", "Dark mode", "Light mode", "New theme…"];
    assert_eq!((labels(&ticked), ticked.selected), (all.to_vec(), Some(1)));
    let other = menu("     Auto\n   ✔ Dark mode\n ❯   Light mode\n     New theme…");
    assert_eq!((labels(&other), other.selected), (all.to_vec(), Some(2)));
}

#[test]
fn what_is_muted_below_a_label_says_more_of_it() {
    let menu = |rows: &str| {
        dialog(&format!(
            "RULE\n Sessions\n\n   work\n\n{rows}\n\n Enter to select · Esc to cancel"
        ))
    };
    let grey = |text: &str| format!("\x1b[2m{text}\x1b[0m");
    let first = format!(" ❯ hello\n   {}", grey("2 minutes ago"));
    let second = format!("   later\n   {}", grey("1 hour ago"));
    let both = menu(&format!("{first}\n\n{second}"));
    assert_eq!(labels(&both), ["hello", "later"]);
    let said: Vec<_> = both
        .options
        .iter()
        .map(|one| one.description.as_deref())
        .collect();
    assert_eq!(said, [Some("2 minutes ago"), Some("1 hour ago")]);
    let current = menu(&format!("{second}\n\n ❯ (current)"));
    assert_eq!(
        (labels(&current), current.selected),
        (vec!["later", "(current)"], Some(1))
    );
    let plain = menu(" ❯ one\n   two");
    assert_eq!(labels(&plain), ["one", "two"]);
}
