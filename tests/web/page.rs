//! The page in a real Chromium, with the real Claude Code behind it.

use super::client::Web;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{npm, skip, until};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A browser without a page yet.
struct Browser {
    packages: PathBuf,
    chromium: &'static str,
}

impl Browser {
    /// `None`, said loudly, if it can't be had. In CI that is a failure.
    fn new() -> Option<Browser> {
        let programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
        let chromium = programs.into_iter().find(|path| Path::new(path).exists());
        let packages = npm::installed("browser", &["playwright-core@1.65.1", "axe-core@4.14.0"]);
        match (chromium, packages) {
            (Some(chromium), Ok(packages)) => Some(Browser { packages, chromium }),
            (None, _) => {
                skip("the page is not tried in a browser (needs chromium)");
                None
            }
            (_, Err(reason)) => {
                skip(&format!("the page is not tried in a browser: {reason}"));
                None
            }
        }
    }

    /// Plays a step of steps/ at the page, and gives what it returns. Anything that the browser complains about is a failure.
    #[track_caller]
    fn play(&self, step: &str, width: usize, web: &Web, marks: &Path) -> Value {
        let output = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/browser.mjs"))
            .env("PACKAGES", &self.packages)
            .env("CHROMIUM", self.chromium)
            .env("STEP", step)
            .env("WIDTH", width.to_string())
            .env("URL", format!("http://{}/#k={}", web.host(), web.code))
            .env("BASE", format!("http://{}", web.host()))
            .env("MARKS", marks)
            .output()
            .expect("node runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(told["complaints"], json!([]), "{told}");
        told["told"].clone()
    }
}

fn coder() -> Option<Daemon> {
    let setup = Setup::new().slot("coder").slot("reader");
    let daemon = Daemon::start(&setup)?;
    daemon.wait_state("coder", "idle");
    Some(daemon)
}

/// Asks the slot to run a command, which no rule allows.
fn asks_to_run(daemon: &Daemon, command: &str) {
    // What is typed has no hidden characters; what a model asks for may have them.
    let words = format!("please do {}", command.len());
    let tool = Step::tool("Bash", json!({ "command": command }));
    daemon.endpoint.on(&words, vec![tool, Step::text("Done.")]);
    daemon.cmd(&["send", "coder", &words]).expect(5);
}

#[test]
fn a_person_denies_and_allows_at_the_page() {
    let Some((browser, daemon)) = Browser::new().zip(coder()) else {
        return;
    };
    asks_to_run(&daemon, "touch denied");
    let web = Web::start(&daemon, "answer");
    let told = browser.play("deny", 1280, &web, daemon.root());
    assert_eq!(told["serious"], json!([]), "what axe finds");
    let kept = "the token is in the tab, and nowhere else";
    assert_eq!(told["kept"], json!(["", 0, 1]), "{kept}");
    daemon.wait_state("coder", "idle");
    assert!(!daemon.cwd("coder").join("denied").exists());
    let history = daemon.cmd(&["history", "coder"]).expect(0).stdout;
    assert!(history.contains("not this file"), "{history}");
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains(r#""via":"web""#), "{audit}");

    asks_to_run(&daemon, "touch allowed");
    let web = Web::start(&daemon, "answer");
    let told = browser.play("allow", 390, &web, daemon.root());
    assert_eq!(told["wide"], 390, "nothing is wider than the phone");
    assert!(told["height"].as_f64().expect("a height") >= 48.0, "{told}");
    until("the file", || {
        daemon.cwd("coder").join("allowed").exists().then_some(())
    });
}

#[test]
fn text_of_a_slot_stays_text_and_other_pages_get_nothing() {
    let Some((browser, daemon)) = Browser::new().zip(coder()) else {
        return;
    };
    let hostile = "echo '<img src=x onerror=document.title=1></script><b>bold</b>' \u{202e}txt.exe";
    asks_to_run(&daemon, hostile);
    let web = Web::start(&daemon, "answer");
    let told = browser.play("hostile", 1280, &web, daemon.root());
    assert_eq!(told["images"], 0, "{told}");
    let shown = told["shown"].as_str().expect("a text");
    assert!(shown.contains("<img src=x onerror"), "{shown}");
    assert!(
        shown.contains("⟨U+202E⟩"),
        "a hidden mark is shown: {shown}"
    );
    let nothing = json!({"json": "blocked", "form": "blocked", "frame": false});
    assert_eq!(told["got"], nothing, "{told}");
    assert_eq!(
        told["seen"],
        json!([]),
        "no credential reaches another server"
    );
    assert_eq!(daemon.status("coder")["state"], "confirming");
}

#[test]
fn the_page_says_that_the_daemon_has_gone_and_comes_back() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let mut daemon = super::answers::daemon();
    let web = Web::start(&daemon, "view");
    let marks = tempfile::tempdir().expect("a directory");
    let place = marks.path().to_owned();
    let playing = std::thread::spawn(move || browser.play("lost", 1280, &web, &place));
    let is_there = |name| marks.path().join(name).exists().then_some(());
    until("the page", || is_there("seen"));
    daemon.crash();
    until("the loss", || is_there("lost"));
    daemon.again();
    playing.join().expect("the page is live again");
}
