//! Help, wrong usage, completions and manual pages.

use crate::fake::{Home, Ran, Reply, dialog, status};
use crate::streaming::all_verbs;
use serde_json::json;

/// The verbs as the help lists them, but for `help` itself, which clap makes.
fn verbs(home: &Home) -> Vec<String> {
    let help = home.run(&["--help"]).exits(0).stdout;
    let listed = help.split("First steps:\n").nth(1).unwrap();
    let listed = listed.split("Flags of every command:").next().unwrap();
    listed
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .map(|line| line.split_whitespace().next().unwrap().to_string())
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn every_verb_has_help_with_examples_of_itself() {
    let home = Home::new();
    let verbs = verbs(&home);
    assert!(verbs.len() >= 35, "{verbs:?}");
    for verb in &verbs {
        let help = home.run(&[verb, "--help"]).exits(0).stdout;
        assert_eq!(home.run(&["help", verb]).exits(0).stdout, help);
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("missiond {verb}")), "{help}");
        assert!(help.contains("--json"), "{help}");
    }
}

#[test]
fn the_help_names_the_exit_codes() {
    let help = Home::new().run(&["--help"]).exits(0).stdout;
    assert!(help.contains("3 no daemon"), "{help}");
    let version = Home::new().run(&["--version"]).exits(0).stdout;
    assert_eq!(version, format!("missiond {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_2_and_shows_what_would_be_right() {
    let home = Home::new();
    for args in [
        &["fly"][..],
        &["stop"],
        &["stop", "coder", "--all"],
        &["send", "coder"],
        &["send", "coder", "hello", "--timeout", "soon"],
        &["wait", "coder"],
        &["wait", "coder", "--for", "busy"],
        &["wait", "coder", "--output", "("],
        &["search", "coder", "("],
        &["write", "coder", r"\q"],
        &["completions", "tcsh"],
    ] {
        let ran = home.run(args).exits(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran:?}");
    }
    let typo = home.run(&["statis"]).exits(2).stderr;
    assert!(typo.contains("'status'"), "{typo}");
}

#[test]
fn wrong_usage_is_json_where_the_line_asks_for_json() {
    let error = Home::new().run(&["stop", "--json"]).exits(2).error();
    assert_eq!(error["fault"], "usage");
    assert!(
        error["message"].as_str().unwrap().contains("required"),
        "{error}"
    );
    assert!(
        error["next"].as_str().unwrap().contains("Usage:"),
        "{error}"
    );
}

/// What a shell is offered behind these words.
fn complete(home: &Home, shell: &str, words: &[&str]) -> String {
    let mut command = home.command(&[&["--", "missiond"], words].concat());
    command.env("COMPLETE", shell).env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn slot_names_are_completed_from_the_daemon() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| {
        Reply::Result(json!([status("coder-1", "idle"), status("docs", "idle")]))
    });
    let complete = |words: &[&str]| complete(&home, "bash", words);
    assert_eq!(complete(&["send", "co"]), "coder-1");
    assert_eq!(complete(&["stop", "@"]), "@coder");
    assert_eq!(complete(&["task", "submit", "--role", "c"]), "coder");
    assert!(complete(&["stat"]).contains("status"));
    assert_eq!(complete(&["session", "sp"]), "spawn");
    assert!(
        !complete(&["s"]).contains("spawn"),
        "an earlier name is hidden"
    );
}

#[test]
fn states_are_completed_one_after_the_other() {
    let home = Home::new();
    let complete = |begun: &str| complete(&home, "bash", &["wait", "coder", "--for", begun]);
    assert_eq!(complete("re"), "responding");
    assert_eq!(complete("idle,ex"), "idle,exited");
    assert_eq!(complete("").lines().count(), 8);
}

/// A label is written by a model: a shell must not run what is in it.
#[test]
fn answers_are_completed_and_none_of_them_is_run_by_a_shell() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |method, _| {
        let asked = |slot: &str, kind: &str, labels: [&str; 2]| {
            let mut dialog = dialog();
            dialog["kind"] = json!(kind);
            dialog["options"] = json!(labels.map(|label| json!({"label": label})));
            json!({"slot": slot, "role": "coder", "since": "2026-01-01T10:00:00Z", "dialog": dialog})
        };
        Reply::Result(match method {
            "pending" => json!([
                asked("coder", "permission", ["Yes", "No"]),
                asked("docs", "question", ["Dark mode", "$(touch owned)"]),
            ]),
            _ => json!([]),
        })
    });
    let answers = |shell: &str, slot: &str| {
        let offered = complete(&home, shell, &["confirm", slot, ""]);
        let mut offered: Vec<String> = offered.lines().map(str::to_owned).collect();
        offered.retain(|word| !word.starts_with('-'));
        offered.sort();
        offered
    };
    assert_eq!(
        answers("bash", "coder"),
        ["No", "Yes", "always", "no", "yes"]
    );
    assert_eq!(answers("bash", "docs"), ["'$(touch owned)'", "'Dark mode'"]);
    // fish quotes what it takes over.
    assert_eq!(answers("fish", "docs"), ["$(touch owned)", "Dark mode"]);
}

