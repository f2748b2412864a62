//! What a person is asked at a terminal.

use super::person::{Person, shell};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
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

/// `up` asks once about all folders that Claude Code does not trust: a no presses no key, and a yes answers each slot's own
/// question.
#[test]
fn up_asks_once_whether_the_folders_are_trusted() {
    let setup = Setup::new().untrusted("one", "").untrusted("two", "");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let slots = ["one", "two"];
    let dialogs = slots.map(|slot| daemon.wait_dialog(slot)["id"].clone());
    let question = "Do you trust what is in them? [no]";
    let asked = |person: &Person| {
        String::from_utf8_lossy(&person.raw())
            .matches(question)
            .count()
    };
    for no in ["\r", "no\r"] {
        let mut person = Person::run(&daemon, &["up"], (150, 30));
        person.sees(question);
        for slot in slots {
            person.sees(&format!("{} ({slot})", daemon.cwd(slot).display()));
        }
        person.types(no);
        person.ends(0, "if you trust what is in them: missiond up");
        assert_eq!(asked(&person), 1);
        let still = slots.map(|slot| daemon.status(slot)["dialog"]["id"].clone());
        assert_eq!(still, dialogs, "a no answers nothing");
    }
    let audit = daemon.logged("audit.jsonl");
    assert!(!audit.contains(r#""key":""#), "no key: {audit}");

    let mut person = Person::run(&daemon, &["up"], (150, 30));
    person.sees(question);
    person.types("yes\r");
    person.ends(0, "two: its folder is trusted");
    assert_eq!(asked(&person), 1);
    for slot in slots {
        daemon.wait_state(slot, "idle");
    }
    let mut person = Person::run(&daemon, &["up"], (150, 30));
    person.ends(0, "was up already");
    assert_eq!(asked(&person), 0, "nothing is left to ask about");
}
