//! What a person is asked at a terminal.

use super::person::{Person, shell};
use std::fs;

/// `init` asks once about a folder that Claude Code does not trust, and `up` gives the word; a no gives nothing.
#[test]
fn init_asks_whether_the_folder_is_trusted() {
    let daemon = shell();
    let agreed = daemon.root().join("state/missiond/trusted-folders.json");
    let folder = daemon.root().canonicalize().expect("a directory");
    for (said, told) in [
        ("no\r", "up asks you, or takes your word with --trust"),
        ("yes\r", "up tells Claude Code"),
    ] {
        let mut person = Person::run(&daemon, &["init", "fleet", "--force"], (150, 30));
        person.sees("Where do the slots work?");
        person.types("\r");
        for role in ["A reader", "A coder", "A reviewer"] {
            person.sees(role);
            person.types("\r");
        }
        person.sees("Do you trust what is in them? [no]");
        assert!(!agreed.exists(), "nobody has said it yet");
        person.types(said);
        person.ends(0, told);
    }
    let agreed = fs::read_to_string(&agreed).expect("the word is kept");
    assert_eq!(agreed, format!("[{:?}]", folder.display().to_string()));
}
