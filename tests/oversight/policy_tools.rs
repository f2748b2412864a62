//! `missiond policy show|test|suggest` on a config and an audit, with no daemon.

use crate::support::daemon::missiond;
use crate::support::run::{Output, Running};
use missiond::audit::{Audit, Record};
use missiond::core::policy::Decision;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const POLICY: &str = "\
# What the coder may do.
allow = [\"Bash(cargo *)\"]
ask = [\"Bash(git push *)\"]
deny = [\"Bash(rm *)\"]
deny_reason = \"Ask first.\"

[dialogs]
plan = \"deny\"

[mcp]
allow = [\"send\"]

[slots.second]
ask = [\"Bash\"]
";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"));
        for directory in ["policies", "logs", "run", "state", "home"] {
            fs::create_dir(place.path(directory)).expect("a directory");
        }
        let slot =
            |name: &str| format!("[[slot]]\nname = \"{name}\"\nrole = \"coder\"\ncwd = \".\"\n");
        place.write(
            "slots.toml",
            &format!(
                "[daemon]\n[defaults]\ncommand = [\"true\"]\n{}{}",
                slot("first"),
                slot("second")
            ),
        );
        place.write("policies/coder.toml", POLICY);
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = missiond(self.0.path());
        command.args(arguments);
        Running::start(command, arguments.join(" "), "").end()
    }
}

fn call(cwd: &Path, command: &str, decision: Decision, by: &str) -> Record {
    let mut record = Record::verdict("first", "Bash", &json!({ "command": command }));
    record.verdict = Some(decision);
    record.actor.by = by.to_owned();
    record.call.cwd = Some(cwd.to_owned());
    record
}

/// A call of which only a part was seen.
fn cut(mut record: Record) -> Record {
    record.call.partial = true;
    record
}

fn audited(place: &Place) {
    let cwd = place.0.path();
    let records = vec![
        call(cwd, "cargo test", Decision::Allow, "policy"),
        call(cwd, "cargo test", Decision::Allow, "policy"),
        call(cwd, "npm test", Decision::Ask, "policy"),
        call(cwd, "npm test", Decision::Allow, "person"),
        call(cwd, "npm test", Decision::Allow, "person"),
        call(cwd, "git push origin", Decision::Allow, "person"),
        call(cwd, "rm x", Decision::Deny, "policy"),
        call(cwd, "make all", Decision::Deny, "person"),
        call(cwd, "cargo doc", Decision::Allow, "person"),
        cut(call(cwd, "ls cut", Decision::Allow, "person")),
        Record::key("first", "1", "a key"),
    ];
    audit(place, records);
}

/// The policy asks about each of these commands, and a person confirms it.
fn confirmed(place: &Place, commands: &[&str]) {
    let cwd = place.0.path();
    let both = |command: &&str| {
        let by = |decision, actor| call(cwd, command, decision, actor);
        [by(Decision::Ask, "policy"), by(Decision::Allow, "person")]
    };
    audit(place, commands.iter().flat_map(both).collect());
}

/// Writes an audit as a daemon would.
fn audit(place: &Place, records: Vec<Record>) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let audit =
            Audit::open(&place.path("logs/audit.jsonl"), &place.path("logs")).expect("an audit");
        for record in records {
            audit.write(record).await.expect("it is written");
        }
    });
}

#[test]
fn show_says_where_each_rule_comes_from() {
    let place = Place::new();
    let shown = place.run(&["policy", "show", "second"]).expect(0);
    let file = place.path("policies/coder.toml");
    for text in [
        format!("Bash(rm *)  {}:4", file.display()),
        format!("Bash  {}:14  (slot second)", file.display()),
        "ask    where no rule speaks".to_owned(),
        "deny   dialog: plan".to_owned(),
        "told with a no: Ask first.".to_owned(),
        "granted to its programs: send (on every other slot)".to_owned(),
    ] {
        assert!(shown.stdout.contains(&text), "{text} in {shown}");
    }
    let first = place
        .run(&["policy", "show", "first", "--json"])
        .expect(0)
        .json();
    assert_eq!(first["role"], "coder", "{first}");
    let rules: Vec<&Value> = first["rules"].as_array().into_iter().flatten().collect();
    assert_eq!(rules.len(), 3, "{first}");
    assert_eq!(rules[0]["rule"], "Bash(rm *)", "{first}");
    assert_eq!(rules[0]["line"], 4, "{first}");
    let unknown = place.run(&["policy", "show", "third"]).expect(2);
    assert!(unknown.stderr.contains("first, second"), "{unknown}");
}

