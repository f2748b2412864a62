//! Help, wrong usage, completions and manual pages.

use crate::fake::{Home, Reply, status};
use serde_json::json;

/// The verbs as the help lists them, but for `help` itself, which clap makes.
fn verbs(home: &Home) -> Vec<String> {
    let help = home.run(&["help"]).exits(0).stdout;
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
    assert!(verbs.len() >= 50, "{verbs:?}");
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
    let help = Home::new().run(&["-h"]).exits(0).stdout;
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

#[test]
fn slot_names_are_completed_from_the_daemon() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| {
        Reply::Result(json!([status("coder-1", "idle"), status("docs", "idle")]))
    });
    let complete = |words: &[&str]| {
        let mut command = home.command(&[&["--", "missiond"], words].concat());
        command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(complete(&["send", "co"]), "coder-1");
    assert_eq!(complete(&["stop", "@"]), "@coder");
    assert!(complete(&["stat"]).contains("status"));
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
