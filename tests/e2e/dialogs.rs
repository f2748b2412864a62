//! What Claude Code asks, and how a person answers.

use super::words::on_make_pipe;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};

#[test]
fn a_person_answers_dialogs() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    approved(&daemon);
    denied(&daemon);
    interrupted_at_a_dialog(&daemon);
    a_question(&daemon);
    several_answers(&daemon);
    labels_with_commas(&daemon);
    a_word_that_means_something_elsewhere(&daemon);
    a_yes_or_a_no_is_no_beginning_of_a_label(&daemon);
    an_answer_in_own_words(&daemon);
    own_words_among_ticks(&daemon);
}

fn approved(daemon: &Daemon) {
    let pipe = daemon.cwd("coder").join("approved");
    on_make_pipe(daemon, "make it", &pipe, "It is made.");

    // The message is taken, and a person is needed.
    let sent = daemon.cmd(&["send", "coder", "make it"]).expect(5);
    assert!(sent.stderr.contains("coder"), "{sent}");
    let dialog = daemon.wait_dialog("coder");
    assert_eq!(dialog["kind"], "permission", "{dialog}");
    assert_eq!(dialog["tool"], "Bash", "{dialog}");
    let command = format!("mkfifo {}", pipe.display());
    assert_eq!(dialog["input"]["command"], command, "{dialog}");
    let pending = daemon.json(&["pending"]);
    assert_eq!(pending[0]["slot"], "coder", "{pending}");
    assert_eq!(pending[0]["dialog"]["id"], dialog["id"], "{pending}");

    nothing_slips_through(daemon);
    assert!(!pipe.exists(), "approved by something that was no answer");

    let id = dialog["id"].as_str().expect("an id");
    // The only label that begins so is the one that allows more.
    let given = daemon.json(&["confirm", "coder", "Yes,", "--dialog", id]);
    assert_eq!(given["chosen"], "Yes", "{given}");
    daemon.wait_state("coder", "idle");
    assert!(pipe.exists());
    let history = daemon.cmd(&["history", "coder", "--json"]).expect(0);
    assert!(history.stdout.contains("It is made."), "{history}");
}

/// Neither a message nor an answer to another dialog presses a key.
fn nothing_slips_through(daemon: &Daemon) {
    daemon.cmd(&["send", "coder", "and this"]).expect(4);
    daemon
        .cmd(&["confirm", "coder", "yes", "--dialog", "another"])
        .expect(4);
    daemon.cmd(&["confirm", "coder", "no such label"]).expect(4);
    daemon.cmd(&["confirm", "coder", "Yes, and"]).expect(4);
    daemon.cmd(&["confirm", "coder", "--text", "yes"]).expect(4);
    a_reason_goes_with_a_no_alone(daemon);
    assert_eq!(daemon.status("coder")["state"], "confirming");
}

/// A reason would be typed into the slot as a message of its own: with a yes nothing at all is pressed.
fn a_reason_goes_with_a_no_alone(daemon: &Daemon) {
    let before = (daemon.status("coder")["dialog"].clone(), inputs(daemon));
    for answer in [&["yes"][..], &["always"], &["Yes"], &["--text", "yes"]] {
        let confirm = [&["confirm", "coder"], answer, &["--reason", "it is safe"]].concat();
        let refused = daemon.cmd(&confirm).expect(2).stderr;
        assert!(refused.contains("nothing was pressed"), "{refused}");
        assert!(refused.contains("missiond send coder"), "{refused}");
    }
    let after = (daemon.status("coder")["dialog"].clone(), inputs(daemon));
    assert_eq!(before, after);
}

/// How many keys and texts the audit has of the slot: each is written down before it is pressed.
fn inputs(daemon: &Daemon) -> usize {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit.lines();
    let pressed = entries.filter(|entry| {
        let entry: Value = serde_json::from_str(entry).expect("JSON");
        entry["key"].is_string()
    });
    pressed.count()
}

fn denied(daemon: &Daemon) {
    let pipe = daemon.cwd("coder").join("denied");
    on_make_pipe(daemon, "make another", &pipe, "It is made.");
    daemon.cmd(&["send", "coder", "make another"]).expect(5);
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(!pipe.exists());
    let status = daemon.status("coder");
    assert!(
        status["mode"].is_null() || status["mode"] == "manual",
        "{status}"
    );
    let screen = daemon.cmd(&["screen", "coder"]).expect(0);
    assert!(screen.stdout.contains("manual mode on"), "{screen}");
    still_talks(daemon, "after a no");
}

