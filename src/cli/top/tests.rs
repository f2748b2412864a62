//! The dashboard as a person sees it, and what keys do.

use super::draw::{Drawn, Look, draw};
use super::lists::Listed;
use super::sample;
use super::state::{Action, Dashboard, Mode};
use crate::cli::svg;
use crate::core::model::SlotStatus;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::text::{Line, Span};
use std::time::{Duration, Instant};

struct Scene {
    dashboard: Dashboard,
    now: Instant,
}

impl Scene {
    fn of(statuses: Vec<SlotStatus>) -> Scene {
        let now = Instant::now();
        let mut dashboard = Dashboard::default();
        dashboard.connected();
        dashboard.update(statuses, true, now);
        Scene { dashboard, now }
    }

    fn usual() -> Scene {
        let mut down = sample::status(
            "migrate",
            crate::core::claude::reading::State::Exited,
            "2026-01-01T09:55:00Z",
        );
        down.doing = Some("usage limit, back at 10:00".to_owned());
        down.pid = None;
        Scene::of(vec![
            sample::idle("reader"),
            sample::works("api", "Edit src/api/auth.rs"),
            sample::asks(
                "coder",
                "make release PREFIX=/usr/local && sudo install -m755 target/release/app /usr/local/bin/app",
            ),
            sample::question("docs"),
            down,
        ])
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// Draws it as the loop does.
    fn screen(&mut self, cols: u16, rows: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(cols, rows)).unwrap();
        let look = Look {
            now: "2026-01-01T10:00:00Z".parse().unwrap(),
            ascii: false,
            colours: true,
        };
        let mut drawn = Drawn::default();
        let dashboard = &self.dashboard;
        terminal
            .draw(|frame| drawn = draw(frame, dashboard, look))
            .unwrap();
        self.dashboard.drawn(drawn);
        let text = terminal.backend().to_string();
        let rows = text.lines().map(|row| row.trim_matches('"').trim_end());
        rows.collect::<Vec<_>>().join("\n")
    }

    fn press(&mut self, keys: &str) -> Option<Action> {
        let mut last = None;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            last = self
                .dashboard
                .key(KeyEvent::new(code, KeyModifiers::NONE), self.now);
        }
        last
    }
}

fn answered(action: Option<Action>) -> Option<(String, String, String)> {
    match action? {
        Action::Answer(params) => Some((params.slot, params.answer?, params.dialog?)),
        _ => None,
    }
}

fn clock_masked(screen: &str) -> String {
    let clock = regex::Regex::new(r"\d\d:\d\d:\d\d").unwrap();
    clock.replace(screen, "hh:mm:ss").into_owned()
}

#[test]
fn the_slot_that_waits_longest_stands_first_with_its_whole_request() {
    let mut scene = Scene::usual();
    scene.dashboard.explain(sample::explained("coder"));
    insta::assert_snapshot!("screen_80x24", clock_masked(&scene.screen(80, 24)));
}

#[test]
fn a_wide_terminal_shows_the_live_screen_beside_it() {
    let mut scene = Scene::usual();
    scene.dashboard.explain(sample::explained("coder"));
    let lines = vec![
        "● The build is green.".to_owned(),
        "\u{1b}[1mDo you want to proceed?\u{1b}[0m".to_owned(),
    ];
    scene.dashboard.shown(crate::core::model::ScreenAnswer {
        slot: "coder".into(),
        cols: 120,
        rows: 40,
        title: String::new(),
        cursor: (0, 0),
        lines,
    });
    for text in [
        "verdict ask Bash: make release",
        "dialog Bash: make release",
    ] {
        scene.dashboard.happened(format!("09:55:48 coder: {text}"));
    }
    insta::assert_snapshot!("screen_160x34", clock_masked(&scene.screen(160, 34)));
}

#[test]
fn an_ask_is_answered_by_its_id_and_the_next_one_comes() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(1500);
    let given = answered(scene.press("y")).unwrap();
    assert_eq!(given, ("coder".into(), "yes".into(), "d-coder".into()));
    assert_eq!(scene.dashboard.current().unwrap().slot, "docs");
    // The same ask is not answered twice.
    assert_eq!(scene.press("ky"), None);
}

#[test]
fn an_ask_that_has_just_come_is_not_answered() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(1499);
    assert_eq!(scene.press("y"), None);
    assert_eq!(scene.press("n"), None);
    scene.wait(1499);
    assert_eq!(scene.press("n"), None, "each key starts the time anew");
    scene.wait(1500);
    assert!(scene.press("n").is_some());
}

