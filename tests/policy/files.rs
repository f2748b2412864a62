//! The file format: what loads, and how faults are told.

use super::*;

/// Title and label of each fault, with the text that it points at.
fn faults(text: &str) -> Vec<(String, String, String)> {
    let problems = parse(text).expect_err(text);
    problems
        .into_iter()
        .map(|problem| {
            (
                text[problem.span.clone()].to_owned(),
                problem.title,
                problem.label,
            )
        })
        .collect()
}

/// One for each of some kinds of projects; none of their rules is without effect.
#[test]
fn the_examples_by_stack_hold() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/examples");
    let files: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("an example");
        assert!(
            text.matches("[[example]]").count() >= 5,
            "{}",
            file.display()
        );
        let policy = Policy::parse(&text, &file, Path::new("/proj"));
        let policy = policy.unwrap_or_else(|problems| panic!("{}: {problems:?}", file.display()));
        let idle: Vec<_> = policy.rules_without_effect().collect();
        assert!(idle.is_empty(), "{}: {idle:?}", file.display());
    }
}

#[test]
fn the_examples_in_this_repository_hold() {
    for role in ["coder", "reader", "reviewer"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("policies/{role}.toml"));
        let text = std::fs::read_to_string(&file).expect("it is there");
        Policy::parse(&text, &file, Path::new("/proj"))
            .unwrap_or_else(|problems| panic!("{role}: {problems:?}"));
    }
}

#[test]
fn an_empty_file_asks_about_everything_but_reading_inside_the_directory() {
    let policy = policy("");
    assert_eq!(decision(&policy, &bash("make")), Decision::Ask);
    assert_eq!(decision(&policy, &bash("ls")), Decision::Silent);
    assert_eq!(decision(&policy, &bash("ls ..")), Decision::Ask);
    assert_eq!(policy.dialogs.decision(DialogKind::Trust), Decision::Ask);
    assert_eq!(policy.deny_reason, None);
}

#[test]
fn silence_is_never_allowed() {
    let deny = policy("default = \"deny\"");
    assert_eq!(decision(&deny, &bash("ls")), Decision::Deny);
    for never in ["allow", "none"] {
        let found = faults(&format!("default = {never:?}"));
        assert_eq!(found[0].0, format!("{never:?}"));
        let right = "`ask`, `deny` or `claude`";
        assert!(found[0].2.contains(right), "{found:?}");
    }
}

#[test]
fn every_fault_is_told_at_its_place() {
    let found = faults(
        "alow = []\nallow = [\"Raed\", 3]\ndeny_reason = 1\n[dialogs]\ntrust = \"yes\"\nplam = \"ask\"\n",
    );
    let places: Vec<&str> = found.iter().map(|(text, _, _)| text.as_str()).collect();
    assert_eq!(places, ["alow", "\"Raed\"", "3", "1", "\"yes\"", "plam"]);
    assert!(found[0].2.contains("did you mean `allow`?"), "{found:?}");
}

#[test]
fn a_misspelt_tool_is_suggested() {
    let problems = parse("allow = [\"WebFech\"]").expect_err("a bad rule");
    assert_eq!(
        problems[0].help.as_deref(),
        Some("did you mean `WebFetch`?")
    );
    let problems = parse("deny = [\"Write(src/**)\"]").expect_err("a bad rule");
    assert!(
        problems[0]
            .help
            .as_deref()
            .is_some_and(|help| help.contains("Edit(src/**)")),
        "{problems:?}"
    );
}

#[test]
fn text_that_is_no_toml_is_one_fault() {
    for text in [
        "allow = [",
        "allow = [\"Read\"\n",
        "allow = []\nallow = []\n",
        "= 1",
    ] {
        assert_eq!(faults(text).len(), 1, "{text}");
    }
}

#[test]
fn a_wrong_example_is_a_fault_at_its_verdict() {
    let text = "allow = [\"Bash(ls *)\"]\n[[example]]\ntool = \"Bash\"\ninput = { command = \"lsof\" }\nverdict = \"allow\"\n";
    let found = faults(text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "\"allow\"");
    assert!(found[0].2.contains("`ask`"), "{found:?}");
    assert_eq!(parse(text).expect_err("a wrong example")[0].line(), 5);
}

#[test]
fn an_example_needs_a_tool_and_a_verdict() {
    assert_eq!(faults("[[example]]\ninput = {}\n").len(), 2);
    assert!(!faults("example = 3\n").is_empty());
    assert!(!faults("[[example]]\ntool = \"Bash\"\nverdict = \"allow\"\nexpect = 1\n").is_empty());
}

#[test]
fn dialogs_follow_their_own_section() {
    let policy = policy("allow = [\"Bash\"]\n[dialogs]\ntrust = \"allow\"\nplan = \"deny\"\n");
    assert_eq!(policy.dialogs.decision(DialogKind::Trust), Decision::Allow);
    assert_eq!(policy.dialogs.decision(DialogKind::Plan), Decision::Deny);
    for kind in [
        DialogKind::ApiKey,
        DialogKind::Question,
        DialogKind::Permission,
        DialogKind::Other,
    ] {
        assert_eq!(policy.dialogs.decision(kind), Decision::Ask);
    }
}

#[test]
fn a_rule_is_named_with_its_line() {
    let policy = policy("default = \"ask\"\nallow = [\n  \"Read\",\n  \"Bash(ls *)\",\n]\n");
    let verdict = decide(&policy, &bash("ls -la"), &LexicalPaths);
    let rule = verdict.rule.expect("a rule decided");
    assert_eq!((rule.text.as_str(), rule.line), ("Bash(ls *)", 4));
    assert_eq!(rule.file, Path::new("policies/coder.toml"));
    assert_eq!(verdict.why, "allowed by Bash(ls *)");
}

#[test]
fn a_milder_default_is_wider_and_a_stricter_one_is_not() {
    let order = ["claude", "ask", "deny"];
    for (at, old) in order.iter().enumerate() {
        for (to, new) in order.iter().enumerate() {
            let [old, new] = [old, new].map(|word| policy(&format!("default = {word:?}")));
            assert_eq!(Policy::widens(&old, &new), to < at, "{at} to {to}");
        }
    }
}

#[test]
fn an_example_can_expect_silence() {
    let example = |verdict: &str| {
        format!(
            "[[example]]\ntool = \"Bash\"\ninput = {{ command = \"ls\" }}\nverdict = {verdict:?}\n"
        )
    };
    assert!(parse(&example("none")).is_ok());
    let found = faults(&example("ask"));
    assert!(found[0].2.contains("this policy says `none`"), "{found:?}");
}
