//! A terminal gets another size while a dialog is up.

use super::*;

/// A frame of a terminal that got another size at `resized`, for which the program has not drawn all of its screen.
fn resized_frame(ms: u64, resized: u64, rows: &str, size: (usize, usize)) -> Frame {
    let mut frame = frame(ms, rows);
    (frame.screen.cols, frame.screen.rows) = size;
    frame.resized = Some(Duration::from_millis(resized));
    frame.outdated = true;
    frame
}

#[test]
fn nothing_is_whole_after_a_change_of_size_until_it_is_drawn_again() {
    // The rule above a dialog is as wide as the screen that it was drawn for.
    for (size, whole) in [
        ((COLS, 30), true),
        ((COLS - 1, 30), true),
        ((COLS + 9, 30), false),
    ] {
        let mut observer = Observer::new();
        let first = observer.see(&frame(0, BASH)).dialog.clone();
        let first = first.expect("a dialog");
        assert!(first.complete);
        let observed = observer.see(&resized_frame(100, 100, BASH, size));
        let kept = observed.dialog.clone().expect("the dialog");
        assert_eq!(observed.reading.seen, Seen::Unknown, "no key is safe");
        assert_eq!((&kept.id, kept.complete), (&first.id, false), "{size:?}");
        assert!(observer.awaits_drawing());
        // Another dialog that is drawn has to stand, and meanwhile nobody knows what is asked.
        let mut other = resized_frame(110, 100, &BASH.replace("touch a", "touch b"), size);
        other.outdated = false;
        let kept = observer.see(&other).dialog.clone().expect("the dialog");
        assert_eq!((&kept.id, kept.complete), (&first.id, false), "{size:?}");
        assert!(observer.awaits_drawing());
        let mut again = resized_frame(120, 100, BASH, size);
        again.outdated = false;
        let again = observer.see(&again).dialog.clone().expect("the dialog");
        assert_eq!((&again.id, again.complete), (&first.id, whole), "{size:?}");
    }
}

/// An input box that was drawn for fewer columns is none of this size, and its footer has the words of a view.
#[test]
fn a_screen_of_another_size_is_no_dialog_however_slow_the_program() {
    let mut observer = Observer::new();
    assert_eq!(observer.see(&frame(0, BOX)).state, State::Idle);
    for ms in [100, 1200, 5000, 9000] {
        for text in ["❯ x\n  esc to interrupt", "half a screen", BASH] {
            let mut resized = frame(ms, text);
            resized.screen.cols = 2 * COLS;
            resized.resized = Some(Duration::from_millis(100));
            resized.outdated = true;
            let observed = observer.see(&resized);
            assert_eq!((observed.state, &observed.dialog), (State::Idle, &None));
        }
    }
    observer.wait(Duration::from_secs(11));
    assert_eq!(observer.observed().state, State::Confirming);
}

/// A program on a loaded machine draws for another size seconds later. What the terminal has cut meanwhile is no other
/// dialog, no other state, and not the end of the dialog.
#[test]
fn what_a_terminal_cuts_is_no_news_however_late_the_program_draws() {
    let long = BASH.replace("touch a", "touch a b c d e f g && touch z");
    let cut: String = long.lines().map(|row| format!("{row:.20}\n")).collect();
    let without_options: String = cut.lines().take(4).map(|row| format!("{row}\n")).collect();
    for cut in [&cut, &without_options, BOX, "half a screen"] {
        let mut observer = Observer::new();
        observer.see(&frame(0, BOX));
        let first = observer.see(&frame(10, &long)).dialog.clone();
        let first = first.expect("a dialog");
        assert!(first.complete);
        for (resized, cols) in [(100, 20), (20_000, 30), (40_000, 21)] {
            let mut frame = resized_frame(resized, resized, cut, (cols, 30));
            frame.at += Duration::from_millis(20);
            observer.see(&frame);
            for later in [2000, 11_000, 15_000] {
                observer.wait(Duration::from_millis(resized + later));
                let observed = observer.observed();
                assert_eq!(observed.state, State::Confirming, "{cut}");
                let kept = observed.dialog.as_ref().expect("the dialog");
                assert_eq!((&kept.id, kept.complete), (&first.id, false), "{cut}");
                assert_eq!(kept.input, first.input, "{cut}");
            }
            assert!(!observer.awaits_drawing(), "it is read as it stands");
        }
        let mut again = resized_frame(60_000, 40_000, &long, (COLS, 40));
        again.outdated = false;
        let again = observer.see(&again).dialog.clone().expect("the dialog");
        assert_eq!((again.id, again.complete), (first.id, true), "{cut}");
    }
}

