use super::*;
use proptest::prelude::*;

fn at(ms: u64) -> At {
    Duration::from_millis(ms)
}

fn text(screen: &Screen) -> Vec<&str> {
    let lines: Vec<&str> = screen.lines.iter().map(|line| line.text.as_str()).collect();
    let used = lines
        .iter()
        .rposition(|line| !line.is_empty())
        .map_or(0, |row| row + 1);
    lines[..used].to_vec()
}

fn times(frames: &[Frame]) -> Vec<u64> {
    frames
        .iter()
        .map(|frame| frame.at.as_millis() as u64)
        .collect()
}

#[test]
fn a_terminal_can_live_in_a_task() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Terminal::new(20, 4));
}

#[test]
fn the_rows_of_a_wrapped_line_are_one() {
    let mut terminal = Terminal::new(10, 4);
    terminal.feed(
        at(0),
        b"first\r\n0123456789abcdef\r\n\r\nnine and a half\r\nlast",
    );
    let whole = ["first", "0123456789abcdef", "", "nine and a half", "last"];
    assert_eq!(terminal.whole_lines(10), whole);
    assert_eq!(terminal.whole_lines(2), whole[3..]);
    assert_eq!(terminal.whole_lines(4), whole[1..]);
    let mut wide = Terminal::new(5, 4);
    wide.feed(at(0), "\u{5b57}\u{5b57}\u{5b57}".as_bytes());
    assert_eq!(wide.whole_lines(2), ["\u{5b57}\u{5b57}\u{5b57}"]);
    assert_eq!(Terminal::new(5, 4).whole_lines(2), [""; 0]);
}

#[test]
fn a_frame_is_due_after_silence() {
    let mut terminal = Terminal::new(20, 4);
    assert!(terminal.feed(at(0), b"he").is_empty());
    assert!(terminal.feed(at(19), b"llo").is_empty());
    assert!(terminal.quiet(at(38)).is_empty());
    let frames = terminal.quiet(at(39));
    assert_eq!(times(&frames), [39]);
    assert_eq!(text(&frames[0].screen), ["hello"]);
    assert!(terminal.quiet(at(5000)).is_empty(), "a frame is due once");
}

/// The first frame of a burst is read at once, and then the screen once in 5 ms, as it stood whole.
#[test]
fn a_burst_of_marked_frames_is_read_now_and_then() {
    let frame = |text: &str| format!("\x1b[?2026h\r{text}\x1b[?2026l").into_bytes();
    let mut terminal = Terminal::new(20, 4);
    assert_eq!(times(&terminal.feed(at(100), &frame("one"))), [100]);
    assert!(terminal.feed(at(101), &frame("two")).is_empty());
    assert!(terminal.is_drawing(), "there is something to be read");
    assert!(terminal.feed(at(104), &frame("three")).is_empty());
    let frames = terminal.feed(at(107), b"\rhalf of");
    assert_eq!(times(&frames), [105]);
    assert_eq!(text(&frames[0].screen), ["three"]);
    assert_eq!(frames[0].drawn, at(104));
    // Since 105 less than 5 ms have passed, and something was drawn.
    assert!(terminal.feed(at(108), &frame("four")).is_empty());
    let frames = terminal.quiet(at(128));
    assert_eq!(times(&frames), [110]);
    assert_eq!(text(&frames[0].screen), ["four of"]);
    assert!(!terminal.is_drawing());
    assert_eq!(times(&terminal.feed(at(130), &frame("five"))), [130]);
}

#[test]
fn output_after_a_silence_first_gives_the_frame_before_it() {
    let mut terminal = Terminal::new(20, 4);
    terminal.feed(at(0), b"a");
    let frames = terminal.feed(at(100), b"b");
    assert_eq!(times(&frames), [20]);
    assert_eq!(text(&frames[0].screen), ["a"]);
}

#[test]
fn a_marked_frame_is_read_at_its_end_and_never_in_its_middle() {
    let mut terminal = Terminal::new(20, 4);
    assert!(terminal.feed(at(0), b"\x1b[?2026hhalf").is_empty());
    assert!(terminal.quiet(at(100)).is_empty());
    let frames = terminal.feed(at(110), b" whole\x1b[?2026l");
    assert_eq!(times(&frames), [110]);
    assert_eq!(text(&frames[0].screen), ["half whole"]);
    assert!(terminal.quiet(at(500)).is_empty());
}

