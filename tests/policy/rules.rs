//! Rules as values: compared, handed over, made for a call, added to a file.

use super::*;

fn widens(old: &str, new: &str) -> bool {
    Policy::widens(&policy(old), &policy(new))
}

const BASE: &str =
    "allow = [\"Read\", \"Bash(ls *)\"]\nask = [\"Bash(git push *)\"]\ndeny = [\"Bash(rm *)\"]\n";

#[test]
fn what_only_takes_away_does_not_widen() {
    for new in [
        BASE,
        "allow = [\"Read\"]\nask = [\"Bash(git push *)\"]\ndeny = [\"Bash(rm *)\"]\n",
        "deny = [\"Bash(rm *)\", \"Bash(git push *)\", \"Bash(curl *)\"]\n",
        "default = \"deny\"\nallow = [\"Bash(ls *)\"]\nask = [\"Bash(git push *)\", \"Read\"]\ndeny = [\"Bash(rm *)\"]\n",
    ] {
        assert!(!widens(BASE, new), "{new}");
    }
}

#[test]
fn a_path_inside_a_directory_that_is_allowed_does_not_widen() {
    let paths = |rule: &str| format!("allow = [\"{rule}\"]\n");
    for (old, new, within) in [
        ("Read(src/**)", "Read(src/a/**)", true),
        ("Read(src/**)", "Read(src/*.rs)", true),
        ("Read(src/**)", "Read(src/a/b.rs)", true),
        ("Read(**)", "Read(src/**)", true),
        ("Edit(/src/**)", "Edit(/src/a/*)", true),
        ("Edit(//srv/x/**)", "Edit(//srv/x/y)", true),
        ("Read(src/a/**)", "Read(src/**)", false),
        ("Read(src/**)", "Read(srcs/**)", false),
        ("Read(src/**)", "Read(src)", false),
        ("Read(src/**)", "Read(/src/)", false),
        ("Read(src/**)", "Read(*.rs)", false),
        ("Read(src/**)", "Read(src*/a)", false),
        ("Read(src/*)", "Read(src/a/b)", false),
        ("Read(src/**)", "Read(//src/a)", false),
        ("Read(src/**/x/**)", "Read(src/a/y)", false),
        ("Read(src/**)", "Edit(src/a/**)", false),
    ] {
        assert_eq!(!widens(&paths(old), &paths(new)), within, "{old}, {new}");
    }
    // A rule that spells out a command means more than a wildcard lets in.
    assert!(widens(
        &paths("Bash(git log *)"),
        &paths("Bash(git log -1)")
    ));
}

/// Of rules on whole tools those of the nearest level count alone: an ask for a slot would take the place of a role's deny.
#[test]
fn a_nearer_and_milder_rule_on_a_whole_tool_widens() {
    let role = "deny = [\"WebFetch\"]\n";
    let milder = format!("{role}[slots.one]\nask = [\"WebFetch\"]\n");
    let stricter = format!("{role}[slots.one]\ndeny = [\"Bash\"]\n");
    assert!(widens(role, &milder));
    assert!(!widens(role, &stricter));
}

#[test]
fn what_adds_an_allowance_or_drops_a_restriction_widens() {
    for new in [
        "",
        "allow = [\"Read\", \"Bash(ls *)\", \"Bash(cat *)\"]\nask = [\"Bash(git push *)\"]\ndeny = [\"Bash(rm *)\"]\n",
        "allow = [\"Read\", \"Bash(ls *)\"]\nask = [\"Bash(rm *)\", \"Bash(git push *)\"]\n",
        "allow = [\"Read\", \"Bash\"]\nask = [\"Bash(git push *)\"]\ndeny = [\"Bash(rm *)\"]\n",
        "ask = [\"Bash(git push *)\"]\ndeny = [\"Bash(rm *)\"]\n[dialogs]\ntrust = \"allow\"\n",
    ] {
        assert!(widens(BASE, new), "{new}");
    }
    assert!(widens("default = \"deny\"", ""));
    let unprotected = policy(BASE);
    let protected = unprotected
        .clone()
        .protecting([PathBuf::from("/etc/missiond")]);
    assert!(Policy::widens(&protected, &unprotected));
    assert!(!Policy::widens(&unprotected, &protected));
}

