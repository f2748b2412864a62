//! What is done in front of the recorder, as `scenes.toml` has it.

use anyhow::{Context, Result, bail};
use missiond::core::claude::Version;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

pub const SCENES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/record/scenes.toml");

#[derive(Debug, Deserialize)]
struct File {
    session: Vec<Session>,
}

/// One start of the program, and one recording.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    pub name: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The user's own settings.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Keys of `.claude.json`.
    #[serde(default)]
    pub known: Map<String, Value>,
    #[serde(default)]
    pub untrusted: bool,
    #[serde(default)]
    pub unapproved_key: bool,
    /// The home was never used: Claude Code knows nothing of it.
    #[serde(default)]
    pub unused_home: bool,
    #[serde(default = "manual")]
    pub mode: String,
    /// The first version that can do it.
    since: Option<String>,
    pub scene: Vec<Scene>,
}

fn manual() -> String {
    "manual".to_owned()
}

impl Session {
    pub fn is_for(&self, version: Version) -> bool {
        let since = self.since.as_deref().and_then(Version::parse);
        since.is_none_or(|since| since <= version)
    }
}

/// Begins and ends at an empty input box, but for the first and the last of a session.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    pub name: String,
    /// Whether the program is gone or left anywhere afterwards.
    #[serde(default)]
    pub last: bool,
    since: Option<String>,
    until: Option<String>,
    pub moves: Vec<Move>,
}

impl Scene {
    pub fn is_for(&self, version: Version) -> bool {
        let bound = |text: &Option<String>| text.as_deref().and_then(Version::parse);
        bound(&self.since).is_none_or(|since| since <= version)
            && bound(&self.until).is_none_or(|until| version < until)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Move {
    /// A message; what the model answers to it stands in [`Move::Model`] before it.
    Say(String),
    /// The steps of the model's answer to the next message.
    /// `{work}`, `{home}`, `{fake}` and `{long}` stand for places and texts of the stage.
    Model(Vec<Value>),
    /// What the model answers whenever it is asked this.
    Script {
        prompt: String,
        steps: Vec<Value>,
    },
    /// A notice that may come up by itself: it is marked as a view, and the key leaves it.
    IfShown {
        text: String,
        press: String,
        kind: Option<String>,
    },
    /// Puts a text into the input box.
    Paste(String),
    /// Types the characters one by one.
    Type(String),
    /// Keys by name: `esc`, `ctrl+o`, `down`, …
    Press(String),
    /// Waits until this stands on the screen, however it is wrapped.
    Shows(String),
    /// Waits until it stands there no more.
    Hides(String),
    /// Lets recorded time pass.
    Pause(f64),
    /// Waits until the screen stands still.
    Rest(bool),
    Open(String),
    /// Gives the terminal another size, `COLUMNSxROWS`, and waits until it has it. What the program draws is not waited for.
    Resize(String),
    /// Answers the dialog by label.
    Choose(String),
    /// What a person sees now.
    Mark(Mark),
    /// Waits until the program has ended, or has not.
    Ended(bool),
}

/// What is true of a moment, whatever the reader says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    pub state: String,
    pub kind: Option<String>,
    pub tool: Option<String>,
    pub target: Option<String>,
    /// May be missing where the screen can't show it whole.
    #[serde(default)]
    pub cut: bool,
    /// Nothing is missing, but where two rows meet the screen may not tell what stood there.
    #[serde(default)]
    pub doubtful: bool,
    pub draft: Option<String>,
    pub menu: Option<bool>,
    pub mode: Option<String>,
    pub background: Option<u32>,
    /// A part of the error that the screen shows.
    pub error: Option<String>,
}

impl Mark {
    /// Something that holds the keys: a view, or a question where that is the kind.
    pub fn view(kind: Option<&str>) -> Mark {
        let question = kind == Some("question");
        Mark {
            state: "confirming".to_owned(),
            kind: Some(kind.unwrap_or("other").to_owned()),
            tool: question.then(|| "AskUserQuestion".to_owned()),
            ..Mark::default()
        }
    }
}

pub fn sessions(path: &Path) -> Result<Vec<Session>> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let file: File = toml::from_str(&text).with_context(name)?;
    Ok(file.session)
}

/// The bytes of a key.
pub fn key(name: &str) -> Result<Vec<u8>> {
    let bytes: &[u8] = match name {
        "enter" => b"\r",
        "esc" => b"\x1b",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "tab" => b"\t",
        "space" => b" ",
        "shift+tab" => b"\x1b[Z",
        "backspace" => b"\x7f",
        _ => return control(name),
    };
    Ok(bytes.to_vec())
}

fn control(name: &str) -> Result<Vec<u8>> {
    match name.strip_prefix("ctrl+").map(str::as_bytes) {
        Some([letter @ b'a'..=b'z']) => Ok(vec![letter - b'a' + 1]),
        _ if name.len() == 1 => Ok(name.as_bytes().to_vec()),
        _ => bail!("no key is called {name:?}"),
    }
}