#[test]
fn a_changed_ask_starts_again() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(2000);
    let mut other = sample::asks("coder", "rm -r target");
    other.dialog.as_mut().unwrap().id = "d-2".into();
    scene.dashboard.update(vec![other], false, scene.now);
    assert_eq!(scene.press("y"), None, "the new ask has just come");
    scene.wait(1500);
    assert_eq!(scene.press("y"), None, "its end was not on the screen yet");
    scene.screen(80, 24);
    assert_eq!(answered(scene.press("y")).unwrap().2, "d-2");
}

#[test]
fn a_long_request_has_to_be_read_to_its_end() {
    let command: String = (1..60).map(|n| format!("echo {n}\n")).collect();
    let mut scene = Scene::of(vec![sample::asks("coder", &command)]);
    scene.screen(80, 24);
    scene.wait(1500);
    assert_eq!(scene.press("y"), None);
    assert!(scene.dashboard.notice().contains("read it to its end"));
    scene.press("e");
    for scrolled in [0, 10, 20, 30, 40] {
        scene.screen(80, 24);
        assert_eq!(scene.press("y"), None, "{scrolled} of 60 lines are above");
        scene.press(" ");
    }
    scene.screen(80, 24);
    assert_eq!(answered(scene.press("y")).unwrap().1, "yes");
}

#[test]
fn a_no_needs_no_reading_and_can_have_a_reason() {
    let command: String = (1..60).map(|n| format!("echo {n}\n")).collect();
    let mut scene = Scene::of(vec![sample::asks("coder", &command)]);
    scene.wait(1500);
    let action = scene.press("Nnot now\n");
    let Some(Action::Answer(params)) = action else {
        panic!("{action:?}");
    };
    assert_eq!(params.answer.as_deref(), Some("no"));
    assert_eq!(params.reason.as_deref(), Some("not now"));
}

#[test]
fn whoever_is_about_to_answer_an_ask_that_changes_answers_nothing() {
    for begun in ["Nnot", "o", "a", "e", "tblue"] {
        let mut scene = Scene::of(vec![sample::asks("coder", "make")]);
        scene.screen(80, 24);
        scene.wait(2000);
        scene.press(begun);
        assert_ne!(*scene.dashboard.mode(), Mode::Table, "{begun}");
        let mut other = sample::asks("coder", "rm -r target");
        other.dialog.as_mut().unwrap().id = "d-2".into();
        scene.dashboard.update(vec![other], false, scene.now);
        for key in "only today\n1y\n".chars() {
            scene.wait(2000);
            scene.screen(80, 24);
            assert_eq!(scene.press(&key.to_string()), None, "{begun}, then {key}");
        }
        assert_eq!(*scene.dashboard.mode(), Mode::Gone, "{begun}");
        scene.press("\u{1b}");
        assert_eq!(answered(scene.press("n")).unwrap().2, "d-2");
    }
}

#[test]
fn a_key_that_repeats_answers_one_ask_at_most() {
    for key in ["y", "n", "a"] {
        let asks = ["one", "two", "three"].map(|slot| sample::asks(slot, "make"));
        let mut scene = Scene::of(asks.into());
        scene.screen(80, 24);
        scene.wait(2000);
        let mut given = 0;
        for _ in 0..100 {
            given += usize::from(scene.press(key).is_some());
            scene.wait(30);
            scene.screen(80, 24);
        }
        assert_eq!(given, usize::from(key != "a"), "{key}");
    }
}

#[test]
fn an_answer_that_was_refused_can_be_given_again() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(2000);
    assert!(scene.press("y").is_some());
    scene
        .dashboard
        .not_answered(&["d-coder".into()], "refused: not now".into());
    assert_eq!(scene.dashboard.notice(), "refused: not now");
    scene.press("g");
    scene.screen(80, 24);
    scene.wait(2000);
    assert_eq!(answered(scene.press("n")).unwrap().0, "coder");
}

#[test]
fn what_is_only_partly_known_takes_only_a_no() {
    let mut asks = sample::asks("coder", "make");
    asks.dialog.as_mut().unwrap().complete = false;
    let mut scene = Scene::of(vec![asks]);
    let shown = scene.screen(80, 24);
    assert!(shown.contains("only a part of it"), "{shown}");
    scene.wait(2000);
    assert_eq!(scene.press("y"), None);
    assert!(scene.press("n").is_some());
}