#[test]
fn deny_rules_are_handed_over_in_claude_codes_words() {
    let policy = policy(
        "deny = [\"Bash(rm *)\", \"Read(/secrets/**)\", \"Read(./.env)\", \"Edit(//etc/**)\", \"WebSearch\"]\nallow = [\"Read\"]\n",
    );
    assert_eq!(
        policy.rules_for_settings().deny,
        [
            "Bash(rm *)",
            "Read(//proj/secrets/**)",
            "Read(./.env)",
            "Edit(//etc/**)",
            "WebSearch"
        ]
    );
}

#[test]
fn a_narrow_rule_allows_the_call_and_hardly_more() {
    for (call, rule) in [
        (bash("cargo test --all"), "Bash(cargo test --all)"),
        (
            bash("cargo test && ls *.rs"),
            r"Bash(cargo test && ls \*.rs)",
        ),
        (
            bash(" git commit -m 'a: *'"),
            r"Bash(git commit -m 'a: \*')",
        ),
        (bash("sed -i s/a/b/ f"), "Bash(sed -i s/a/b/ f)"),
        (
            ask("Edit", json!({ "file_path": "/proj/sub/a b.rs" })),
            r"Edit(//proj/sub/a\ b.rs)",
        ),
        (
            ask("Write", json!({ "file_path": "x[1].rs" })),
            r"Edit(//proj/sub/x\[1\].rs)",
        ),
        (
            ask("WebFetch", json!({ "url": "https://Docs.rs/x" })),
            "WebFetch(domain:docs.rs)",
        ),
        (ask("mcp__gh__get", json!({})), "mcp__gh__get"),
        (
            ask("Agent", json!({ "subagent_type": "Explore" })),
            "Agent(Explore)",
        ),
        (ask("WebSearch", json!({ "query": "x" })), "WebSearch"),
    ] {
        assert_eq!(narrow_rule_for(&call).as_deref(), Some(rule));
        let policy = policy(&add_allow_rule("", rule).expect("an empty file"));
        assert_eq!(decision(&policy, &call), Decision::Allow, "{rule}");
        assert_eq!(
            decision(&policy, &bash("cargo test --all; id")),
            Decision::Ask
        );
        assert_eq!(
            decision(&policy, &ask("Edit", json!({ "file_path": "/proj/sub/a" }))),
            Decision::Ask
        );
    }
}

/// Each part that is in the way gets the narrowest rule; what no rule can allow gets none.
#[test]
fn the_rules_that_would_allow_a_call_are_told() {
    let policy = policy("allow = [\"Bash(cargo test *)\"]\ndeny = [\"Bash(git push *)\"]\n");
    let rules = |command: &str| rules_that_allow(&policy, &bash(command), &LexicalPaths);
    let texts = |rules: &[&str]| Some(rules.iter().map(|rule| (*rule).to_owned()).collect());
    assert_eq!(rules("make all"), texts(&["Bash(make all)"]));
    assert_eq!(
        rules("cargo test && make all > out/a.log"),
        texts(&["Bash(make all)", "Edit(./out/a.log)"])
    );
    assert_eq!(rules("if [ -f a ]; then make; fi"), texts(&["Bash(make)"]));
    for none in [
        "cargo test",
        "make && git push",
        "make > .bashrc",
        "echo `id`",
        "make $x",
    ] {
        assert_eq!(rules(none), None, "{none}");
    }
}

#[test]
fn a_general_rule_is_one_for_calls_of_the_same_kind() {
    let general = |command: &str| general_rule_for(&bash(command));
    let rule = |text: &str| Some(text.to_owned());
    assert_eq!(general("npm run lint"), rule("Bash(npm run *)"));
    assert_eq!(general("cargo test -p core"), rule("Bash(cargo test *)"));
    assert_eq!(general("grep -rn x src"), rule("Bash(grep *)"));
    for none in [
        "bash x.sh",
        "npm publish",
        "git push --exec=x",
        "ls; id",
        "make > f",
        "pwd",
        "sudo make x",
        "npx evil",
    ] {
        assert_eq!(general(none), None, "{none}");
    }
}