fn interrupted_at_a_dialog(daemon: &Daemon) {
    let pipe = daemon.cwd("coder").join("interrupted");
    on_make_pipe(daemon, "make a third", &pipe, "It is made.");
    daemon.cmd(&["send", "coder", "make a third"]).expect(5);
    let done = daemon.json(&["interrupt", "coder"]);
    assert_eq!(done["effect"], "declined", "{done}");
    daemon.wait_state("coder", "idle");
    assert!(!pipe.exists());
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut persons = entries.filter(|entry| entry["what"] == "verdict" && entry["by"] == "person");
    let no = persons.next_back().expect("an answer of a person");
    assert_eq!(no["verdict"], "deny", "{no}");
    assert_eq!(no["why"], "a person interrupts at a dialog", "{no}");
    let command = format!("mkfifo {}", pipe.display());
    assert_eq!(no["input"]["command"], command, "{no}");
    let done = daemon.json(&["interrupt", "coder"]);
    assert_eq!(done["effect"], "nothing", "{done}");
    still_talks(daemon, "after an interrupt");
}

fn a_question(daemon: &Daemon) {
    let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]});
    let call = Step::tool("AskUserQuestion", json!({"questions": [question]}));
    daemon
        .endpoint
        .on("ask me", vec![call, Step::text("Thank you.")]);
    daemon.cmd(&["send", "coder", "ask me"]).expect(5);
    let dialog = daemon.wait_dialog("coder");
    assert_eq!(dialog["kind"], "question", "{dialog}");
    let labels: Vec<&Value> = dialog["options"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|option| &option["label"])
        .collect();
    assert_eq!(labels[..2], ["Red", "Blue"], "{dialog}");
    words_that_are_no_option_are_refused(daemon, &dialog);
    daemon.cmd(&["confirm", "coder", "Blue"]).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(daemon, r#"\"Which colour?\"=\"Blue\""#);
}

/// A mistyped label, a meaning that no option has, a number and an empty word: each is refused, no key is pressed, and
/// the question stands as it was.
fn words_that_are_no_option_are_refused(daemon: &Daemon, dialog: &Value) {
    for word in [
        "Bleu",
        "Esc",
        "Rd",
        "yes",
        "always",
        "2",
        "",
        "Red, Blue",
        "Type something.",
    ] {
        daemon.cmd(&["confirm", "coder", word]).expect(4);
    }
    let refused = daemon.cmd(&["confirm", "coder", "Bleu"]).expect(4).stderr;
    let id = dialog["id"].as_str().expect("an id");
    let next = format!("missiond confirm coder --text Bleu --dialog {id}");
    for part in ["did you mean `Blue`?", "`Red`, `Blue`", &next] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let refused = daemon.cmd(&["confirm", "coder", "Rd"]).expect(4).stderr;
    assert!(refused.contains("did you mean `Red`?"), "{refused}");
    let refused = daemon.cmd(&["confirm", "coder", "Esc"]).expect(4).stderr;
    let next = format!("missiond confirm coder no --dialog {id}");
    assert!(refused.contains(&next), "{refused}");
    daemon.cmd(&["confirm", "coder"]).expect(2);
    let both = ["confirm", "coder", "Red", "--text", "Red"];
    daemon.cmd(&both).expect(2);
    assert_eq!(
        daemon.status("coder")["dialog"],
        *dialog,
        "it stands as it was"
    );
}

/// Asks about three colours; goes on when the question is up.
fn ask(daemon: &Daemon, prompt: &str, question: &str, several: bool) -> Value {
    ask_among(daemon, prompt, question, several, ["Red", "Green", "Blue"])
}

fn ask_among(
    daemon: &Daemon,
    prompt: &str,
    question: &str,
    several: bool,
    labels: [&str; 3],
) -> Value {
    let options: Vec<Value> = labels
        .map(|label| json!({"label": label, "description": "a colour"}))
        .into();
    let question = json!({"question": question, "header": "Colour", "multiSelect": several, "options": options});
    let call = Step::tool("AskUserQuestion", json!({"questions": [question]}));
    daemon
        .endpoint
        .on(prompt, vec![call, Step::text("Thank you.")]);
    daemon.cmd(&["send", "coder", prompt]).expect(5);
    daemon.wait_dialog("coder")
}

