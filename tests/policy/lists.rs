//! Lists of tool names, by default, role and slot: the nearest list that names a tool counts.

use super::*;

const FILE: &str = r#"
auto_allow = ["Read", "Task*", "mcp__mission__*"]
require_confirm = ["Bash", "mcp__mission__kill"]
deny = ["WebSearch", "Bash(rm *)"]

[default]
auto_allow = ["WebSearch", "TodoWrite"]
deny = ["WebFetch"]

[roles.coder]
auto_allow = ["LSP"]

[roles.other]
auto_allow = ["WebFetch"]

[slots.coder-1]
auto_allow = ["Bash", "WebFetch"]

[slots.coder-2]
deny = ["Read"]
"#;

fn on(slot: Option<&str>, tool: &str) -> Decision {
    let policy = policy(FILE);
    let policy = slot.map_or_else(|| policy.clone(), |slot| policy.for_slot(slot));
    let input = json!({ "command": "ls", "url": "https://a.b", "file_path": "/proj/a" });
    decision(&policy, &ask(tool, input))
}

#[test]
fn globs_cover_names() {
    assert_eq!(on(None, "TaskCreate"), Decision::Allow);
    assert_eq!(on(None, "mcp__mission__status"), Decision::Allow);
    assert_eq!(on(None, "mcp__mission__kill"), Decision::Ask);
    assert_eq!(on(None, "mcp__other__status"), Decision::Ask);
}

#[test]
fn the_nearest_level_counts() {
    assert_eq!(
        on(None, "WebSearch"),
        Decision::Deny,
        "the role beats the default"
    );
    assert_eq!(
        on(None, "TodoWrite"),
        Decision::Allow,
        "the default holds where nothing else speaks"
    );
    assert_eq!(on(None, "WebFetch"), Decision::Deny);
    assert_eq!(
        on(None, "LSP"),
        Decision::Allow,
        "the role that the file is named after counts"
    );
    assert_eq!(
        on(Some("coder-1"), "WebFetch"),
        Decision::Allow,
        "the slot beats the default"
    );
    assert_eq!(
        on(Some("coder-1"), "Bash"),
        Decision::Allow,
        "the slot beats the role"
    );
    assert_eq!(on(Some("coder-2"), "Bash"), Decision::Ask);
    assert_eq!(on(Some("coder-2"), "Read"), Decision::Deny);
    assert_eq!(
        on(Some("coder-3"), "Read"),
        Decision::Allow,
        "overrides of other slots don't count"
    );
}

#[test]
fn a_denied_command_stays_denied_on_every_level() {
    let policy = policy(FILE);
    for policy in [policy.for_slot("coder-1"), policy] {
        assert_eq!(decision(&policy, &bash("sudo rm -rf t")), Decision::Deny);
    }
}

#[test]
fn a_glob_never_allows_the_shell_or_every_server() {
    for name in ["*", "B*", "**", "mcp__*", "*sh", "m*"] {
        assert!(
            parse(&format!("auto_allow = [{name:?}]")).is_err(),
            "{name}"
        );
    }
    for name in ["*", "mcp__*"] {
        assert!(
            parse(&format!("require_confirm = [{name:?}]")).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn the_lists_of_every_role_and_slot_must_be_good() {
    for (text, line) in [
        ("[roles]\np = 3\n", 2),
        ("[roles.q]\nauto_allow = [\"*\"]\n", 2),
        ("[roles.q]\nauto_alow = [\"Read\"]\n", 2),
        ("[slots]\na = 3\n", 2),
    ] {
        let problems = parse(text).expect_err(text);
        assert_eq!(problems[0].line(), line, "{text}");
        assert!(!problems[0].label.is_empty(), "{text}");
    }
}