#[test]
fn a_skill_is_denied_however_its_name_is_written() {
    let policy = policy("allow = [\"Skill(review)\"]\ndeny = [\"Skill(deploy)\"]\n");
    let on = |name: &str| decision(&policy, &ask("Skill", json!({ "skill": name })));
    assert_eq!(on("review"), Decision::Allow);
    for name in [
        "deploy",
        "/deploy",
        " deploy",
        "plugin:deploy",
        "deploy now",
        "Deploy",
    ] {
        assert_eq!(on(name), Decision::Deny, "{name}");
    }
    for name in ["/review", "plugin:review", "reviewer", "review x"] {
        assert_eq!(on(name), Decision::Ask, "{name}");
    }
}

#[test]
fn some_calls_have_no_narrow_rule() {
    for call in [
        bash("echo `id`"),
        bash("echo a > f"),
        bash("ls\nls"),
        bash(""),
        ask("Edit", json!({ "file_path": ".mcp.json" })),
        ask("WebFetch", json!({ "url": "https://a@b" })),
        ask("Unknown", json!({})),
        ask("AskUserQuestion", json!({ "questions": [] })),
        ask("ExitPlanMode", json!({ "plan": "1. Look" })),
        ask("", json!({})),
    ] {
        assert_eq!(narrow_rule_for(&call), None, "{call:?}");
    }
}

#[test]
fn a_rule_is_added_and_the_file_kept() {
    let text = "# mine\ndefault = \"ask\"  # careful\nallow = [\n  # reading\n  \"Read\",\n  \"Bash(ls *)\", # looking\n]\n\n[dialogs]\nplan = \"ask\"\n";
    let with = add_allow_rule(text, "Bash(cargo test)").expect("a good file");
    assert_eq!(
        with,
        text.replace("# looking\n", "# looking\n  \"Bash(cargo test)\",\n")
    );
    assert_eq!(
        add_allow_rule(&with, "Bash(cargo test)").expect("a good file"),
        with
    );
    assert_eq!(
        add_allow_rule("allow = [\"Read\"]\n", "LSP").expect("a good file"),
        "allow = [\"Read\", \"LSP\"]\n"
    );
    assert_eq!(
        add_allow_rule("allow = []\n", "LSP").expect("a good file"),
        "allow = [\"LSP\"]\n"
    );
    let no_comma = add_allow_rule("allow = [\n  \"Read\" # all\n]\n", "LSP").expect("a good file");
    assert_eq!(
        decision(&policy(&no_comma), &ask("LSP", json!({}))),
        Decision::Allow
    );
    assert_eq!(no_comma, "allow = [\n  \"Read\", # all\n  \"LSP\"\n]\n");
    let new = add_allow_rule("# mine\n[dialogs]\nplan = \"ask\"\n", "LSP").expect("a good file");
    assert_eq!(
        decision(&policy(&new), &ask("LSP", json!({}))),
        Decision::Allow
    );
    assert!(new.contains("# mine"), "{new}");
    assert!(add_allow_rule("allow = 3", "LSP").is_err());
    assert!(add_allow_rule("allow = [", "LSP").is_err());
}

#[test]
fn each_part_is_explained() {
    let policy = policy("allow = [\"Bash(cargo test *)\"]\ndeny = [\"Bash(git push *)\"]\n");
    let explanation = explain(&policy, &bash("cargo test && git push"), &LexicalPaths);
    let parts: Vec<(&str, Decision)> = explanation
        .parts
        .iter()
        .map(|part| (part.text.as_str(), part.verdict.decision))
        .collect();
    assert_eq!(
        parts,
        [
            ("cargo test", Decision::Allow),
            ("git push", Decision::Deny)
        ]
    );
    assert_eq!(
        explanation.verdict.why,
        "`git push`: denied by Bash(git push *) (the strictest part wins)"
    );
}

