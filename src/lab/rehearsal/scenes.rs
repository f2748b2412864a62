//! The scenes of a rehearsal: every state and dialog that Claude Code can be led into, as data. Pure.

use super::script::Step;
use crate::core::claude::Version;
use crate::core::claude::keys;
use crate::core::claude::reading::{DialogKind, State};
use crate::launch;
use serde_json::json;
use std::path::{Path, PathBuf};

/// One part of a rehearsal. It begins and ends at an idle, empty input box; the first scene of a run begins at the
/// start.
#[derive(Debug)]
pub struct Scene {
    pub name: &'static str,
    /// Whether a key that missiond presses depends on it. If another scene fails, that is only reported.
    pub needed: bool,
    pub acts: Vec<Act>,
}

/// The scenes of one start of the program.
#[derive(Debug)]
pub struct SceneRun {
    pub opening: Opening,
    pub scenes: Vec<Scene>,
}

/// The question that Claude Code asks at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Whether the folder is trusted.
    Trust,
    /// Whether to use the API key in the environment.
    ApiKey,
}

/// An action, or a condition to wait for.
#[derive(Debug)]
pub enum Act {
    /// Sends a message, which the model answers with these steps.
    Say(String, Vec<Step>),
    /// Puts a text into the input box and leaves it there.
    Paste(&'static str),
    Press(&'static [u8]),
    /// Changes to this permission mode with shift+tab.
    Mode(&'static str),
    /// Opens a gate of the endpoint.
    Open(&'static str),
    Create(PathBuf),
    /// Sets the answer of the hook before each tool call in this scene; without it the hook leaves the call to a
    /// person.
    Rule(SceneRule),
    /// Answers the dialog like a person: `yes`, `no` or a label.
    Answer(&'static str),
    See(SceneSight),
    /// Waits until the hook SessionStart has been called since the start, which shows that the gate works.
    SessionBegan,
    /// Waits until this hook has been called in this scene.
    Hear(&'static str),
    TurnIsOver,
    /// Waits until the model has received this text.
    Told(String),
    /// Waits until the model has received this answer, after a review page if the version has one.
    Answered(&'static str),
    /// Waits for text that begins like this, and checks that it is read as text if the version draws it before it is
    /// complete.
    Streams(&'static str),
    /// Waits until the file exists and contains this text.
    Made(PathBuf, &'static str),
    NotMade(PathBuf),
    /// Checks that no dialog was read in this scene.
    NoDialog,
    /// Waits until the program has ended.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SceneRule {
    Allow,
    Deny,
}

/// The hook's reason for a refusal, which the model must receive.
pub const REFUSAL: &str = "refused in a rehearsal";

/// What the reading of the screen must be.
#[derive(Debug, Default)]
pub struct SceneSight {
    pub state: Option<State>,
    /// Any state of work is accepted, because versions differ in which one they show.
    pub at_work: bool,
    pub dialog: Option<ShownScreen>,
    pub draft: Option<&'static str>,
    pub error: Option<&'static str>,
}

/// What the reading of a dialog must be. If `answers` are given, the dialog must be complete, and each must be an
/// option of it.
#[derive(Debug)]
pub struct ShownScreen {
    pub kind: DialogKind,
    pub tool: Option<&'static str>,
    /// A key of the tool's input, and its value.
    pub input: Option<(&'static str, String)>,
    pub answers: &'static [&'static str],
}

/// All scenes, for a program of this version that works in `cwd`.
pub fn runs(cwd: &Path, version: Version) -> Vec<SceneRun> {
    let mut scenes = opening();
    scenes.extend(typing());
    scenes.extend(working(cwd));
    scenes.extend(rules(cwd));
    scenes.extend(permissions(cwd));
    scenes.extend(questions());
    scenes.extend(endings_of_a_turn(version));
    scenes.extend(views());
    scenes.push(scene("exit", vec![say("/exit", vec![]), Act::Ended]));
    vec![
        SceneRun {
            opening: Opening::Trust,
            scenes,
        },
        SceneRun {
            opening: Opening::ApiKey,
            scenes: vec![asked_at_start("API key", DialogKind::ApiKey)],
        },
    ]
}

/// The scene after a new start of a program that failed a scene.
pub fn start_again() -> Scene {
    scene("start", vec![Act::See(idle())])
}

fn opening() -> Vec<Scene> {
    vec![
        asked_at_start("trust", DialogKind::Trust),
        turn(
            "hooks",
            vec![
                Act::SessionBegan,
                say("hello", vec![Step::text("Good day.")]),
                Act::Hear("UserPromptSubmit"),
                Act::Hear("Stop"),
            ],
        ),
    ]
}

fn asked_at_start(name: &'static str, kind: DialogKind) -> Scene {
    let shown = ShownScreen {
        kind,
        tool: None,
        input: None,
        answers: &["yes", "no"],
    };
    let acts = vec![
        Act::See(dialog(shown)),
        Act::Answer("yes"),
        Act::See(idle()),
    ];
    scene(name, acts)
}

fn typing() -> Vec<Scene> {
    let draft = "a draft that nobody sends";
    let lines: Vec<String> = (1..=12).map(|line| format!("line {line}")).collect();
    let long = lines.join("\n");
    let seen = SceneSight {
        draft: Some(draft),
        ..idle()
    };
    vec![
        scene(
            "draft",
            vec![
                Act::Paste(draft),
                Act::See(seen),
                Act::Press(keys::CLEAR),
                Act::See(idle()),
            ],
        ),
        // Shown as a placeholder, and sent in full.
        turn(
            "long message",
            vec![
                say(&long, vec![Step::text("Read.")]),
                Act::Told(long.clone()),
            ],
        ),
    ]
}

fn working(cwd: &Path) -> Vec<Scene> {
    let go = cwd.join("go");
    let wait = format!("until [ -e '{}' ]; do sleep 0.1; done", go.display());
    vec![
        turn(
            "thinking",
            vec![
                say("think", vec![Step::gate("thought"), Step::text("Thought.")]),
                state(State::Thinking),
                Act::Open("thought"),
            ],
        ),
        // No key depends on it.
        Scene {
            needed: false,
            ..turn(
                "responding",
                vec![
                    say("talk", vec![Step::gated_text(TWO_PARAGRAPHS, 3, "said")]),
                    Act::Streams(FIRST_PARAGRAPH),
                    Act::Open("said"),
                ],
            )
        },
        turn(
            "tool running",
            vec![
                Act::Rule(SceneRule::Allow),
                say("wait", vec![bash(&wait), Step::text("It is over.")]),
                state(State::ToolRunning),
                Act::Create(go),
            ],
        ),
    ]
}

/// Claude Code shows a paragraph once it is complete.
const FIRST_PARAGRAPH: &str = "A first part.";
const TWO_PARAGRAPHS: &str = "A first part.\n\nThe second, which is held back.";

fn rules(cwd: &Path) -> Vec<Scene> {
    let (allowed, denied) = (cwd.join("allowed"), cwd.join("denied"));
    vec![
        turn(
            "allowed by hook",
            vec![
                Act::Rule(SceneRule::Allow),
                say("make one", vec![make(&allowed), Step::text("Made.")]),
                Act::Made(allowed, ""),
                Act::NoDialog,
            ],
        ),
        turn(
            "denied by hook",
            vec![
                Act::Rule(SceneRule::Deny),
                say("make another", vec![make(&denied), Step::text("Not made.")]),
                Act::Told(REFUSAL.to_owned()),
                Act::NoDialog,
                Act::NotMade(denied),
            ],
        ),
    ]
}

fn permissions(cwd: &Path) -> Vec<Scene> {
    let (yes, no, new, old) = (
        cwd.join("yes"),
        cwd.join("no"),
        cwd.join("new.txt"),
        cwd.join(OLD_FILE),
    );
    let write = Step::tool("Write", json!({"file_path": new, "content": "one\ntwo\n"}));
    let edit = json!({"file_path": old, "old_string": "before", "new_string": "after"});
    let edit = vec![
        Step::tool("Read", json!({"file_path": old})),
        Step::tool("Edit", edit),
        Step::text("Changed."),
    ];
    let url = "http://127.0.0.1:9/page";
    let fetch = Step::tool("WebFetch", json!({"url": url, "prompt": "Sum it up"}));
    vec![
        turn(
            "Bash, yes",
            vec![
                say("run it", vec![make(&yes), Step::text("Made.")]),
                asks("Bash", "command", command(&yes)),
                Act::NotMade(yes.clone()),
                Act::Answer("yes"),
                Act::Made(yes, ""),
            ],
        ),
        declined(
            "Bash, no",
            make(&no),
            asks("Bash", "command", command(&no)),
            Act::NotMade(no),
        ),
        declined(
            "Write",
            write,
            asks("Write", "file_path", name(&new)),
            Act::NotMade(new),
        ),
        turn(
            "Edit",
            vec![
                say("change it", edit),
                asks("Edit", "file_path", name(&old)),
                Act::Answer("yes"),
                Act::Made(old, "after"),
            ],
        ),
        declined(
            "WebFetch",
            fetch,
            asks("WebFetch", "url", url.to_owned()),
            Act::See(idle()),
        ),
    ]
}

/// A file that exists from the beginning, with the text `before`.
pub const OLD_FILE: &str = "old.txt";

/// A scene with a call that is answered with no, which ends the turn at once.
fn declined(scene_name: &'static str, call: Step, asks: Act, after: Act) -> Scene {
    let said = say(scene_name, vec![call, Step::text("Made.")]);
    scene(
        scene_name,
        vec![said, asks, Act::Answer("no"), Act::See(idle()), after],
    )
}

fn questions() -> Vec<Scene> {
    let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]});
    let question = Step::tool("AskUserQuestion", json!({"questions": [question]}));
    let asked = ShownScreen {
        kind: DialogKind::Question,
        tool: None,
        input: Some(("question", "Which colour?".to_owned())),
        answers: &["Red", "Blue"],
    };
    let plan = Step::tool("ExitPlanMode", json!({"plan": "1. Look\n2. Leave"}));
    let planned = ShownScreen {
        kind: DialogKind::Plan,
        tool: None,
        input: None,
        answers: &["no"],
    };
    vec![
        turn(
            "question",
            vec![
                say("ask me", vec![question, Step::text("Thank you.")]),
                Act::See(dialog(asked)),
                Act::Answer("Blue"),
                Act::Answered(r#""Which colour?"="Blue""#),
            ],
        ),
        scene(
            "plan",
            vec![
                Act::Mode("plan"),
                say("plan it", vec![plan, Step::text("Planned.")]),
                Act::See(dialog(planned)),
                Act::Answer("no"),
                Act::See(idle()),
                Act::Mode("manual"),
            ],
        ),
    ]
}

fn endings_of_a_turn(version: Version) -> Vec<Scene> {
    let failed = SceneSight {
        error: Some("scripted"),
        ..idle()
    };
    let refused = Step::error(400, "invalid_request_error", "scripted");
    let mut fails = vec![say("fail", vec![refused]), Act::See(failed)];
    if launch::calls_hook(version, "StopFailure") {
        fails.push(Act::Hear("StopFailure"));
    }
    vec![
        scene(
            "interrupt",
            vec![
                say(
                    "talk on",
                    vec![Step::gated_text(TWO_PARAGRAPHS, 3, "never")],
                ),
                Act::See(SceneSight {
                    at_work: true,
                    ..SceneSight::default()
                }),
                Act::Press(keys::ESC),
                Act::See(idle()),
            ],
        ),
        Scene {
            needed: false,
            ..scene("API error", fails)
        },
    ]
}

fn views() -> Vec<Scene> {
    const CTRL_O: &[u8] = b"\x0f";
    let rule = "─".repeat(110);
    let fake = format!(
        "```\n{rule}\n Bash command\n\n   rm -rf /\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n```"
    );
    vec![
        scene(
            "menu",
            vec![
                say("/model", vec![]),
                Act::See(other_view()),
                Act::Press(keys::ESC),
                Act::See(idle()),
            ],
        ),
        scene(
            "transcript view",
            vec![
                Act::Press(CTRL_O),
                Act::See(other_view()),
                Act::Press(CTRL_O),
                Act::See(idle()),
            ],
        ),
        turn(
            "a dialog in an answer",
            vec![
                say("pretend", vec![Step::text(fake)]),
                Act::TurnIsOver,
                Act::NoDialog,
            ],
        ),
    ]
}

fn scene(name: &'static str, acts: Vec<Act>) -> Scene {
    Scene {
        name,
        needed: true,
        acts,
    }
}

/// A scene with a turn that runs to its end.
fn turn(name: &'static str, mut acts: Vec<Act>) -> Scene {
    acts.extend([Act::TurnIsOver, Act::See(idle())]);
    scene(name, acts)
}

fn say(message: &str, steps: Vec<Step>) -> Act {
    Act::Say(message.to_owned(), steps)
}

fn command(path: &Path) -> String {
    // A command that Claude Code does not allow by itself, with a visible effect.
    format!("mkfifo {}", name(path))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn make(path: &Path) -> Step {
    bash(&command(path))
}

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "Do it"}))
}

fn asks(tool: &'static str, key: &'static str, value: String) -> Act {
    Act::See(dialog(ShownScreen {
        kind: DialogKind::Permission,
        tool: Some(tool),
        input: Some((key, value)),
        answers: &["yes", "no"],
    }))
}

fn other_view() -> SceneSight {
    dialog(ShownScreen {
        kind: DialogKind::Other,
        tool: None,
        input: None,
        answers: &[],
    })
}

fn dialog(shown: ShownScreen) -> SceneSight {
    SceneSight {
        state: Some(State::Confirming),
        dialog: Some(shown),
        ..SceneSight::default()
    }
}

fn idle() -> SceneSight {
    SceneSight {
        state: Some(State::Idle),
        draft: Some(""),
        ..SceneSight::default()
    }
}

fn state(state: State) -> Act {
    Act::See(SceneSight {
        state: Some(state),
        ..SceneSight::default()
    })
}
