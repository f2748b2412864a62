use super::*;
use crate::core::text::diagnostic::render;
use std::path::Path;

fn read(text: &str) -> Result<Plan, String> {
    let places = Places {
        base: Path::new("/project"),
        home: Some(Path::new("/home/me")),
    };
    parse(&Source::new("tasks.toml", text), places).map_err(|error| render(&error.problems, false))
}

#[test]
fn a_file_says_what_runs_and_in_which_order() {
    let plan = read(
        r#"
        jobs = 2
        [[task]]
        name = "build"
        commands = ["cargo build", "cargo build --release"]
        cwd = "sub"
        env = { CI = "1" }
        timeout = "10m"
        retries = 1
        [[task]]
        name = "review"
        prompt = "Review it."
        role = "reviewer"
        needs = ["build"]
        "#,
    )
    .unwrap();
    assert_eq!(plan.limit, Some(2));
    let [build, review] = plan.jobs.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(
        build.work,
        Work::Commands {
            lines: vec!["cargo build".into(), "cargo build --release".into()],
            cwd: "/project/sub".into(),
            env: BTreeMap::from([("CI".into(), "1".into())]),
        }
    );
    assert_eq!(
        (build.timeout, build.retries),
        (Some(Duration::from_secs(600)), 1)
    );
    assert_eq!(review.needs, [0]);
    assert_eq!(
        review.work,
        Work::Prompt {
            to: "@reviewer".into(),
            text: "Review it.".into()
        }
    );
}

#[test]
fn a_circle_is_shown_as_a_path() {
    let text = "\
[[task]]
name = \"build\"
commands = \"a\"
needs = [\"test\"]

[[task]]
name = \"test\"
commands = \"b\"
needs = [\"lint\", \"build\"]

[[task]]
name = \"lint\"
commands = \"c\"
";
    insta::assert_snapshot!(read(text).unwrap_err(), @r#"
    error: a circle in `needs`
     --> tasks.toml:9:18
      |
    9 | needs = ["lint", "build"]
      |                  ^^^^^^^ these wait for each other: build -> test -> build
    "#);
}

#[test]
fn every_fault_is_shown_at_its_place() {
    let text = "\
[[task]]
name = \"build\"
commands = \"a\"
needs = [\"tset\", \"other\"]
timout = \"5m\"

[[task]]
name = \"test\"
prompt = \"b\"

[[task]]
name = \"test\"
commands = []
slot = \"x\"
";
    insta::assert_snapshot!(read(text).unwrap_err());
}

#[test]
fn what_is_no_file_of_tasks_is_said() {
    for (text, said) in [
        ("", "a task begins with a line [[task]]"),
        ("task = 1", "double brackets"),
        ("[task]\nname = \"a\"", "double brackets"),
        ("[[task]\n", "syntax error"),
        ("[[task]]\nname = \"a\"", "either `commands` or a `prompt`"),
        ("[[task]]\nname = \"A b\"\ncommands = \"x\"", "bad name"),
        ("[[task]]\ncommands = \"x\"", "a task has a `name`"),
        (
            "[[task]]\nname = \"a\"\ncommands = 3",
            "`commands` takes a list of strings",
        ),
        (
            "[[task]]\nname = \"a\"\ncommands = \"x\"\nprompt = \"y\"",
            "two kinds of work",
        ),
        ("[[task]]\nname = \"a\"\ncommands = [\" \"]", "no command"),
        (
            "[[task]]\nname = \"a\"\nprompt = \" \"\nslot = \"b\"",
            "the prompt is empty",
        ),
        (
            "[[task]]\nname = \"a\"\nprompt = \"x\"\nslot = \"b\"\ncwd = \".\"",
            "own directory",
        ),
        (
            "[[task]]\nname = \"a\"\nprompt = \"x\"\nslot = \"b\"\nenv = { A = \"1\" }",
            "own variables",
        ),
        (
            "[[task]]\nname = \"a\"\ncommands = \"x\"\nneeds = [\"a\"]",
            "a -> a",
        ),
        (
            "jobs = 0\n[[task]]\nname = \"a\"\ncommands = \"x\"",
            "must be from 1 to 64",
        ),
        (
            "[[task]]\nname = \"a\"\ncommands = \"x\"\ntimeout = \"soon\"",
            "bad time",
        ),
        (
            "[[task]]\nname = \"a\"\ncommands = \"x\"\nretries = -1",
            "out of range",
        ),
        (
            "[[task]]\nname = \"a\"\ncommands = \"x\"\nenv = { \"a=b\" = \"c\" }",
            "bad variable",
        ),
    ] {
        let fault = read(text).unwrap_err();
        assert!(fault.contains(said), "{text}\n{fault}");
        assert!(fault.contains("tasks.toml"), "{fault}");
    }
}