#[test]
fn a_part_that_needs_no_rule_says_so() {
    let policy = policy("allow = [\"Bash(ls *)\"]\n");
    let parts = |command: &str| -> Vec<(Decision, String)> {
        let explanation = explain(&policy, &bash(command), &LexicalPaths);
        let parts = explanation.parts.into_iter();
        parts
            .map(|part| (part.verdict.decision, part.verdict.why))
            .collect()
    };
    for command in ["[ -f x ] && ls", "set -e; ls", "read l; ls"] {
        let shown = parts(command);
        let (first, why) = &shown[0];
        assert_eq!(*first, Decision::Silent, "{command}: {why}");
        assert!(why.starts_with("it needs no rule"), "{command}: {why}");
        assert_eq!(shown[1].0, Decision::Allow, "{command}");
    }
    // If all are such parts, no rule allows anything, and a person is asked.
    let alone = parts("set -e; [ -f x ]");
    assert!(alone.iter().all(|(decision, _)| *decision == Decision::Ask));
}

#[test]
fn a_doubt_names_what_is_in_the_way() {
    let policy = policy("allow = [\"Bash(ls *)\", \"Bash(wc *)\"]\n");
    for (command, cause) in [
        ("for f in *.rs; do wc -l $f; done", "`$f` is not in quotes"),
        ("while read f; do wc -l $f; done", "`$f` is not in quotes"),
        (
            "for f in $(git diff); do wc -l \"$f\"; done",
            "`$(git diff)`",
        ),
        ("case $x in a) ls;; esac", "`case`"),
        ("wc -l \"$FILES\"", "the value of `\"$FILES\"` is not known"),
        ("if [ -f x ]; then wc -l $1; fi", "`$1` is not in quotes"),
        ("ls; [[ $a -eq 1 ]]", "its test takes values"),
        ("wc -l `ls`", "backquotes"),
        ("wc -l $((n + 2))", "the value of `$((n + 2))` is not known"),
    ] {
        let verdict = decide(&policy, &bash(command), &LexicalPaths);
        assert_eq!(verdict.decision, Decision::Ask, "{command}");
        assert!(verdict.why.contains(cause), "{command}: {}", verdict.why);
    }
}

/// `/tmp` is for everybody's files, but not if the slot's own directory lies in it.
#[test]
fn neighbours_in_a_temporary_directory_are_outside() {
    let policy = policy("allow = [\"Bash(touch *)\", \"Bash(rm *)\", \"Bash(cp *)\"]\n");
    let on = |cwd: &str, command: &str| {
        decide(&policy, &Ask::bash(command, cwd), &LexicalPaths).decision
    };
    for shared in ["/tmp", "/var/tmp"] {
        let cwd = format!("{shared}/work/proj");
        for command in [
            "touch ../outside/f".to_owned(),
            "rm ../outside/f".to_owned(),
            format!("touch {shared}/f"),
            format!("cp a {shared}/other/a"),
        ] {
            assert_eq!(on(&cwd, &command), Decision::Ask, "{cwd}: {command}");
        }
        assert_eq!(on(&cwd, "touch new"), Decision::Allow, "{cwd}");
        assert_eq!(on("/proj", &format!("touch {shared}/f")), Decision::Allow);
    }
    assert_eq!(on("/tmp/proj", "touch /var/tmp/f"), Decision::Allow);
    assert_eq!(on("/tmpfiles/proj", "touch /tmp/f"), Decision::Allow);
}

#[test]
fn text_in_a_here_document_is_taken_for_a_command_only_where_that_restricts() {
    let policy = policy("default = \"deny\"\nallow = [\"Bash(cat *)\"]\ndeny = [\"Bash(rm *)\"]\n");
    assert_eq!(
        decision(&policy, &bash("cat <<E\nsome text, rm it\nE")),
        Decision::Allow
    );
    assert_eq!(
        decision(&policy, &bash("cat <<E | sh\nrm -rf t\nE")),
        Decision::Deny
    );
}

#[test]
fn no_rule_in_a_verdict_means_that_none_speaks() {
    let policy = policy("allow = [\"Bash(git *)\", \"Bash(cp *)\"]\n");
    let rule = |command: &str| {
        decide(&policy, &bash(command), &LexicalPaths)
            .rule
            .map(|rule| rule.text)
    };
    assert_eq!(rule("ls"), None);
    for held_back in ["git log $x", "git -c a=b log", "cp a .mcp.json"] {
        assert!(rule(held_back).is_some(), "{held_back}");
        assert_eq!(decision(&policy, &bash(held_back)), Decision::Ask);
    }
}