#[test]
fn a_long_question_has_to_be_read_to_its_end_too() {
    let mut asks = sample::question("docs");
    let dialog = asks.dialog.as_mut().unwrap();
    dialog.text = (1..60).map(|n| format!("line {n}\n")).collect();
    let mut scene = Scene::of(vec![asks]);
    scene.screen(80, 24);
    scene.wait(2000);
    scene.press("o");
    assert_eq!(scene.press("1"), None);
    assert!(scene.dashboard.notice().contains("read it to its end"));
}

#[test]
fn a_long_refusal_is_shown_whole() {
    let mut scene = Scene::usual();
    let end = "look at it with: missiond attach coder";
    scene.dashboard.say(format!(
        "refused: {} {end}",
        "the dialog is not a known one; ".repeat(3)
    ));
    let shown = scene.screen(80, 24);
    assert!(shown.contains("missiond attach coder"), "{shown}");
}

#[test]
fn a_doubtful_ask_takes_only_a_no() {
    let mut asks = sample::asks("coder", "ls");
    asks.doubtful = Some("the gate knows another call".into());
    let mut scene = Scene::of(vec![asks]);
    let shown = scene.screen(80, 24);
    assert!(
        shown.contains("DOUBT  the gate knows another call"),
        "{shown}"
    );
    scene.wait(1500);
    assert_eq!(scene.press("y"), None);
    assert_eq!(scene.press("a"), None);
    assert_eq!(answered(scene.press("n")).unwrap().1, "no");
}

#[test]
fn always_shows_the_rule_first() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(1500);
    assert_eq!(scene.press("a"), None);
    let shown = scene.screen(80, 24);
    assert!(
        shown.contains("coder.toml allows Bash(sudo install *)"),
        "{shown}"
    );
    scene.wait(1500);
    assert_eq!(answered(scene.press("a")).unwrap().1, "always");
}

#[test]
fn a_question_is_answered_by_the_label_of_a_number() {
    let mut scene = Scene::of(vec![sample::question("docs")]);
    scene.screen(80, 24);
    scene.wait(1500);
    assert_eq!(scene.press("y"), None, "yes is no answer to a question");
    assert_eq!(answered(scene.press("2")).unwrap().1, "Blue");
}

#[test]
fn asks_that_are_the_same_get_one_answer_by_their_ids() {
    let mut scene = Scene::of(vec![
        sample::asks("a", "make"),
        sample::asks("b", "make"),
        sample::asks("c", "make clean"),
    ]);
    scene.screen(80, 24);
    scene.wait(1500);
    scene.press("A");
    assert!(matches!(scene.dashboard.mode(), Mode::Alike(asks) if asks.len() == 2));
    // One that comes while the person looks is not in the list.
    let late = sample::asks("d", "make");
    scene.dashboard.update(vec![late], false, scene.now);
    let Some(Action::AnswerAll(asks)) = scene.press("y") else {
        panic!("no answer");
    };
    let asks: Vec<_> = asks.into_iter().map(|ask| ask.dialog.unwrap()).collect();
    assert_eq!(asks, ["d-a", "d-b"]);
}

#[test]
fn restart_and_stop_need_a_second_press_in_time() {
    let mut scene = Scene::of(vec![sample::idle("reader")]);
    assert_eq!(scene.press("R"), None);
    scene.wait(2000);
    assert_eq!(scene.press("R"), None);
    scene.wait(1999);
    assert_eq!(scene.press("R"), Some(Action::Restart("reader".into())));
    assert_eq!(scene.press("XR"), None, "another key between them");
    assert_eq!(scene.press("XjX"), None, "another key between them");
}

#[test]
fn a_paste_answers_nothing() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(2000);
    scene.dashboard.paste("yyyy");
    assert!(scene.dashboard.notice().contains("ignored"));
    scene.press("s");
    scene.dashboard.paste("run the tests");
    let sent = scene.press("\n");
    let expected = Action::Send {
        slot: "coder".into(),
        text: "run the tests".into(),
    };
    assert_eq!(sent, Some(expected));
}

