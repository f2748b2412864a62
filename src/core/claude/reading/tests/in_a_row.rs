//! What several frames in a row come to.

use super::*;

#[test]
fn a_dialog_keeps_its_id_while_it_is_up_and_no_longer() {
    let mut observer = Observer::new();
    let mut id = |ms, rows: &str| {
        observer
            .see(&frame(ms, rows))
            .dialog
            .clone()
            .map(|dialog| dialog.id)
    };
    let first = id(100, BASH).expect("a dialog");
    let moved = BASH.replace(" ❯ 1. Yes\n   2. No", "   1. Yes\n ❯ 2. No");
    assert_eq!(id(200, &moved), Some(first.clone()));
    let other = id(300, &BASH.replace("touch a", "touch b")).expect("a dialog");
    assert_ne!(other, first);
    assert_eq!(id(400, BOX), None);
    assert_ne!(id(500, BASH).expect("a dialog"), first);
}

/// Between two pages there may be nothing for a while; a page with nothing on it that stays is one nobody knows.
#[test]
fn an_empty_screen_is_no_view_at_once() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BOX));
    observer.see(&frame(100, ""));
    observer.wait(Duration::from_millis(2900));
    assert_eq!(observer.observed().state, State::Idle);
    observer.wait(Duration::from_millis(3200));
    assert_eq!(observer.observed().state, State::Confirming);
}

#[test]
fn an_unknown_screen_holds_the_state() {
    let mut observer = Observer::new();
    assert_eq!(observer.see(&frame(0, "loading")).state, State::Starting);
    assert_eq!(observer.see(&frame(1, BOX)).state, State::Idle);
    let observed = observer.see(&frame(2, "half a screen"));
    assert_eq!(
        (observed.state, &observed.reading.seen),
        (State::Idle, &Seen::Unknown)
    );
    assert_eq!(observer.exited().state, State::Exited);
}

/// The oldest versions draw their input box before they listen.
#[test]
fn a_program_that_does_not_listen_yet_has_not_ended() {
    let mut terminal = Terminal::new(COLS, 30);
    let mut observer = Observer::new();
    let rows = BOX.replace("RULE", &"─".repeat(COLS)).replace('\n', "\r\n");
    for (ms, bytes) in [
        (0, rows.as_str()),
        (5, "\x1b[?25l"),
        (40, "\x1b[?2004h\x1b[?1004h"),
    ] {
        terminal.feed(At::from_millis(ms), bytes.as_bytes());
        let frame = Frame {
            at: At::from_millis(ms),
            drawn: At::from_millis(ms),
            screen: terminal.screen(),
            resized: None,
            redrawn: None,
            outdated: false,
        };
        let expected = if ms < 40 {
            State::Starting
        } else {
            State::Idle
        };
        assert_eq!(observer.see(&frame).state, expected, "at {ms} ms");
    }
}

#[test]
fn a_full_screen_view_that_stays_unknown_takes_the_keys() {
    let mut observer = Observer::new();
    assert_eq!(observer.see(&frame(0, BOX)).state, State::Idle);
    let mut unknown = frame(1, "Welcome to the tour");
    unknown.screen.modes.alt_screen = true;
    assert_eq!(
        observer.see(&unknown).state,
        State::Idle,
        "it may be half drawn"
    );
    assert_eq!(observer.wait(Duration::from_millis(300)), None);
    assert_eq!(
        observer.wait(Duration::from_millis(900)),
        Some(Duration::from_millis(301))
    );
    let observed = observer.observed();
    assert_eq!(observed.state, State::Confirming);
    assert_eq!(
        observed.dialog.as_ref().map(|dialog| dialog.kind),
        Some(DialogKind::Other)
    );
    assert_eq!(observer.see(&frame(1000, BOX)).state, State::Idle);
}

#[test]
fn a_program_has_ended_when_it_has_given_everything_back() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BOX));
    let mut left = frame(1, "");
    left.screen.modes = Default::default();
    left.screen.title = "✳ Claude Code".to_owned();
    assert_eq!(observer.see(&left).state, State::Idle);
    left.screen.title.clear();
    assert_eq!(observer.see(&left).state, State::Exited);
}

#[test]
fn a_line_of_replay_has_the_time_of_the_last_byte_of_its_screen() {
    let cast = "{\"version\": 2, \"width\": 80, \"height\": 24}\n[0.5, \"o\", \"a\"]\n[0.51, \"o\", \"b\"]\n[0.9, \"o\"\n[1, \"o\", \"c\"]\n";
    let recording = crate::core::cast::Recording::read(cast.as_bytes()).expect("a header");
    let mut told = replay(recording);
    let first = told
        .next()
        .expect("a line")
        .expect("what came before the broken line");
    assert_eq!((first.t, first.state), (0.51, State::Starting));
    assert!(told.next().expect("an error").is_err());
    assert!(told.next().is_none());
}