#[test]
fn test_says_what_another_policy_changes() {
    let place = Place::new();
    audited(&place);
    place.write(
        "new.toml",
        "allow = [\"Bash(npm test)\", \"Bash(cargo *)\"]\n",
    );
    let arguments = ["policy", "test", "--policy", "new.toml", "--role", "coder"];
    let told = place.run(&arguments).expect(0);
    for text in [
        "ask -> allow Bash: npm test  (first, once)",
        "deny -> ask   Bash: rm x",
        "4 calls, 3 of them different: 1 as before, 2 changed",
    ] {
        assert!(told.stdout.contains(text), "{text} in {told}");
    }
    let json = place.run(&[&arguments[..], &["--json", "--from", "logs"]].concat());
    let lines = json.expect(0).json_lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["count"], 2);
    assert_eq!(lines[1]["before"], "ask");
    assert_eq!(lines[1]["after"], "allow");
    assert_eq!(lines[1]["rule"]["text"], "Bash(npm test)");

    // The role's own file, after an edit, is compared with what was decided then.
    place.write("policies/coder.toml", "deny = [\"Bash(cargo *)\"]\n");
    let own = place.run(&["policy", "test", "--policy", "policies/coder.toml"]);
    let own = own.expect(0);
    assert!(
        own.stdout.contains("allow -> deny  Bash: cargo test"),
        "{own}"
    );
    assert!(
        own.stdout.contains("against what was decided then"),
        "{own}"
    );
    place
        .run(&["policy", "test", "--policy", "new.toml"])
        .expect(2);
}

#[test]
fn explain_says_what_the_rule_would_have_changed() {
    let place = Place::new();
    audited(&place);
    let explain = [
        "policy",
        "explain",
        "--policy",
        "policies/coder.toml",
        "--tool",
        "Bash",
        "--input",
        "{\"command\":\"npm test\"}",
    ];
    let with_config = [&explain[..], &["--config", "slots.toml"]].concat();
    let told = place.run(&with_config).expect(0);
    let rule = "to allow it, add to `allow`: \"Bash(npm test)\"";
    let effect = "with that, 1 ask becomes allow, 0 denies, in the last 7 days";
    for text in [rule, effect] {
        assert!(told.stdout.contains(text), "{text} in {told}");
    }
    let told = place
        .run(&[&with_config[..], &["--json"]].concat())
        .expect(0);
    let told = told.json();
    assert_eq!(told["would_change"], json!({ "asks": 1, "denies": 0 }));
    // No role of the config has this policy.
    place.write("new.toml", POLICY);
    let mut other = with_config.clone();
    other[3] = "new.toml";
    let told = place.run(&other).expect(0);
    assert!(
        told.stdout.contains(rule) && !told.stdout.contains("with that"),
        "{told}"
    );
}

#[test]
fn suggest_gives_narrow_rules_that_would_help() {
    let place = Place::new();
    audited(&place);
    let told = place.run(&["policy", "suggest"]).expect(0);
    // What the policy allows already, what was cut off and what was declined is not there.
    assert_eq!(
        told.text(),
        format!(
            "# for `allow` in {}\n  \"Bash(npm test)\",  # confirmed twice; 1 ask becomes allow, 0 denies, in the last 7 days\n  \
             # no narrow rule for: Bash: git push origin (confirmed once)",
            place.path("policies/coder.toml").display()
        )
    );
    let once = place
        .run(&["policy", "suggest", "--at-least", "2", "--json"])
        .expect(0);
    let lines = once.json_lines();
    assert_eq!(lines.len(), 1, "{once}");
    assert_eq!(lines[0]["rule"], "Bash(npm test)");

    // Pasted, it is a policy that loads and allows it.
    let pasted: String = told
        .text()
        .lines()
        .skip(1)
        .map(|line| format!("{line}\n"))
        .collect();
    place.write("pasted.toml", &format!("allow = [\n{pasted}]\n"));
    let explain = [
        "policy",
        "explain",
        "--policy",
        "pasted.toml",
        "--tool",
        "Bash",
    ];
    let input = ["--input", "{\"command\":\"npm test\"}", "--json"];
    let verdict = place.run(&[&explain[..], &input].concat()).expect(0).json();
    assert_eq!(verdict["verdict"], "allow", "{verdict}");
}