#[test]
fn a_program_can_bring_its_own_policy() {
    struct Never;
    impl PermissionPolicy for Never {
        fn decide(&self, _: &Ask) -> missiond::core::policy::Verdict {
            missiond::core::policy::Verdict {
                decision: Decision::Deny,
                rule: None,
                why: "never".to_owned(),
            }
        }
    }
    let own: Vec<Box<dyn PermissionPolicy>> = vec![
        Box::new(Never),
        Box::new(Judge {
            policy: policy("allow = [\"Bash(ls *)\"]"),
            paths: LexicalPaths,
        }),
    ];
    let decisions: Vec<Decision> = own
        .iter()
        .map(|policy| policy.decide(&bash("ls")).decision)
        .collect();
    assert_eq!(decisions, [Decision::Deny, Decision::Allow]);
}

#[test]
fn a_search_is_about_what_lies_below_its_directory() {
    let rules = "allow = [\"Read(src/**)\", \"Read(docs/*.md)\"]\ndeny = [\"Read(secrets/**)\", \"Read(./.env)\"]\n";
    let policy = policy(rules);
    for (path, expected) in [
        ("src", Decision::Allow),
        ("src/deep", Decision::Allow),
        ("docs", Decision::Silent),
        ("..", Decision::Ask),
        ("secrets", Decision::Deny),
        ("secrets/a", Decision::Deny),
        (".env", Decision::Deny),
        (".", Decision::Silent),
    ] {
        let input = json!({"pattern": "x", "path": path});
        for tool in ["Grep", "Glob", "LS"] {
            assert_eq!(
                decision(&policy, &ask(tool, input.clone())),
                expected,
                "{tool} {path}"
            );
        }
    }
}

#[test]
fn what_can_be_no_name_of_a_tool_is_not_allowed() {
    let policy = policy("allow = [\"mcp__gh__get_*\"]\n");
    assert_eq!(
        decision(&policy, &ask("mcp__gh__get_issue", json!({}))),
        Decision::Allow
    );
    for odd in [
        "mcp__gh__get_a\n",
        "mcp__gh__get_ b",
        "mcp__gh__get_\u{202e}",
    ] {
        assert_eq!(
            decision(&policy, &ask(odd, json!({}))),
            Decision::Ask,
            "{odd:?}"
        );
    }
}

#[test]
fn a_command_is_judged_where_the_shell_stands() {
    let rules =
        "allow = [\"Bash(cat *)\", \"Bash(cd *)\"]\ndeny = [\"Read(./.env)\", \"Read(./keys/**)\"]";
    let policy = policy(rules);
    let at = |directory: &str, command: &str| Ask {
        at: Some(PathBuf::from(directory)),
        ..bash(command)
    };
    assert_eq!(decision(&policy, &bash("cat a")), Decision::Allow);
    for call in [
        bash("cat .env"),
        at("/proj/sub/deep", "cat ../.env"),
        at("/proj/sub/keys", "cat a"),
    ] {
        assert_eq!(decision(&policy, &call), Decision::Deny, "{call:?}");
    }
    // The patterns are meant in the slot's own directory, wherever the shell stands.
    let other = at("/proj/sub/deep", "cat .env");
    assert_eq!(decision(&policy, &other), Decision::Allow);
    let out = at("/proj/sub/deep", "cd ../..");
    assert_eq!(decision(&policy, &out), Decision::Ask);
}

#[test]
fn always_adds_a_rule_only_where_it_changes_the_verdict() {
    let policy = policy(
        "allow = [\"Bash(ls *)\"]\nask = [\"Bash(./publish.sh *)\"]\ndeny = [\"Bash(rm *)\"]\n",
    );
    let always = |ask: Ask| rule_for_always(&policy, &ask, &LexicalPaths);
    assert_eq!(always(bash("make all")), Ok("Bash(make all)".to_owned()));
    for (call, why) in [
        (
            bash("./publish.sh now"),
            "`Bash(./publish.sh *)` in coder.toml:2 asks, and ask beats allow",
        ),
        (
            bash("make && rm x"),
            "`Bash(rm *)` in coder.toml:3 denies, and deny beats allow",
        ),
        (bash("ls -la"), "allowed by Bash(ls *) already"),
        (
            bash("make\nmake test"),
            "no rule can name this call of Bash",
        ),
        (
            ask("AskUserQuestion", json!({})),
            "no rule can name this call of AskUserQuestion",
        ),
    ] {
        let command = call.input.clone();
        assert_eq!(always(call), Err(why.to_owned()), "{command}");
    }
    let hook = ask(
        "Write",
        json!({"file_path": "/proj/sub/.git/hooks/x", "content": ""}),
    );
    let why_not = always(hook).expect_err("a protected path");
    assert!(why_not.contains("is a protected path"), "{why_not}");
    let part = Ask {
        complete: false,
        ..bash("make all")
    };
    let why_not = always(part).expect_err("only a part is known");
    assert!(why_not.contains("only a part of the input"), "{why_not}");
}