#[test]
fn a_marked_frame_that_never_ends_is_given_up() {
    let mut terminal = Terminal::new(20, 4);
    terminal.feed(at(0), b"\x1b[?2026hlost");
    assert!(terminal.quiet(at(149)).is_empty());
    assert_eq!(times(&terminal.quiet(at(150))), [150]);
    terminal.feed(at(200), b" on");
    assert_eq!(times(&terminal.quiet(at(300))), [220]);
}

#[test]
fn questions_are_answered_in_order() {
    let mut terminal = Terminal::new(80, 24);
    terminal.feed(
        at(0),
        b"\x1b[>0q\x1b[?u\x1b[c\x1b[?2026$p\x1b[6n\x1b]11;?\x07\x1b[18t",
    );
    let replies = String::from_utf8(terminal.take_replies()).expect("text");
    let version = format!("\x1bP>|missiond({})\x1b\\", env!("CARGO_PKG_VERSION"));
    let rest = "\x1b[?6c\x1b[?2026;2$y\x1b[1;1R\x1b]11;rgb:0000/0000/0000\x07\x1b[8;24;80t";
    assert_eq!(replies, format!("{version}{rest}"));
    assert!(terminal.take_replies().is_empty());
}

#[test]
fn the_clipboard_is_neither_read_nor_written() {
    let mut terminal = Terminal::new(80, 24);
    terminal.feed(at(0), b"\x1b]52;c;?\x07\x1b]52;c;aGVsbG8=\x07");
    assert!(terminal.take_replies().is_empty());
}

#[test]
fn a_flood_of_questions_is_answered_with_a_trickle() {
    let mut terminal = Terminal::new(80, 24);
    let mut written = 0;
    for _ in 0..100 {
        terminal.feed(at(0), &b"\x1b[c\x1b[6n\x1b[>q".repeat(100));
        written += terminal.take_replies().len();
    }
    assert!((1..=2048).contains(&written), "{written}");
    terminal.feed(at(2000), b"\x1b[c");
    assert!(
        !terminal.take_replies().is_empty(),
        "the next second answers again"
    );
}