#[test]
fn suggest_makes_one_rule_of_several_calls_of_the_same_kind() {
    let place = Place::new();
    confirmed(
        &place,
        &[
            "npm run lint",
            "npm run build",
            "npm run test",
            "npm run test",
            "npx tsc",
        ],
    );
    let told = place.run(&["policy", "suggest"]).expect(0);
    let merged = "  \"Bash(npm run *)\",  # 3 different calls, confirmed 4 times; 4 asks become allow, 0 denies, in the last 7 days";
    let lines: Vec<&str> = told.stdout.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert_eq!(lines[0], merged);
    assert!(lines[1].contains("Bash(npx tsc)"), "{told}");

    // Two calls are not enough for a rule about their kind.
    let place = Place::new();
    confirmed(&place, &["npm run lint", "npm run build"]);
    let told = place.run(&["policy", "suggest"]).expect(0);
    assert!(!told.stdout.contains('*'), "{told}");
}

/// A person who has said no once has not decided for all times.
#[test]
fn suggest_proposes_no_rule_that_would_allow_what_was_declined() {
    let answered = |answers: &[(&str, Decision)]| {
        let place = Place::new();
        let cwd = place.0.path();
        let record =
            |(command, decision): &(&str, Decision)| call(cwd, command, *decision, "person");
        audit(&place, answers.iter().map(record).collect());
        place.run(&["policy", "suggest"]).expect(0)
    };
    let (yes, no, taken_back) = (Decision::Allow, Decision::Deny, Decision::Ask);
    for same in [
        [("make foo", no), ("make foo", no), ("make foo", yes)],
        [("make foo", yes), ("make foo", no), ("make foo", yes)],
    ] {
        let told = answered(&same);
        assert_eq!(told.text(), "");
    }
    // The kind has a call that was declined, so each call has a rule of its own.
    let kind = ["npm run lint", "npm run build", "npm run test"].map(|command| (command, yes));
    let told = answered(&[&kind[..], &[("npm run deploy", no)]].concat());
    assert!(told.text().contains("\"Bash(npm run lint)\""), "{told}");
    assert!(!told.text().contains('*'), "{told}");
    // An answer that had no effect counts neither way.
    let told = answered(&[("npx tsc", yes), ("npx tsc", taken_back), ("npx tsc", yes)]);
    assert!(
        told.text().contains("\"Bash(npx tsc)\",  # confirmed once"),
        "{told}"
    );
    let told = answered(&[("npx tsc", no), ("npx tsc", taken_back), ("npx tsc", yes)]);
    assert!(
        told.text().contains("\"Bash(npx tsc)\",  # confirmed once"),
        "{told}"
    );
}

#[test]
fn suggest_proposes_no_general_rule_for_what_is_known_to_do_harm() {
    for commands in [
        [
            "npm config set a 1",
            "npm config set b 2",
            "npm config set c 3",
        ],
        ["git config a 1", "git config b 2", "git config c 3"],
        ["cargo install a", "cargo install b", "cargo install c"],
        ["python3 -c 1", "python3 -c 2", "python3 -c 3"],
        ["docker exec a ls", "docker exec a id", "docker exec a ps"],
        [
            "find . -name a -delete",
            "find . -name b -delete",
            "find . -name c -delete",
        ],
    ] {
        let place = Place::new();
        confirmed(&place, &commands);
        let told = place.run(&["policy", "suggest"]).expect(0);
        assert!(!told.stdout.contains('*'), "{told}");
        for command in commands {
            let shown = told.stdout.lines().filter(|line| line.contains(command));
            assert_eq!(shown.count(), 1, "{command}: {told}");
        }
    }
}

#[test]
fn suggest_counts_what_was_confirmed_since_a_time() {
    let place = Place::new();
    confirmed(&place, &["make old", "make new"]);
    let file = place.path("logs/audit.jsonl");
    let text = fs::read_to_string(&file).expect("the audit");
    let aged = text.lines().map(|line| {
        let mut entry: Value = serde_json::from_str(line).expect("an entry");
        if line.contains("make old") {
            entry["time"] = json!((chrono::Utc::now() - chrono::TimeDelta::days(8)).to_rfc3339());
        }
        format!("{entry}\n")
    });
    fs::write(&file, aged.collect::<String>()).expect("an older audit");
    let all = place.run(&["policy", "suggest"]).expect(0);
    assert!(
        all.stdout.contains("make old") && all.stdout.contains("make new"),
        "{all}"
    );
    let lately = place.run(&["policy", "suggest", "--since", "7d"]).expect(0);
    assert!(!lately.stdout.contains("make old"), "{lately}");
    assert!(lately.stdout.contains("make new"), "{lately}");
}
