//! What is played: the slots, their rules, what they are asked and what the model answers. Pure.

use crate::rehearsal::Step;
use serde_json::json;
use std::path::Path;

/// A message to a slot, and what the scripted model does then.
#[derive(Debug)]
pub struct Scene {
    pub message: &'static str,
    pub steps: Vec<Step>,
}

pub const SUMMARISE: &str = "Read NOTES.md and tell me what it says.";
pub const PUBLISH: &str = "Clean up and publish version 1.2.";
pub const REVIEW: &str = "Review the change.";
pub const LONG: &str = "Go through every file.";

/// The program's name for a question to the person.
const QUESTION: &str = "AskUserQuestion";

/// All of it, for a slot that works in `cwd`.
pub fn scenes(cwd: &Path) -> Vec<Scene> {
    let bash = |command: &str, description: &str| {
        Step::tool(
            "Bash",
            json!({"command": command, "description": description}),
        )
    };
    let think = |hang: f64| Step::Hang { hang };
    let option =
        |label: &str, description: &str| json!({"label": label, "description": description});
    let question = json!({"questions": [{
        "question": "How thorough shall I be?",
        "header": "Depth",
        "multiSelect": false,
        "options": [
            option("Quick look", "the changed lines only"),
            option("Thorough", "everything that uses them"),
        ],
    }]});
    vec![
        Scene {
            message: SUMMARISE,
            steps: vec![
                think(2.0),
                Step::tool("Read", json!({"file_path": cwd.join("NOTES.md")})),
                Step::text("The notes say that version 1.2 is ready and that build/ must be kept."),
            ],
        },
        Scene {
            message: PUBLISH,
            steps: vec![
                think(1.5),
                bash("rm -rf build", "Remove old builds"),
                Step::text("That was denied, so build/ stays as it is. Now I publish."),
                bash("./publish.sh 1.2", "Publish version 1.2"),
                Step::text("Version 1.2 is published, and build/ was left alone."),
            ],
        },
        Scene {
            message: REVIEW,
            steps: vec![
                think(1.5),
                Step::tool(QUESTION, question),
                Step::text("Then I do it that way. The change looks right to me."),
            ],
        },
        Scene {
            message: LONG,
            steps: vec![think(600.0), Step::text("All of it is in order.")],
        },
    ]
}