#[test]
fn hostile_output_takes_bounded_time_and_memory() {
    let began = std::time::Instant::now();
    let mut terminal = Terminal::new(120, 40);
    terminal.feed(at(0), &b"x\x1b[65535b".repeat(1000));
    terminal.feed(at(0), &b"\x1b]0;title\x07".repeat(10_000));
    terminal.feed(at(0), b"\x1b]0;");
    for _ in 0..50 {
        terminal.feed(at(0), &[b'a'; 65536]);
    }
    let frames = terminal.feed(at(0), &b"\x07\x1b[?2026hx\x1b[?2026l".repeat(2000));
    assert_eq!(frames.len(), 1);
    assert!(terminal.screen().title.len() <= 512);
    // Measured at a fraction of this; without the bounds it takes minutes.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

/// Each of these would cost a whole screen for a few bytes. Held against text, on the same machine at the same time.
#[test]
fn a_flood_of_cleared_screens_is_bounded() {
    const BYTES: usize = 64 * 1024;
    let once = |bytes: &[u8]| {
        let mut terminal = Terminal::new(120, 40);
        let began = std::time::Instant::now();
        terminal.feed(at(0), bytes);
        began.elapsed()
    };
    let cost = |text: &str| {
        let bytes = text.repeat(BYTES / text.len());
        (0..3)
            .map(|_| once(bytes.as_bytes()))
            .min()
            .unwrap_or_default()
    };
    let text = cost("some words, and more\r\n");
    for flood in ["\x1b[2J", "x\x1b[2J", "\x1b#8", "\x1b[?3h", "x\x1b[65535b"] {
        // Up to 20 times were measured; without the bound 400 and more.
        let took = cost(flood);
        assert!(
            took < 100 * text,
            "{flood:?} took {took:?}, and text {text:?}"
        );
    }
}

#[test]
fn a_screen_that_is_cleared_at_once_again_is_empty_all_the_same() {
    let mut terminal = Terminal::new(20, 4);
    terminal.feed(at(0), b"one\r\ntwo\x1b[2J\x1b[Hthree\r\nfour\x1b[2J");
    assert!(text(&terminal.screen()).is_empty());
    terminal.feed(at(0), b"\x1b[Hfive");
    assert_eq!(text(&terminal.screen()), ["five"]);
    assert_eq!(terminal.lines(9), ["one", "two", "five"]);
}

/// Whatever modes a program has left behind, the next whole frame is drawn as it is.
#[test]
fn a_full_frame_after_hostile_modes_is_drawn_right() {
    let frame = b"\x1b[?2026h\x1b[!p\x1b[r\x1b[?6l\x1b[4l\x1b[H\x1b[2Jfirst\r\nsecond\x1b[?2026l";
    for left in [
        "\x1b[2;3r\x1b[?6h",
        "\x1b[?2026h",
        "\x1b[?1049h\x1b[?1049l\x1b[?1049h",
        "\x1bc\x1b[4h",
        "\x1b]0;never ended",
        "\x1bPq",
    ] {
        let mut terminal = Terminal::new(20, 4);
        terminal.feed(at(0), left.as_bytes());
        // A string that never ended takes what follows up to its end.
        terminal.feed(at(200), b"\x1b\\");
        terminal.feed(at(400), frame);
        assert_eq!(text(&terminal.screen()), ["first", "second"], "{left:?}");
    }
}

#[test]
fn lines_come_from_the_scrollback_too() {
    let mut terminal = Terminal::new(20, 3);
    for n in 0..10 {
        terminal.feed(at(0), format!("line {n}\r\n").as_bytes());
    }
    assert_eq!(terminal.lines(4), ["line 6", "line 7", "line 8", "line 9"]);
    assert_eq!(terminal.lines(100).len(), 10);
}

#[test]
fn a_resize_is_drawn_and_read() {
    let mut terminal = Terminal::new(20, 4);
    terminal.feed(at(0), b"hello");
    assert_eq!(times(&terminal.resize(at(100), 10, 3)), [20]);
    let frames = terminal.quiet(at(200));
    assert_eq!((frames[0].screen.cols, frames[0].screen.rows), (10, 3));
    terminal.resize(at(300), 0, usize::MAX);
    assert_eq!(terminal.faults(), 0);
}

/// What programs write, in pieces that a random stream would rarely hit on.
fn vt_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..8),
        "\\x1b\\[[0-9;?>]{0,6}[a-zA-Z@`]".prop_map(String::into_bytes),
        "\\x1b[\\]PX^_][0-9]{0,2};[a-z?]{0,9}(\\x07|\\x1b\\\\)?".prop_map(String::into_bytes),
        "[─│╭❯●⎿✻漢字é👩❤👍1\u{200d}\u{301}\u{fe0f}\u{1f3fd} a-z\r\n\t]{1,12}"
            .prop_map(String::into_bytes),
        Just(b"\x1b[?2026h".to_vec()),
        Just(b"\x1b[?2026l".to_vec()),
        Just(b"\x1b[?1049h".to_vec()),
        Just(b"\x1bc".to_vec()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_splitting_gives_the_same_frames(stream in vt_stream(), cuts in proptest::collection::vec(0usize..400, 0..20)) {
        let mut whole = Terminal::new(40, 10);
        let mut split = Terminal::new(40, 10);
        let mut expected = whole.feed(at(5), &stream);
        expected.extend(whole.quiet(at(1000)));

        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut frames: Vec<Frame> = cuts.windows(2).flat_map(|cut| split.feed(at(5), &stream[cut[0]..cut[1]])).collect();
        frames.extend(split.quiet(at(1000)));

        prop_assert_eq!(frames, expected);
        prop_assert_eq!(split.faults(), 0);
    }

    /// Only the rows that were drawn are read again, and that comes to the same as all of them.
    #[test]
    fn a_frame_shows_what_is_in_the_grid(streams in proptest::collection::vec(vt_stream(), 1..6), cols in 3usize..40) {
        let mut terminal = Terminal::new(cols, 10);
        for (n, stream) in (1..).zip(&streams) {
            terminal.feed(at(100 * n), stream);
            for frame in terminal.quiet(at(100 * n + 99)) {
                prop_assert_eq!(frame.screen, terminal.screen());
            }
        }
    }

    #[test]
    fn a_snapshot_draws_the_same_screen(stream in vt_stream()) {
        let mut terminal = Terminal::new(40, 10);
        terminal.feed(at(0), &stream);
        // A repetition (REP) can heap more marks on a character than anything that is drawn again.
        let marks = |line: &Line| line.text.chars().filter(|c| matches!(c, '\u{301}' | '\u{200d}' | '\u{fe0f}')).count();
        prop_assume!(terminal.screen().lines.iter().all(|line| marks(line) <= 10));
        let mut copy = Terminal::new(40, 10);
        copy.feed(at(0), &terminal.snapshot());
        prop_assert_eq!(copy.screen(), terminal.screen());
    }

    /// Somebody who joins in the middle sees the same from then on.
    #[test]
    fn after_a_snapshot_everything_goes_on_as_it_was(before in lasting_stream(), after in lasting_stream()) {
        let mut terminal = Terminal::new(40, 10);
        terminal.feed(at(0), &before);
        let mut copy = Terminal::new(40, 10);
        copy.feed(at(0), &terminal.snapshot());
        prop_assert_eq!(copy.screen(), terminal.screen());
        prop_assert_eq!(copy.input_modes(), terminal.input_modes());
        // What is half said would be said to one of them only.
        for stream in [&b"\x18"[..], &after] {
            terminal.feed(at(1), stream);
            copy.feed(at(1), stream);
        }
        prop_assert_eq!(drawn(&copy), drawn(&terminal));
        prop_assert_eq!(copy.input_modes(), terminal.input_modes());
    }
}

