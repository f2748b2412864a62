//! The content of the demo: the slots, their policies, their messages and the model's answers. Pure.

use crate::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::path::Path;

/// A message to a slot, and the scripted model's steps for it.
#[derive(Debug)]
pub struct DemoScene {
    pub slot: &'static str,
    pub message: &'static str,
    pub steps: Vec<Step>,
}

pub const READER: &str = "reader";
pub const CODER: &str = "coder";
pub const REVIEWER: &str = "reviewer";

/// The slots, each with the policy of its role.
pub const SLOTS: &[(&str, &str)] = &[
    (READER, READER_POLICY),
    (CODER, CODER_POLICY),
    (REVIEWER, REVIEWER_POLICY),
];

const READER_POLICY: &str = r#"# The reader looks at files and does nothing else.
default = "ask"
allow = [
    "Read",
]
"#;

const CODER_POLICY: &str = r#"# The coder may read; publishing needs a person, and nothing is removed.
default = "ask"
allow = [
    "Read",
]
ask = [
    "Bash(./publish.sh *)",
]
deny = [
    "Bash(rm *)",
]
deny_reason = "Leave it where it is."

[[example]]
tool = "Bash"
input = { command = "rm -rf build" }
verdict = "deny"
"#;

const REVIEWER_POLICY: &str = r#"# The reviewer reads, and its questions are for a person.
default = "ask"
allow = [
    "Read",
]

[dialogs]
question = "ask"
"#;

/// The file that the reader reads.
pub const NOTES: &str = "Version 1.2 is ready.\nKeep build/: the release needs it.\n";
/// The command of the coder: it leaves a file behind, as evidence that it ran.
pub const PUBLISH_SCRIPT: &str = "#!/bin/sh\nsleep 1\necho \"published $1\" | tee published\n";

pub const SUMMARISE: &str = "Read NOTES.md and tell me what it says.";
pub const PUBLISH: &str = "Clean up and publish version 1.2.";
pub const REVIEW: &str = "Review the change.";
pub const LONG: &str = "Go through every file.";
/// The message in the README, so that its commands can be tried with the stand-in.
const FIRST_USE: &str = "Run ./deploy.sh and tell me what it says.";

/// All scenes, for a slot that works in `cwd`.
pub fn scenes(cwd: &Path) -> Vec<DemoScene> {
    let scene = |slot, message, steps| DemoScene {
        slot,
        message,
        steps,
    };
    vec![
        scene(READER, SUMMARISE, summarise(cwd)),
        scene(CODER, PUBLISH, publish()),
        scene(CODER, FIRST_USE, first_use()),
        scene(REVIEWER, REVIEW, review()),
        scene(
            REVIEWER,
            LONG,
            vec![think(600.0), Step::text("All of it is in order.")],
        ),
    ]
}

fn think(hang: f64) -> Step {
    Step::Hang { hang }
}

fn bash(command: &str, description: &str) -> Step {
    Step::tool(
        "Bash",
        json!({"command": command, "description": description}),
    )
}

fn summarise(cwd: &Path) -> Vec<Step> {
    vec![
        think(2.0),
        Step::tool("Read", json!({"file_path": cwd.join("NOTES.md")})),
        Step::text("The notes say that version 1.2 is ready, and that build/ must be kept."),
    ]
}

fn publish() -> Vec<Step> {
    vec![
        think(1.5),
        bash("rm -rf build", "Remove old builds"),
        Step::text("That was denied, so build/ stays. Now I publish."),
        bash("./publish.sh 1.2", "Publish version 1.2"),
        Step::text("Version 1.2 is published, and build/ was left alone."),
    ]
}

fn first_use() -> Vec<Step> {
    let said = Step::text("That is what it says.");
    vec![think(0.5), bash("./deploy.sh", "Run the script"), said]
}

fn review() -> Vec<Step> {
    let question = json!({"questions": [{
        "question": "How thorough shall I be?",
        "header": "Depth",
        "multiSelect": false,
        "options": [
            choice("Quick look", "the changed lines only"),
            choice("Thorough", "everything that uses them"),
        ],
    }]});
    vec![
        think(1.5),
        Step::tool("AskUserQuestion", question),
        Step::text("Then I do it that way. The change looks right to me."),
    ]
}

fn choice(label: &str, description: &str) -> Value {
    json!({"label": label, "description": description})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::Policy;

    #[test]
    fn the_policies_load_and_their_examples_hold() {
        for (slot, text) in SLOTS {
            let file = Path::new(slot).with_extension("toml");
            let policy = Policy::parse(text, &file, Path::new("/p"));
            assert!(policy.is_ok(), "{slot}");
        }
    }
}
