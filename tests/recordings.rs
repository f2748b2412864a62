//! Every recording in `tests/recordings` is read right at its labelled moments.
//!
//! A new case is two files and no code: `<version>-<cols>x<rows>/<case>.cast` and `<case>.truth.json`.
//! A moment says what is true at recorded second `t`; what it does not mention is not checked.

use missiond::core::cast::{CastKind, Recording};
use missiond::core::claude::keys::in_known_order;
use missiond::core::claude::reading::witness::{self, Weighed};
use missiond::core::claude::reading::{
    Dialog, DialogKind, LAST_STANDS, Observed, Observer, State, read, replay,
};
use missiond::core::claude::vocabulary::{NOWHERE, PHRASES};
use missiond::core::terminal::{At, Frame, Terminal};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
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
    /// A part of the error that the screen shows.
    error: Option<String>,
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
    /// The labels, as they were read off the screen.
    options: Option<Vec<String>>,
    selected: Option<usize>,
    /// How the numbered rows begin, and the number of the marked one: what `examples/record` takes off the screen.
    rows: Option<Vec<String>>,
    marked: Option<u32>,
    /// What the endpoint sent: whatever counts as complete has these values.
    input: Option<Map<String, Value>>,
    whole: Option<Whole>,
    /// The ticks, of those choices that have one.
    checked: Option<Vec<bool>>,
    complete: Option<bool>,
}

/// Whether the screen shows all of the call.
#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Whole {
    Yes,
    No,
    /// Where two rows meet the screen may not tell what stood there.
    Unknown,
}

fn recordings() -> Vec<PathBuf> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let root = std::env::var_os("RECORDINGS").map_or_else(own, PathBuf::from);
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
            CastKind::Output(text) => {
                for piece in split(&text) {
                    frames.extend(terminal.feed(event.at, &piece));
                }
            }
            CastKind::Resize { cols, rows } => frames.extend(terminal.resize(event.at, cols, rows)),
            CastKind::Marker(_) | CastKind::Exit => frames.extend(terminal.quiet(event.at)),
        }
    }
    let end = last + LAST_STANDS;
    frames.extend(terminal.quiet(end));
    (frames, end)
}

fn whole(text: &str) -> Vec<Vec<u8>> {
    vec![text.as_bytes().to_vec()]
}

/// docs/testing.md has the table of the moments by version. `MISSIOND_WRITE_DOCS=1` writes it again.
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
    assert!(!table.cells.is_empty());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_page(&table.to_string());
}