/// A program that was stopped while it drew goes on with rows for a size that is over, and draws again when it gets to it.
#[test]
fn a_dialog_in_place_of_another_must_stand_for_a_second_after_a_change_of_size() {
    let mut observer = Observer::new();
    let first = observer.see(&frame(0, BASH)).dialog.clone();
    let mut other = resized_frame(200, 100, &BASH.replace("touch a", "touch b"), (COLS, 30));
    other.outdated = false;
    observer.see(&other);
    let id = |dialog: &Option<Dialog>| dialog.as_ref().map(|dialog| dialog.id.clone());
    observer.wait(Duration::from_millis(1100));
    assert_eq!(id(&observer.observed().dialog), id(&first));
    observer.wait(Duration::from_millis(1300));
    assert_ne!(id(&observer.observed().dialog), id(&first));
}

/// The same screen without a word of the program is not another state either; once it draws, it is read as it stands.
#[test]
fn a_program_that_never_draws_all_of_its_screen_is_read_as_it_stands() {
    let mut observer = Observer::new();
    observer.see(&frame(0, BASH));
    observer.see(&resized_frame(100, 100, BOX, (20, 30)));
    observer.wait(Duration::from_millis(2000));
    assert_eq!(observer.observed().state, State::Confirming);
    let drawn = resized_frame(2100, 100, BOX, (20, 30));
    assert_eq!(observer.see(&drawn).state, State::Idle);
}

/// On a loaded machine a program gets to draw seconds after the size has changed, and what it draws first may be for a size
/// before.
#[test]
fn a_late_drawing_for_a_size_that_is_over_is_no_other_dialog() {
    let mut observer = Observer::new();
    let first = observer.see(&frame(0, BASH)).dialog.clone();
    let first = first.expect("a dialog");
    let size = (COLS + 9, 30);
    observer.see(&resized_frame(100, 100, BASH, size));
    let late = |ms, rows: &str| {
        let redrawn = Some(Duration::from_millis(3000));
        let mut frame = resized_frame(ms, 100, rows, size);
        (frame.redrawn, frame.outdated) = (redrawn, false);
        frame
    };
    let cut = BASH.replace("touch a", "touch");
    let kept = observer.see(&late(3000, &cut)).dialog.clone();
    let kept = kept.expect("the dialog");
    assert_eq!((&kept.id, kept.complete), (&first.id, false));
    let again = observer.see(&late(3020, BASH)).dialog.clone();
    assert_eq!(again.expect("the dialog").id, first.id);
}

/// Some versions lay a dialog out wrongly after a resize: rows of the command may be missing, and nothing shows it.
#[test]
fn a_call_that_changes_with_the_size_is_not_whole_until_it_is_as_before_or_gone() {
    let mut observer = Observer::new();
    let mut see = |ms, rows: &str, cols| {
        let mut frame = frame(ms, rows);
        frame.screen.cols = cols;
        let dialog = observer.see(&frame).dialog.clone();
        dialog.map(|dialog| dialog.complete)
    };
    let long = BASH.replace("touch a", "touch a && rm b");
    assert_eq!(see(0, &long, COLS), Some(true));
    assert_eq!(see(5000, BASH, COLS - 1), Some(false));
    let marked = BASH.replace("❯ 1. Yes\n   2.", "  1. Yes\n ❯ 2.");
    assert_eq!(see(6000, &marked, COLS - 1), Some(false));
    assert_eq!(see(9000, &long, COLS - 1), Some(true));
    assert_eq!(see(12000, BASH, COLS - 2), Some(false));
    assert_eq!(see(15000, BOX, COLS - 2), None);
    assert_eq!(see(16000, BASH, COLS - 2), Some(true));
}