#[test]
fn tasks_are_completed_with_what_they_are() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| {
        Reply::Result(json!([{
            "id": "5f0c21ab", "state": "queued", "to": "@coder", "slot": null, "session_id": null,
            "seq": 1, "started_at": null, "ended_at": null, "text": "Fix it", "submitted_at": "2026-01-01T10:00:00Z", "by": "a person", "attempts": 0,
            "retries": 0, "duration_ms": null, "answer": null, "error": null, "timeout_ms": null
        }]))
    });
    for verb in [
        &["task"][..],
        &["task", "show"],
        &["task", "cancel"],
        &["cancel"],
    ] {
        let words = [verb, &["5f"]].concat();
        assert_eq!(complete(&home, "bash", &words), "5f0c21ab", "{verb:?}");
    }
}

/// The names that were verbs of their own before they came below `session` and `task`.
const EARLIER: [(&str, &str); 15] = [
    ("spawn", "session spawn"),
    ("exec", "session exec"),
    ("type", "session type"),
    ("sessions", "session list"),
    ("info", "session info"),
    ("output", "session output"),
    ("follow", "session follow"),
    ("clear", "session clear"),
    ("resize", "session resize"),
    ("signal", "session signal"),
    ("close", "session close"),
    ("ask", "task ask"),
    ("submit", "task submit"),
    ("cancel", "task cancel"),
    ("tasks run", "task run"),
];

#[test]
fn earlier_names_take_the_same_and_are_in_no_list() {
    let home = Home::new();
    let listed = verbs(&home);
    for (earlier, now) in EARLIER {
        let help = |verb: &str| {
            let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
            let help = home.run(&words).exits(0).stdout;
            help.replace(&format!("Usage: missiond {verb}"), "Usage:")
        };
        assert_eq!(help(earlier), help(now));
        assert!(!listed.contains(&earlier.to_owned()), "{earlier}");
    }
    assert!(
        home.run(&["tasks", "--help"])
            .exits(0)
            .stdout
            .contains("--all")
    );
}

/// What a terminal of the usual size shows.
const SCREEN: usize = 24;

#[test]
fn the_first_page_and_every_short_help_fit_on_a_screen() {
    let home = Home::new();
    let on_a_screen = |words: &[&str]| {
        let shown = home.command(words).env("COLUMNS", "80").output().unwrap();
        Ran::from(shown).exits(0).stdout
    };
    let first = on_a_screen(&["help"]);
    assert_eq!(on_a_screen(&["-h"]), first);
    insta::assert_snapshot!(first);
    let mut too_long = Vec::new();
    let verbs = all_verbs(&home).into_iter().map(|verb| verb + " -h");
    for help in verbs.chain(["help".to_owned()]) {
        let words: Vec<&str> = help.split(' ').collect();
        let shown = on_a_screen(&words);
        let lines = shown.lines().count();
        if lines > SCREEN {
            too_long.push(format!("{help}: {lines}"));
        }
    }
    assert!(too_long.is_empty(), "{too_long:?}");
}

#[test]
fn shells_and_manuals_are_served() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("missiond"), "{script}");
    }
    let page = home.run(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH missiond 1"), "{page}");
    home.run(&["man", "--out", "pages"]).exits(0);
    assert!(home.path("pages/missiond-send.1").is_file());
}