#[test]
fn nothing_is_answered_while_the_daemon_is_away() {
    let mut scene = Scene::usual();
    scene.screen(80, 24);
    scene.wait(1500);
    scene.dashboard.lost("no daemon answers".into());
    assert_eq!(scene.press("n"), None);
    let shown = scene.screen(80, 24);
    assert!(shown.contains("DAEMON AWAY: no daemon answers"), "{shown}");
}

#[test]
fn what_is_wrong_with_the_config_is_shown_until_something_happens() {
    let mut scene = Scene::usual();
    scene
        .dashboard
        .warn(vec!["the policy coder on the disk allows more".into()]);
    let shown = scene.screen(80, 24);
    assert!(
        shown.ends_with(" the policy coder on the disk allows more"),
        "{shown}"
    );
}

/// The README shows the dashboard as it is drawn now. `MISSIOND_WRITE_DOCS=1` writes it again.
#[test]
fn the_picture_of_the_readme_is_what_is_drawn() {
    let (cols, rows) = (96, 25);
    let mut scene = Scene::usual();
    scene.dashboard.explain(sample::explained("coder"));
    scene
        .dashboard
        .happened("09:59:58 api: verdict allow Edit: src/api/auth.rs".into());
    let mut terminal = Terminal::new(TestBackend::new(cols, rows)).unwrap();
    let look = Look {
        now: "2026-01-01T10:00:00Z".parse().unwrap(),
        ascii: false,
        colours: true,
    };
    terminal
        .draw(|frame| {
            draw(frame, &scene.dashboard, look);
        })
        .unwrap();
    let lines = styled_lines(terminal.backend().buffer());
    let drawn = svg::of_lines(&lines, cols.into(), rows.into());
    // The clock is that of the reader's time zone.
    let clock = regex::Regex::new(r">\d\d:\d\d:\d\d<").unwrap();
    let drawn = clock.replace(&drawn, ">10:00:00<").into_owned();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/top.svg");
    if std::env::var_os("MISSIOND_WRITE_DOCS").is_some() {
        std::fs::write(file, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == drawn,
        "docs/top.svg is old: MISSIOND_WRITE_DOCS=1 cargo test --lib cli::top"
    );
}

/// The rows of a buffer, with cells of one style together.
fn styled_lines(buffer: &ratatui::buffer::Buffer) -> Vec<Line<'static>> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content().chunks(width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let alike = cells.chunk_by(|a, b| a.style() == b.style());
        let spans = alike.map(|cells| {
            let text: String = cells.iter().map(|cell| cell.symbol()).collect();
            Span::styled(text, cells[0].style())
        });
        Line::from_iter(spans)
    };
    rows.map(line).collect()
}

#[test]
fn any_size_can_be_drawn() {
    for cols in (1..200).step_by(7) {
        for rows in 1..60 {
            Scene::usual().screen(cols, rows);
        }
    }
}

#[test]
fn an_old_terminal_gets_ascii_alone() {
    let scene = Scene::usual();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let look = Look {
        now: "2026-01-01T10:00:00Z".parse().unwrap(),
        ascii: true,
        colours: false,
    };
    terminal
        .draw(|frame| {
            draw(frame, &scene.dashboard, look);
        })
        .unwrap();
    let buffer = terminal.backend().buffer();
    for cell in buffer.content() {
        assert!(cell.symbol().is_ascii(), "{}", cell.symbol());
        assert_eq!(cell.fg, ratatui::style::Color::Reset);
    }
}

#[test]
fn sessions_and_tasks_are_tabs_in_which_nothing_is_answered() {
    let mut scene = Scene::usual();
    scene.dashboard.listed(Listed::Tasks(vec![
        sample::task("t1", "done", "count the files"),
        sample::task("t2", "needs_person", "release it\nthen say so"),
    ]));
    scene.screen(80, 24);
    scene.wait(1500);
    scene
        .dashboard
        .key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE), scene.now);
    assert!(scene.screen(80, 24).contains("no sessions"));
    assert_eq!(scene.press("yna"), None, "no ask is on the screen");
    scene
        .dashboard
        .key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE), scene.now);
    insta::assert_snapshot!("tasks_80x12", clock_masked(&scene.screen(80, 12)));
    let cancel = Action::Command(vec!["cancel".into(), "t2".into()]);
    assert_eq!(scene.press("X"), None);
    assert_eq!(scene.press("X"), Some(cancel));
    // Who waits is one key away.
    scene.press("w");
    assert!(scene.screen(80, 24).contains("asks"));
}
