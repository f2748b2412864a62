//! `timeline`, on logs that were written before. `timeline/` has them: three slots on one morning.

use crate::fake::{Home, Ran};
use std::path::Path;

const MORNING: [&str; 4] = [
    "--since",
    "2026-01-01T07:41:00Z",
    "--until",
    "2026-01-01T09:41:00Z",
];

fn home() -> Home {
    let home = Home::new();
    home.write("slots.toml", "[daemon]\nlogs = \"logs\"\n");
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/timeline");
    for entry in prepared.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        home.write(&format!("logs/{name}"), &text);
    }
    home
}

fn timeline(home: &Home, locale: &str, args: &[&str]) -> Ran {
    let mut command = home.command(&[&["timeline", "-c", "slots.toml"], args].concat());
    Ran::from(
        command
            .env("LANG", locale)
            .env("TZ", "UTC")
            .output()
            .unwrap(),
    )
}

#[test]
fn a_morning_on_a_terminal() {
    let ran = timeline(&home(), "en_GB.UTF-8", &MORNING).exits(0);
    insta::assert_snapshot!(ran.stdout);
    let widest = ran.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{}", ran.stdout);
}

#[test]
fn times_below_the_bands_are_clear_and_do_not_touch() {
    let axis = |since: &str| {
        let window = ["--since", since, "--until", "2026-01-01T09:41:00Z", "coder"];
        let ran = timeline(&home(), "C", &window).exits(0);
        ran.stdout
            .lines()
            .nth(4)
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(axis("2026-01-01T09:21:00Z"), "09:21:00 09:31:00 09:41:00");
    assert_eq!(axis("2026-01-01T03:41:00Z"), "03:41 05:41 07:41 09:41");
    assert_eq!(axis("2025-12-30T09:41:00Z"), "12-30 09:41 01-01 09:41");
}

#[test]
fn an_old_terminal_gets_ascii_alone() {
    let ran = timeline(&home(), "C", &[&["coder"], &MORNING[..]].concat()).exits(0);
    assert!(ran.stdout.is_ascii(), "{}", ran.stdout);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn a_program_gets_the_same_as_json() {
    let ran = timeline(&home(), "C", &[&["--json", "coder"], &MORNING[..]].concat()).exits(0);
    insta::assert_json_snapshot!(ran.json());
}

#[test]
fn a_picture_has_each_slot_and_nothing_active() {
    let home = home();
    // A slot's log may say anything.
    let hostile = "</title><script>alert(1)</script>";
    let coder = home.path("logs/coder.events.jsonl");
    let log = std::fs::read_to_string(&coder).unwrap();
    std::fs::write(&coder, log.replace("sudo make install", hostile)).unwrap();
    timeline(&home, "C", &[&["--svg", "t.svg"], &MORNING[..]].concat()).exits(0);
    let svg = std::fs::read_to_string(home.path("t.svg")).unwrap();
    assert!(svg.contains(">migrate</text>") && svg.contains("&lt;script&gt;alert(1)"));
    assert!(!svg.contains("<script"), "{svg}");
    // The name of the format, which nobody fetches.
    assert_eq!(svg.matches("http").count(), 1, "{svg}");
    assert_eq!(svg.matches('<').count(), svg.matches('>').count(), "{svg}");
}

#[test]
fn older_files_of_a_log_are_read_as_far_as_needed() {
    let home = home();
    let coder = home.path("logs/coder.events.jsonl");
    let log = std::fs::read_to_string(&coder).unwrap();
    let all = timeline(&home, "C", &MORNING).exits(0).stdout;
    let lines: Vec<&str> = log.lines().collect();
    home.write("logs/coder.events.jsonl.2", &(lines[..4].join("\n") + "\n"));
    home.write(
        "logs/coder.events.jsonl.1",
        &(lines[4..9].join("\n") + "\n"),
    );
    // What is no event does not hide the others.
    home.write(
        "logs/coder.events.jsonl",
        &format!("{}\nnot json\n", lines[9..].join("\n")),
    );
    assert_eq!(timeline(&home, "C", &MORNING).exits(0).stdout, all);
}

#[test]
fn what_cannot_be_shown_is_said() {
    let home = home();
    let unknown = timeline(&home, "C", &["nobody"]).exits(2);
    assert!(
        unknown.stderr.contains("there are logs of: coder"),
        "{unknown:?}"
    );
    let turned = ["--since", "1h", "--until", "2h"];
    let turned = timeline(&home, "C", &turned).exits(2);
    assert!(turned.stderr.contains("--since is not before --until"));
    let nothing = timeline(&home, "C", &["--since", "1h"]).exits(0);
    assert_eq!(
        (nothing.stdout.as_str(), nothing.stderr.as_str()),
        ("", "no slot ran in that time\n")
    );
    std::os::unix::fs::symlink("coder.events.jsonl", home.path("logs/link.events.jsonl")).unwrap();
    timeline(&home, "C", &["link"]).exits(1);
}