/// Marks and parts of an emoji belong to the character before them, also if that one was drawn by the snapshot.
#[test]
fn a_snapshot_can_be_taken_within_a_character() {
    let text = "e\u{301}a 👩\u{200d}👧 1\u{fe0f}\u{20e3} 👍🏽 漢字 ❤\u{fe0f}x🏳\u{fe0f}\u{200d}🌈.";
    let joins = text.char_indices().map(|(join, _)| join);
    for (join, cols) in joins.flat_map(|join| (4..9).map(move |cols| (join, cols))) {
        let (before, after) = text.split_at(join);
        let mut terminal = Terminal::new(cols, 10);
        terminal.feed(at(0), before.as_bytes());
        let mut copy = Terminal::new(cols, 10);
        copy.feed(at(0), &terminal.snapshot());
        for terminal in [&mut terminal, &mut copy] {
            terminal.feed(at(1), after.as_bytes());
        }
        assert_eq!(
            drawn(&copy),
            drawn(&terminal),
            "{before:?} in {cols} columns"
        );
    }
}

/// The screen, but for where it was wrapped: of the last row a snapshot can't tell.
fn drawn(terminal: &Terminal) -> Screen {
    let mut screen = terminal.screen();
    screen
        .lines
        .iter_mut()
        .for_each(|line| Arc::make_mut(line).wrapped = false);
    screen
}

/// What programs write, but for what a snapshot does not keep: tab stops, the character that a repetition repeats,
/// titles that were put aside, the other screen, a cursor outside the margins that it is counted from, and that a
/// blank was half of a wide character once.
fn lasting_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[─│❯é a-zA-Z\r\n\u{8}]{1,50}".prop_map(String::into_bytes),
        2 => "\\x1b\\[[0-9]{0,2}(;[0-9]{1,2})?[ABCDEFGHJKLMPST@Xdfr]".prop_map(String::into_bytes),
        1 => "\\x1b\\[[0-9]{0,2}(;[0-9]{1,2}){0,2}m".prop_map(String::into_bytes),
        1 => "\\x1b\\[\\?(1|7|25|1000|1002|1004|1006|2004)[hl]".prop_map(String::into_bytes),
        1 => "\\x1b\\[(4|20)[hl]".prop_map(String::into_bytes),
        1 => "\\x1b[78DEM=>]".prop_map(String::into_bytes),
        1 => "\\x1b[()][0B]|[\\x0e\\x0f]".prop_map(String::into_bytes),
        1 => "\\x1b\\[[>=<][0-9]{1,2}u".prop_map(String::into_bytes),
        1 => "\\x1b\\[[0-6] q|\\x1b\\]2;[a-z]{1,5}\\x07".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}
