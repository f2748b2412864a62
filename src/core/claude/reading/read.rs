//! One screen, read by itself.

use super::composer::Box;
use super::dialog::FoundDialog;
use super::page::Page;
use super::{Composer, Dialog, DialogKind, Login, Notices, Reading, Seen, activity, footer};
use crate::core::claude::vocabulary::AGENTS_TITLE;
use crate::core::terminal::Screen;

/// What a screen shows. Pure and total: the same screen always reads the same.
pub fn read(screen: &Screen) -> Reading {
    let page = Page::new(screen);
    match Box::find(&page) {
        Some(_) if is_session_list(screen) => read_view(FoundDialog::view(&page).dialog()),
        Some(found) if found.types_below(&page) => read_view(unknown_view(screen)),
        Some(found) => match dialog_above(&page, &found) {
            Some(dialog) => read_view(dialog),
            None => read_conversation(&page, &found),
        },
        None => match Box::outgrown(&page).or_else(|| Box::cut_below(&page)) {
            Some(composer) => read_outgrown(composer),
            None => read_without_box(&page),
        },
    }
}

/// Some versions leave the spinner and the input box standing below a dialog. It has the keys where the cursor is
/// parked on its marker: what is printed on the screen can look like a dialog, but can't take the cursor there.
fn dialog_above(page: &Page, found: &Box) -> Option<Dialog> {
    let end = activity::spinner(page, found.top()).unwrap_or(found.top());
    dialog_with_cursor(page, end)
}

fn dialog_with_cursor(page: &Page, end: usize) -> Option<Dialog> {
    if page.screen().cursor.row >= end {
        return None;
    }
    let above = page.above_row(end);
    let dialog = FoundDialog::find(&above).filter(FoundDialog::has_the_cursor)?;
    Some(dialog.dialog())
}

/// Below a dialog that is taller than the screen the upper rule of the input box may be left, with the session's name
/// in it. It is not the head of the dialog, which has the keys where the cursor is parked on its marker.
fn dialog_over_a_rule(page: &Page) -> Option<Dialog> {
    let last = page.len().checked_sub(1).filter(|row| page.is_rule(*row))?;
    dialog_with_cursor(page, last)
}

/// What goes on is off the screen, and so is not known; but the keys go into the draft, and into no view.
fn read_outgrown(composer: Composer) -> Reading {
    Reading {
        composer: Some(composer),
        ..without_box(
            Seen::Unknown,
            vec!["a draft that is longer than the screen".to_owned()],
        )
    }
}

/// The screen as a view of which nothing is known but that it takes the keys.
pub(super) fn unknown_view(screen: &Screen) -> Dialog {
    Dialog {
        kind: DialogKind::Other,
        tool: None,
        input: None,
        ..FoundDialog::unknown(&Page::new(screen)).dialog()
    }
}

/// The screen as a question that the program asks before it is up.
pub(super) fn start_view(screen: &Screen) -> Dialog {
    Dialog {
        kind: DialogKind::Other,
        tool: None,
        input: None,
        ..FoundDialog::at_start(&Page::new(screen)).dialog()
    }
}

/// The list of sessions has an input box as well, but what is typed there begins another session.
fn is_session_list(screen: &Screen) -> bool {
    screen.title.ends_with(AGENTS_TITLE)
}

fn read_view(dialog: Dialog) -> Reading {
    let because = vec![describe(&dialog)];
    without_box(Seen::Dialog(dialog), because)
}