/// Each example of a policy file, as the call that it is about.
fn calls_of_examples(text: &str) -> Vec<Ask> {
    let file: toml::Table = text.parse().expect("TOML");
    let examples = file.get("example").and_then(|list| list.as_array());
    let call = |example: &toml::Value| {
        let input = json!(example.get("input").cloned());
        ask(example["tool"].as_str().expect("a tool"), input)
    };
    examples.into_iter().flatten().map(call).collect()
}

#[test]
fn a_rule_that_always_offers_leaves_a_file_that_loads() {
    let shipped = std::fs::read_dir("policies").expect("the shipped policies");
    let (mut offered, mut refused) = (0, 0);
    let examples = std::fs::read_dir("policies/examples").expect("the examples");
    let files = shipped
        .chain(examples)
        .map(|entry| entry.expect("an entry").path());
    for file in files.filter(|file| file.is_file()) {
        let text = std::fs::read_to_string(&file).expect("a policy");
        let project = Path::new("/proj/sub");
        let policy = Policy::parse(&text, &file, project).expect("a good file");
        let calls = [
            bash("make"),
            bash("make all"),
            bash("mkfifo x"),
            bash("cmake ."),
        ];
        for call in calls.into_iter().chain(calls_of_examples(&text)) {
            match rule_for_always(&policy, &call, &LexicalPaths) {
                Ok(rule) => {
                    offered += 1;
                    let new = add_rule_for_always(&policy, &text, &rule).expect("it was offered");
                    Policy::parse(&new, &file, project).expect("a file that loads");
                }
                Err(why) if why.starts_with("the example at ") => {
                    refused += 1;
                    let rule = narrow_rule_for(&call).expect("a rule names it");
                    let added = add_rule_for_always(&policy, &text, &rule);
                    assert_eq!(added, Err(why), "{call:?}");
                }
                Err(_) => {}
            }
        }
    }
    assert!(offered > 0 && refused > 0, "{offered} and {refused}");
}

#[test]
fn the_example_that_a_rule_would_break_is_named() {
    let text = include_str!("../../policies/coder.toml");
    let policy = Policy::parse(text, Path::new("coder.toml"), Path::new("/proj")).expect("good");
    let at = text
        .split("command = \"terraform apply\"")
        .next()
        .expect("the example");
    let line = at.lines().count() + 1;
    let why =
        rule_for_always(&policy, &bash("terraform apply"), &LexicalPaths).expect_err("an example");
    assert!(
        why.starts_with(&format!("the example at coder.toml:{line} says `ask`")),
        "{why}"
    );
    // A path that missiond protects is no part of what the file promises.
    let protecting = policy.protecting([PathBuf::from("/proj/src")]);
    let other = rule_for_always(&protecting, &bash("make all"), &LexicalPaths);
    assert_eq!(other.as_deref(), Ok("Bash(make all)"));
}

/// `xargs cd src` must not be milder than `cd src`.
#[test]
fn a_doubt_about_paths_is_not_milder_than_the_default() {
    let denying =
        policy("default = \"deny\"\nallow = [\"Bash(cat *)\"]\ndeny = [\"Edit(src/**)\"]\n");
    for command in ["mytool src", "xargs cd src", "cp x src"] {
        assert_eq!(
            decision(&denying, &bash(command)),
            Decision::Deny,
            "{command}"
        );
    }
    let asking = policy("allow = [\"Bash(mytool *)\"]\ndeny = [\"Edit(src/**)\"]\n");
    assert_eq!(decision(&asking, &bash("mytool src")), Decision::Ask);
}
