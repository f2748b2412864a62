//! Every recording in `tests/recordings` is read right at its labelled moments.
//!
//! A new case is two files and no code: `<version>-<cols>x<rows>/<case>.cast` and `<case>.truth.json`.
//! A moment says what is true at recorded second `t`; what it does not mention is not checked.

use missiond::reading::witness::{self, Weighed};
use missiond::reading::{Dialog, DialogKind, LAST_STANDS, Observed, Observer, State, read, replay};
use missiond::recording::{Recording, What};
use missiond::terminal::{At, Frame, Terminal};
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    moments: Vec<Moment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Moment {
    t: f64,
    /// A state, or `busy` where any sort of work is right.
    state: String,
    #[serde(default)]
    dialog: Option<Expected>,
    /// What the input box holds.
    draft: Option<String>,
    menu: Option<bool>,
    mode: Option<String>,
    background: Option<u32>,
    last_error: Option<String>,
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: DialogKind,
    tool: Option<String>,
    /// The command, path, address or question.
    target: Option<String>,
    options: Vec<String>,
    selected: Option<usize>,
    /// The ticks, of those choices that have one.
    checked: Option<Vec<bool>>,
    #[serde(default = "yes")]
    complete: bool,
}

fn yes() -> bool {
    true
}

fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let list = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).expect("a readable folder");
        entries
            .map(|entry| entry.expect("a readable entry").path())
            .collect()
    };
    let files = list(&root)
        .into_iter()
        .filter(|path| path.is_dir())
        .flat_map(|dir| list(&dir));
    let mut casts: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ext| ext == "cast"))
        .collect();
    casts.sort();
    casts
}

/// What is known after every frame of a recording. `split` cuts the output into pieces.
fn observe(cast: &[u8], split: impl Fn(&str) -> Vec<Vec<u8>>) -> Vec<(At, Observed)> {
    let mut observer = Observer::new();
    let mut observed = Vec::new();
    let (frames, end) = frames(cast, split);
    for frame in frames {
        observed.extend(
            observer
                .wait(frame.at)
                .map(|at| (at, observer.observed().clone())),
        );
        observed.push((frame.drawn, observer.see(&frame).clone()));
    }
    observed.extend(
        observer
            .wait(end)
            .map(|at| (at, observer.observed().clone())),
    );
    observed
}

fn observe_with_title(cast: &[u8]) -> Vec<(At, Observed, String)> {
    let mut observer = Observer::new();
    let (mut observed, mut title) = (Vec::new(), String::new());
    for frame in frames(cast, whole).0 {
        let stayed = observer.wait(frame.at);
        observed.extend(stayed.map(|at| (at, observer.observed().clone(), title.clone())));
        title.clone_from(&frame.screen.title);
        observed.push((frame.at, observer.see(&frame).clone(), title.clone()));
    }
    observed
}

/// The frames of a recording, and when its last screen has stood for long enough.
fn frames(cast: &[u8], split: impl Fn(&str) -> Vec<Vec<u8>>) -> (Vec<Frame>, At) {
    let recording = Recording::read(cast).expect("a header");
    let mut terminal = Terminal::new(recording.header().cols, recording.header().rows);
    let mut frames = Vec::new();
    let mut last = At::ZERO;
    for event in recording {
        let event = event.expect("an event");
        last = event.at;
        match event.what {
            What::Output(text) => {
                for piece in split(&text) {
                    frames.extend(terminal.feed(event.at, &piece));
                }
            }
            What::Resize { cols, rows } => frames.extend(terminal.resize(event.at, cols, rows)),
            What::Marker(_) | What::Exit => frames.extend(terminal.quiet(event.at)),
        }
    }
    let end = last + LAST_STANDS;
    frames.extend(terminal.quiet(end));
    (frames, end)
}

fn whole(text: &str) -> Vec<Vec<u8>> {
    vec![text.as_bytes().to_vec()]
}