fn several_answers(daemon: &Daemon) {
    let dialog = ask(daemon, "ask for several", "Which colours?", true);
    assert_eq!(dialog["options"][4]["label"], "Submit", "{dialog}");
    assert_eq!(dialog["options"][0]["checked"], false, "{dialog}");
    daemon.cmd(&["confirm", "coder", "Red"]).expect(0);
    let dialog = daemon.status("coder")["dialog"].clone();
    assert_eq!(dialog["options"][0]["checked"], true, "{dialog}");
    daemon.cmd(&["confirm", "coder", "Red"]).expect(0);
    daemon.cmd(&["confirm", "coder", "Green, Blue"]).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(daemon, r#"\"Which colours?\"=\"Green, Blue\""#);
}

/// A list of labels that have commas of their own reaches the model as the labels.
fn labels_with_commas(daemon: &Daemon) {
    let labels = ["Red, dark", "Red", "Blue, light, warm"];
    let dialog = ask_among(daemon, "ask with commas", "Which shades?", true, labels);
    assert_eq!(dialog["options"][2]["label"], labels[2], "{dialog}");
    let list = "Red, dark, Blue, light, warm";
    daemon.cmd(&["confirm", "coder", list]).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(
        daemon,
        r#"\"Which shades?\"=\"\"Red, dark\", \"Blue, light, warm\"\""#,
    );
}

/// `always` is the word for a rule: at a question it is no short form of a label, and where it is a label it adds none.
fn a_word_that_means_something_elsewhere(daemon: &Daemon) {
    let labels = ["Always ask", "Never", "Later"];
    let dialog = ask_among(daemon, "ask how", "How often?", false, labels);
    daemon.cmd(&["confirm", "coder", "always"]).expect(4);
    assert_eq!(daemon.status("coder")["dialog"], dialog);
    daemon.cmd(&["confirm", "coder", "Always ask"]).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(daemon, r#"\"How often?\"=\"Always ask\""#);

    let labels = ["Always", "Never", "Later"];
    ask_among(daemon, "ask when", "When?", false, labels);
    let given = daemon.json(&["confirm", "coder", "always"]);
    assert_eq!(given["chosen"], "Always", "{given}");
    assert!(
        given["rule"].is_null() && given["this_once"].is_null(),
        "{given}"
    );
    daemon.wait_state("coder", "idle");
    was_told(daemon, r#"\"When?\"=\"Always\""#);
}

fn a_yes_or_a_no_is_no_beginning_of_a_label(daemon: &Daemon) {
    let labels = [
        "No backups, delete all",
        "Yes, but delete the newest",
        "Later",
    ];
    let dialog = ask_among(daemon, "ask to delete", "Delete them?", false, labels);
    for word in ["yes", "Y", "yes,", "always"] {
        let refused = daemon.cmd(&["confirm", "coder", word]).expect(4).stderr;
        assert!(refused.contains(labels[0]), "{refused}");
    }
    assert_eq!(daemon.status("coder")["dialog"], dialog);
    let given = daemon.json(&["confirm", "coder", "n"]);
    assert_eq!(given["chosen"], "Esc", "{given}");
    daemon.wait_state("coder", "idle");
}

fn an_answer_in_own_words(daemon: &Daemon) {
    ask(daemon, "ask openly", "Which one colour?", false);
    let words = "a dark 漢字 👩‍👩‍👧 blue";
    daemon.cmd(&["confirm", "coder", words]).expect(4);
    daemon.cmd(&["confirm", "coder", "--text", words]).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(daemon, &format!(r#"\"Which one colour?\"=\"{words}\""#));
}

/// Among ticks: the words are ticked too, and all is submitted.
fn own_words_among_ticks(daemon: &Daemon) {
    ask(
        daemon,
        "ask for several openly",
        "Which other colours?",
        true,
    );
    daemon.cmd(&["confirm", "coder", "Red"]).expect(0);
    daemon.cmd(&["confirm", "coder", "yes"]).expect(4);
    daemon.cmd(&["confirm", "coder", "Green, Bleu"]).expect(4);
    let words = ["confirm", "coder", "--text", "gold, or 漢"];
    daemon.cmd(&words).expect(0);
    daemon.wait_state("coder", "idle");
    was_told(
        daemon,
        r#"\"Which other colours?\"=\"Red, \"gold, or 漢\"\""#,
    );
}

/// The answer reached the model.
#[track_caller]
fn was_told(daemon: &Daemon, answer: &str) {
    let requests = daemon.endpoint.requests();
    let told = |request: &missiond::lab::rehearsal::EndpointRequest| {
        request.body.to_string().contains(answer)
    };
    assert!(requests.iter().any(told), "{answer}");
}

#[track_caller]
fn still_talks(daemon: &Daemon, text: &str) {
    let answer = daemon.cmd(&["send", "coder", text]).expect(0);
    assert_eq!(answer.text(), format!("You said: {text}"));
}