/// A page with an input box at its bottom: idle, or at work.
fn read_conversation(page: &Page, found: &Box) -> Reading {
    let footer = found.footer(page);
    let composer = found.composer(page);
    let spinner = activity::spinner(page, found.top());
    let background = footer::background(&footer).max(activity::background(page, found.top()));
    let signs = Signs {
        spinner: spinner.is_some(),
        interruptible: footer::interruptible(&footer),
        // A draft or a status line takes the footer's place, and streaming text that of the spinner; a greyed prompt
        // tells then, where there are colours. A title is easily forged, and work in the background turns its sign too.
        title: background == 0 && page.is_plain() && is_moving_title(&page.screen().title),
        pending: activity::is_call_pending(page, spinner.unwrap_or(found.top())),
        prompt: found.is_prompt_muted(page),
    };
    let still = || activity::still_spinner(page, found.top()).filter(|_| signs.any());
    let end = spinner.or_else(still).unwrap_or(found.top());
    let seen = match () {
        () if !is_listening(page.screen()) => Seen::Exited,
        () if signs.any() => activity::busy(page, end),
        () => Seen::Idle,
    };
    let mut because = vec![format!(
        "an input box in rows {} to {}",
        found.top() + 1,
        found.bottom() + 1
    )];
    because.extend(signs.words());
    if seen == Seen::Exited {
        because.push("the program has taken back its terminal modes".to_owned());
    }
    let last_error = if seen == Seen::Idle {
        activity::last_error(page, end).or_else(|| activity::login_notice(page, found.top()))
    } else {
        None
    };
    let notices = Notices {
        context_left: footer::context_left(&footer),
        compacting: spinner.is_some_and(|row| activity::is_compacting(page, row)),
        login: last_error
            .as_deref()
            .and_then(Login::read)
            .or_else(|| Login::read(activity::tried_again(page, spinner?)?))
            .or_else(|| footer.iter().find_map(|line| Login::read(line))),
    };
    Reading {
        notices,
        mode: footer::mode(&footer),
        background,
        composer: Some(composer),
        last_error,
        seen,
        because,
    }
}

fn read_without_box(page: &Page) -> Reading {
    let dialog = dialog_over_a_rule(page);
    match dialog.or_else(|| FoundDialog::find(page).map(|found| found.dialog())) {
        Some(dialog) => read_view(dialog),
        None if is_listening(page.screen()) => without_box(
            Seen::Unknown,
            vec!["neither an input box nor a dialog that is known".to_owned()],
        ),
        None => without_box(
            Seen::Starting,
            vec!["nothing listens on the terminal".to_owned()],
        ),
    }
}

fn without_box(seen: Seen, because: Vec<String>) -> Reading {
    Reading {
        seen,
        composer: None,
        mode: None,
        last_error: None,
        background: 0,
        notices: Notices::default(),
        because,
    }
}

fn describe(dialog: &Dialog) -> String {
    let whole = if dialog.complete { "whole" } else { "cut" };
    let tool = dialog.tool.as_deref().unwrap_or("no tool");
    format!(
        "a {whole} dialog ({:?}, {tool}) with {} choices",
        dialog.kind,
        dialog.options.len()
    )
}

/// Whether a program reads its input as Claude Code does. One that ends shows the cursor again and
/// takes its modes back, some versions only the reports of focus.
fn is_listening(screen: &Screen) -> bool {
    let modes = screen.modes;
    modes.focus_reporting || modes.bracketed_paste && !screen.cursor.visible
}

/// The first sign of the title turns while Claude Code works, and is `✳` at rest.
pub(super) fn is_moving_title(title: &str) -> bool {
    title.starts_with(|c: char| ('\u{2800}'..='\u{28ff}').contains(&c) || ('◐'..='◓').contains(&c))
}

/// The signs of work.
struct Signs {
    spinner: bool,
    interruptible: bool,
    title: bool,
    pending: bool,
    prompt: bool,
}

impl Signs {
    fn any(&self) -> bool {
        self.spinner || self.interruptible || self.title || self.pending || self.prompt
    }

    fn words(&self) -> impl Iterator<Item = String> {
        let signs = [
            (self.spinner, "a spinner above it"),
            (self.interruptible, "the footer offers to interrupt"),
            (self.title, "the sign in the title turns"),
            (self.pending, "a call above it has no result yet"),
            (self.prompt, "its prompt is greyed"),
        ];
        signs
            .into_iter()
            .filter(|(seen, _)| *seen)
            .map(|(_, words)| words.to_owned())
    }
}