/// Run with `-- --nocapture` it prints the table of the README.
#[test]
fn every_labelled_moment_is_read_right() {
    let mut wrong = Vec::new();
    let mut table = Table::default();
    for cast in recordings() {
        for (moment, differences) in check(&cast) {
            table.count(&cast, differences.is_empty());
            let name = format!("{} at {}", cast.display(), moment.t);
            wrong.extend(differences.iter().map(|diff| format!("{name}: {diff}")));
        }
    }
    println!("{table}");
    assert!(!table.cells.is_empty());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The labelled moments of a recording, each with what was read otherwise.
fn check(cast: &Path) -> Vec<(Moment, Vec<String>)> {
    let truth = std::fs::read_to_string(cast.with_extension("truth.json"))
        .expect("a truth file beside the recording");
    let truth: Truth =
        serde_json::from_str(&truth).unwrap_or_else(|e| panic!("{}: {e}", cast.display()));
    let observed = observe(&std::fs::read(cast).expect("a recording"), whole);
    let check = |moment: Moment| {
        let until = Duration::from_secs_f64(moment.t);
        let seen = observed.iter().rev().find(|(at, _)| *at <= until);
        let differences = match seen {
            Some((_, seen)) => differences(&moment, seen),
            None => vec!["no frame yet".to_owned()],
        };
        (moment, differences)
    };
    truth.moments.into_iter().map(check).collect()
}

/// What the cases are about, by how their names begin.
const SCENARIOS: [(&str, &[&str]); 9] = [
    ("start, trust, key", &["trust", "api_key", "start"]),
    (
        "at work",
        &[
            "thinking",
            "work",
            "responding",
            "hello",
            "run",
            "bash_run",
            "tasks",
            "agent_run",
        ],
    ),
    (
        "tool calls",
        &[
            "tools", "bash", "write", "edit", "notebook", "fetch", "search", "read", "mcp",
            "agent", "emoji", "unmarked",
        ],
    ),
    ("questions", &["ask", "light_ask", "questions"]),
    ("plans", &["plan"]),
    (
        "input box, looks",
        &[
            "draft",
            "resize",
            "looks",
            "slash",
            "up_history",
            "name",
            "statusline",
            "shell",
            "queued",
            "nocolor",
        ],
    ),
    (
        "menus, views",
        &[
            "menus",
            "model",
            "config",
            "help",
            "permissions",
            "resume",
            "rewind",
            "ctrl_o",
            "history",
            "agents_view",
            "auto",
        ],
    ),
    (
        "errors, limits, ends",
        &[
            "error",
            "bad",
            "overloaded",
            "limit",
            "interrupted",
            "compact",
            "exit",
            "end",
            "ctrl_c",
            "background",
        ],
    ),
    ("forgeries", &["spoof"]),
];

/// Moments that were read right, of all, by version and scenario.
#[derive(Default)]
struct Table {
    cells: BTreeMap<(Vec<u32>, usize), (usize, usize)>,
}

impl Table {
    fn count(&mut self, cast: &Path, right: bool) {
        let cell = self
            .cells
            .entry((version(cast), scenario(cast)))
            .or_default();
        cell.0 += usize::from(right);
        cell.1 += 1;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = SCENARIOS.map(|(name, _)| name).join(" | ");
        writeln!(
            f,
            "| version | {names} |\n|{}",
            " --- |".repeat(SCENARIOS.len() + 1)
        )?;
        let versions: BTreeSet<&Vec<u32>> = self.cells.keys().map(|(version, _)| version).collect();
        for version in versions {
            let dotted: Vec<String> = version.iter().map(u32::to_string).collect();
            write!(f, "| {} |", dotted.join("."))?;
            for scenario in 0..SCENARIOS.len() {
                match self.cells.get(&(version.clone(), scenario)) {
                    Some((right, all)) => write!(f, " {right}/{all} |")?,
                    None => write!(f, " |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The folder's name begins with it.
fn version(cast: &Path) -> Vec<u32> {
    let folder = cast.parent().and_then(Path::file_name).unwrap_or_default();
    let folder = folder.to_string_lossy();
    let version = folder.split('-').next().unwrap_or_default();
    version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// The scenario with the longest beginning that fits.
fn scenario(cast: &Path) -> usize {
    let name = cast.file_stem().unwrap_or_default().to_string_lossy();
    let fit = |(_, starts): &(&str, &[&str])| {
        let fitting = starts.iter().filter(|start| name.starts_with(**start));
        fitting.map(|start| start.len()).max().unwrap_or(0)
    };
    let best = (0..SCENARIOS.len()).max_by_key(|index| fit(&SCENARIOS[*index]));
    best.filter(|index| fit(&SCENARIOS[*index]) > 0)
        .unwrap_or_else(|| panic!("no scenario for {}", cast.display()))
}

/// The recordings in which the terminal gets other sizes. All dialogs of these are labelled.
fn resized() -> Vec<PathBuf> {
    let name = |cast: &PathBuf| {
        cast.file_stem()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let mut casts = recordings();
    casts.retain(|cast| name(cast).is_some_and(|name| name.starts_with("resize")));
    assert!(!casts.is_empty());
    casts
}

fn truth(cast: &Path) -> Vec<Moment> {
    let truth = std::fs::read_to_string(cast.with_extension("truth.json")).expect("a truth file");
    let truth: Truth = serde_json::from_str(&truth).expect("a truth file");
    truth.moments
}

/// A command that is cut at a new edge, or drawn for a size that the terminal has no more, is at no moment a whole one.
#[test]
fn nothing_that_a_change_of_size_has_cut_is_whole() {
    for cast in resized() {
        let moments = truth(&cast);
        let targets: BTreeSet<&str> = moments
            .iter()
            .filter_map(|moment| moment.dialog.as_ref()?.target.as_deref())
            .collect();
        for (at, observed) in observe(&std::fs::read(&cast).expect("a recording"), whole) {
            let dialog = observed.dialog.filter(|dialog| dialog.complete);
            let command = dialog.and_then(|dialog| dialog.input?.get("command").cloned());
            if let Some(command) = command {
                let known = command
                    .as_str()
                    .is_some_and(|command| targets.contains(command));
                assert!(known, "{} at {at:?}: {command:?}", cast.display());
            }
        }
    }
}

/// A dialog that is drawn again for another size is the same, and what is at work asks nothing in between.
#[test]
fn a_change_of_size_makes_no_dialog() {
    const AFTER: Duration = Duration::from_secs(1);
    for cast in resized() {
        let bytes = std::fs::read(&cast).expect("a recording");
        let observed = observe(&bytes, whole);
        let id = |observed: &Observed| observed.dialog.as_ref().map(|dialog| dialog.id.clone());
        for resize in resizes(&bytes) {
            let before = observed.iter().rev().find(|(at, _)| *at <= resize);
            let before = before.and_then(|(_, observed)| id(observed));
            let after = observed
                .iter()
                .filter(|(at, _)| *at > resize && *at < resize + AFTER);
            for (at, observed) in after {
                assert_eq!(id(observed), before, "{} at {at:?}", cast.display());
            }
        }
    }
}

/// When the terminal got another size.
fn resizes(cast: &[u8]) -> Vec<At> {
    let events = Recording::read(cast)
        .expect("a header")
        .map(|event| event.expect("an event"));
    let is_resize = |what: &What| matches!(what, What::Resize { .. });
    let times: Vec<At> = events
        .filter(|event| is_resize(&event.what))
        .map(|event| event.at)
        .collect();
    assert!(!times.is_empty());
    times
}

/// The title may lag behind the screen by a moment, as `slot::machine` allows it to, and no more.
#[test]
fn the_title_confirms_the_screen() {
    const MOMENT: Duration = Duration::from_secs(3);
    for cast in recordings() {
        let mut since = None;
        for (at, observed, title) in observe_with_title(&std::fs::read(&cast).expect("a recording"))
        {
            let both = [witness::screen(&observed), witness::title(&title)];
            match witness::weigh(&both) {
                Weighed::Agreement => since = None,
                Weighed::Doubt { why } => {
                    let lasted = at - *since.get_or_insert(at);
                    assert!(lasted < MOMENT, "{} at {at:?}: {why}", cast.display());
                }
            }
        }
    }
}

#[test]
fn replay_tells_what_the_frames_show() {
    for cast in recordings() {
        let bytes = std::fs::read(&cast).expect("a recording");
        let recording = Recording::read(bytes.as_slice()).expect("a header");
        let told: Vec<(State, Option<String>)> = replay(recording)
            .map(|change| change.expect("a line"))
            .map(|change| (change.state, change.dialog.map(|dialog| dialog.id)))
            .collect();
        let mut seen: Vec<(State, Option<String>)> = observe(&bytes, whole)
            .into_iter()
            .map(|(_, observed)| (observed.state, observed.dialog.map(|dialog| dialog.id)))
            .collect();
        seen.dedup();
        let mut distinct = told.clone();
        distinct.dedup();
        assert_eq!(distinct, seen, "{}", cast.display());
    }
}

#[test]
fn a_snapshot_reads_as_the_screen_it_was_taken_of() {
    for cast in recordings() {
        let bytes = std::fs::read(&cast).expect("a recording");
        let recording = Recording::read(bytes.as_slice()).expect("a header");
        let (cols, rows) = (recording.header().cols, recording.header().rows);
        let mut terminal = Terminal::new(cols, rows);
        for event in recording {
            if let What::Output(text) = event.expect("an event").what {
                terminal.feed(At::ZERO, text.as_bytes());
            }
        }
        let mut copy = Terminal::new(cols, rows);
        copy.feed(At::ZERO, &terminal.snapshot());
        assert_eq!(copy.screen(), terminal.screen(), "{}", cast.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_splitting_of_a_recording_gives_the_same(which in any::<prop::sample::Index>(), size in 1usize..40) {
        let casts = recordings();
        let bytes = std::fs::read(which.get(&casts)).expect("a recording");
        let split = |text: &str| text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(observe(&bytes, split), observe(&bytes, whole));
    }

    #[test]
    fn a_mutated_recording_is_read_without_a_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        (cols, rows) in (2usize..200, 2usize..60),
    ) {
        let casts = recordings();
        let bytes = std::fs::read(which.get(&casts)).expect("a recording");
        let recording = Recording::read(bytes.as_slice()).expect("a header");
        let mut output: Vec<u8> = Vec::new();
        for event in recording {
            if let What::Output(text) = event.expect("an event").what {
                output.extend_from_slice(text.as_bytes());
            }
        }
        for (at, byte) in edits {
            let at = at.index(output.len());
            output[at] = byte;
        }
        let mut terminal = Terminal::new(cols, rows);
        for (n, piece) in output.chunks(512).enumerate() {
            terminal.feed(Duration::from_millis(n as u64 * 30), piece);
            read(&terminal.screen());
        }
        prop_assert_eq!(terminal.faults(), 0);
    }
}

fn differences(moment: &Moment, seen: &Observed) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, right: bool, is: String| {
        if !right {
            found.push(format!("{what} is {is}; {:?}", seen.reading.because));
        }
    };
    check(
        "state",
        is_state(&moment.state, seen.state),
        format!("{:?}, not {}", seen.state, moment.state),
    );
    let composer = seen.reading.composer.clone().unwrap_or_default();
    check(
        "draft",
        moment
            .draft
            .as_ref()
            .is_none_or(|draft| *draft == composer.draft),
        format!("{:?}", composer.draft),
    );
    check(
        "menu",
        moment.menu.is_none_or(|menu| menu == composer.menu),
        format!("{}", composer.menu),
    );
    check(
        "mode",
        moment.mode.is_none() || moment.mode == seen.reading.mode,
        format!("{:?}", seen.reading.mode),
    );
    let background = seen.reading.background;
    check(
        "background",
        moment.background.is_none_or(|n| n == background),
        format!("{background}"),
    );
    let error = seen.reading.last_error.clone();
    check(
        "last_error",
        moment.last_error.is_none() || moment.last_error == error,
        format!("{error:?}"),
    );
    match (&moment.dialog, &seen.dialog) {
        (Some(expected), Some(dialog)) => check(
            "dialog",
            is_dialog(expected, dialog),
            format!("{dialog:#?}"),
        ),
        (None, None) => {}
        (expected, dialog) => check(
            "dialog",
            false,
            format!("{dialog:#?}, expected: {}", expected.is_some()),
        ),
    }
    found
}

fn is_state(expected: &str, state: State) -> bool {
    match expected {
        "busy" => matches!(
            state,
            State::Thinking | State::Responding | State::ToolRunning | State::Error
        ),
        name => serde_json::to_value(state).is_ok_and(|state| state == name),
    }
}

fn is_dialog(expected: &Expected, dialog: &Dialog) -> bool {
    let labels: Vec<&str> = dialog
        .options
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    let shown = |target: &String| {
        dialog
            .input
            .as_ref()
            .is_some_and(|input| input.values().any(|value| value == target))
    };
    let ticks = || dialog.options.iter().filter_map(|choice| choice.checked);
    expected.kind == dialog.kind
        && expected
            .checked
            .as_ref()
            .is_none_or(|ticked| ticks().eq(ticked.iter().copied()))
        && expected.tool == dialog.tool
        && expected.target.as_ref().is_none_or(shown)
        && expected.options == labels
        && expected.selected == dialog.selected
        && expected.complete == dialog.complete
        && !dialog.id.is_empty()
}