fn check_page(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testing.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once("| version |").expect("a table by version");
    let (_, after) = rest.split_once("\n\n").expect("text behind the table");
    let made = format!("{before}{table}\n{after}");
    if std::env::var_os("MISSIOND_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).expect("the page can be written");
        return;
    }
    assert!(
        page == made,
        "docs/testing.md has another table: MISSIOND_WRITE_DOCS=1 cargo test --test recordings"
    );
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

/// The versions whose recordings show each text that the reader looks for. With `--nocapture` it prints them all, a column
/// for each version; if a row of the vocabulary says something else, that row is to be corrected.
#[test]
fn each_row_of_the_vocabulary_says_which_recorded_versions_show_it() {
    let mut shown: BTreeMap<Vec<u32>, BTreeSet<usize>> = BTreeMap::new();
    for cast in recordings() {
        let rows = shown.entry(version(&cast)).or_default();
        let text = std::fs::read(&cast).expect("a recording");
        for frame in frames(&text, whole).0 {
            let lines = frame.screen.lines.iter().map(|line| line.text.as_str());
            let lines: Vec<&str> = lines.chain([frame.screen.title.as_str()]).collect();
            let screen = lines.join("\n").to_lowercase();
            let missing = (0..PHRASES.len()).filter(|row| !rows.contains(row));
            let new: Vec<usize> = missing
                .filter(|row| screen.contains(&PHRASES[*row].text.to_lowercase()))
                .collect();
            rows.extend(new);
        }
    }
    let name = |version: &[u32]| {
        version
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(".")
    };
    let all: Vec<String> = shown.keys().map(|version| name(version)).collect();
    println!(
        "a column for each of {} versions: {}",
        all.len(),
        all.join(" ")
    );
    let mut wrong = Vec::new();
    for (row, phrase) in PHRASES.iter().enumerate() {
        let mut with = shown
            .iter()
            .filter(|(_, rows)| rows.contains(&row))
            .map(|(version, _)| name(version));
        let first = with.next();
        let last = with.next_back().or_else(|| first.clone());
        let seen = match (first, last) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => NOWHERE.to_owned(),
        };
        let columns: String = shown
            .values()
            .map(|rows| if rows.contains(&row) { 'x' } else { '.' })
            .collect();
        println!("{columns} {seen:20} {} {:?}", phrase.group, phrase.text);
        if seen != phrase.seen {
            wrong.push(format!(
                "{} {:?}: {seen}, not {}",
                phrase.group, phrase.text, phrase.seen
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "src/core/claude/vocabulary.rs:\n{}",
        wrong.join("\n")
    );
}

/// A label that came from the reader would confirm whatever is read.
#[test]
fn the_recorder_takes_no_label_from_the_reader() {
    let truth = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/record/truth.rs");
    let code = std::fs::read_to_string(truth).expect("the recorder");
    for word in ["reading::", "Observed", "Dialog"] {
        assert!(!code.contains(word), "the labels name {word}");
    }
}

/// What the endpoint sent decides whether a dialog may count as complete.
#[test]
fn a_call_that_was_sent_otherwise_is_not_complete() {
    let cast = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recordings/2.1.325-100x30/resize_dialog.cast");
    let observed = observe(&std::fs::read(cast).expect("a recording"), whole);
    let complete = observed
        .into_iter()
        .find_map(|(_, observed)| observed.dialog.filter(|dialog| dialog.complete))
        .expect("a complete dialog");
    let sent = complete.input.clone().expect("a command");
    let expected = |command: &str, whole: &str| -> Expected {
        let label = json!({"kind": "permission", "tool": "Bash", "whole": whole, "input": {"command": command}});
        serde_json::from_value(label).expect("a label")
    };
    let command = sent["command"].as_str().expect("a text");
    let longer = format!("{command} && reboot");
    let cut = Dialog {
        complete: false,
        ..complete.clone()
    };
    for (label, dialog, right) in [
        (expected(command, "yes"), &complete, true),
        (expected(&longer, "yes"), &complete, false),
        (expected(&longer, "no"), &complete, false),
        (expected(&longer, "unknown"), &complete, false),
        (expected(&longer, "no"), &cut, true),
        (expected(&longer, "unknown"), &cut, true),
        (expected(command, "yes"), &cut, false),
    ] {
        assert_eq!(is_dialog(&label, dialog), right, "{dialog:?}");
    }
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

/// A command that is cut at an edge, drawn for a size that the terminal has no more, or only half drawn is at no moment a
/// whole one.
#[test]
fn no_command_is_whole_that_was_not_sent() {
    let is_resized: BTreeSet<PathBuf> = resized().into_iter().collect();
    let mut looked_at = 0;
    for cast in recordings() {
        let moments = truth(&cast);
        let labels = || moments.iter().filter_map(|moment| moment.dialog.as_ref());
        let sent = labels().filter_map(|label| label.input.as_ref()?.get("command")?.as_str());
        let sent: BTreeSet<&str> = sent
            .chain(labels().filter_map(|label| label.target.as_deref()))
            .collect();
        let scripted = labels().any(|label| label.input.is_some());
        if !scripted && !is_resized.contains(&cast) {
            continue;
        }
        for (at, observed) in observe(&std::fs::read(&cast).expect("a recording"), whole) {
            let dialog = observed.dialog.filter(|dialog| dialog.complete);
            let command = dialog.and_then(|dialog| dialog.input?.get("command").cloned());
            if let Some(command) = command {
                let known = command.as_str().is_some_and(|text| sent.contains(text));
                assert!(known, "{} at {at:?}: {command:?}", cast.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 0);
}

/// The cases in which the program asks nothing.
const ASKS_NOTHING: [&str; 8] = [
    "work",
    "spoof_more",
    "queued",
    "looks_still",
    "resize_streaming",
    "errors",
    "limit",
    "compact",
];

/// What is printed, streamed or half drawn makes no dialog, not for one frame.
#[test]
fn a_session_that_asks_nothing_has_no_dialog() {
    let mut wrong = Vec::new();
    for cast in recordings() {
        let name = cast.file_stem().unwrap_or_default().to_string_lossy();
        let labels = truth(&cast);
        let asks = labels.iter().any(|moment| moment.dialog.is_some());
        if asks || !ASKS_NOTHING.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        // The program is ended after the last label.
        let end = labels
            .last()
            .map_or(At::ZERO, |moment| Duration::from_secs_f64(moment.t));
        let observed = observe(&std::fs::read(&cast).expect("a recording"), whole);
        for (at, observed) in observed.into_iter().filter(|(at, _)| *at <= end) {
            if let Some(dialog) = observed.dialog {
                wrong.push(format!("{} at {at:?}: {}", cast.display(), dialog.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    let is_resize = |what: &CastKind| matches!(what, CastKind::Resize { .. });
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
            if let CastKind::Output(text) = event.expect("an event").what {
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
            if let CastKind::Output(text) = event.expect("an event").what {
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
        "order of the options",
        seen.dialog.as_ref().is_none_or(in_known_order),
        format!("{:?}", seen.dialog),
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
    let says = |words: &String| {
        seen.reading
            .last_error
            .as_ref()
            .is_some_and(|error| error.contains(words))
    };
    check(
        "error",
        moment.error.as_ref().is_none_or(says),
        format!("{:?}", seen.reading.last_error),
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
    let tool = match expected.whole {
        _ if expected.kind == DialogKind::Other && expected.options.is_none() => true,
        Some(Whole::No) => dialog.tool.is_none() || dialog.tool == expected.tool,
        _ => dialog.tool == expected.tool,
    };
    let shown = |target: &String| values(dialog).any(|value| is_target(target, value));
    expected.kind == dialog.kind
        && tool
        && expected.target.as_ref().is_none_or(shown)
        && has_choices(expected, dialog)
        && is_rightly_complete(expected, dialog)
        && !dialog.id.is_empty()
}

fn values(dialog: &Dialog) -> impl Iterator<Item = &Value> {
    dialog.input.iter().flat_map(Map::values)
}

/// A path may be shown from the working directory on.
fn is_target(sent: &str, read: &Value) -> bool {
    let read = read.as_str().unwrap_or_default();
    let is_end = |whole: &str, end: &str| whole.ends_with(&format!("/{end}"));
    sent == read || is_end(sent, read) || is_end(read, sent)
}

fn has_choices(expected: &Expected, dialog: &Dialog) -> bool {
    let options = &dialog.options;
    let ticks = || options.iter().filter_map(|choice| choice.checked);
    let exact = expected.options.as_ref().is_none_or(|labels| {
        options.iter().map(|choice| &choice.label).eq(labels)
            && expected.selected == dialog.selected
    });
    let numbered = options.iter().filter(|choice| choice.number.is_some());
    let rows = expected.rows.as_ref().is_none_or(|rows| {
        numbered.clone().count() == rows.len()
            && numbered
                .zip(rows)
                .all(|(choice, row)| begin_alike(&choice.label, row))
    });
    let selected = dialog.selected.and_then(|index| options[index].number);
    let ticked = expected.checked.as_ref();
    exact
        && rows
        && expected
            .marked
            .is_none_or(|marked| selected == Some(marked))
        && ticked.is_none_or(|ticked| ticks().eq(ticked.iter().copied()))
}

/// A label may go on in the next row, and a row may have more beside the label.
fn begin_alike(label: &str, row: &str) -> bool {
    let signs = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let (label, row) = (signs(label), signs(row));
    label.starts_with(&row) || row.starts_with(&label)
}

/// Whether what was read is what was sent, with values of every type and no more of them.
fn is_sent(sent: &Map<String, Value>, read: &Map<String, Value>) -> bool {
    const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];
    let same = |(key, value): (&String, &Value)| match (value, read.get(key)) {
        (Value::String(path), Some(read)) if PATHS.contains(&key.as_str()) => is_target(path, read),
        (value, read) => Some(value) == read,
    };
    sent.len() == read.len() && sent.iter().all(same)
}

/// Nothing counts as complete that the endpoint has not sent so, and nothing as incomplete that is whole.
fn is_rightly_complete(expected: &Expected, dialog: &Dialog) -> bool {
    let sent = |input: &Map<String, Value>| {
        let read = dialog.input.as_ref();
        read.is_some_and(|read| is_sent(input, read))
    };
    match (expected.whole, expected.complete) {
        (Some(_), _) if dialog.complete => expected.input.as_ref().is_none_or(sent),
        (Some(whole), _) => whole != Whole::Yes,
        (None, Some(complete)) => complete == dialog.complete,
        (None, None) => expected.options.is_none() || dialog.complete,
    }
}
