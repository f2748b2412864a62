//! The page in a real Chromium, with the real Claude Code behind it.

use super::client::Web;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{npm, skip, until};
use missiond::lab::rehearsal::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A browser without a page yet.
pub struct Browser {
    packages: PathBuf,
    chromium: &'static str,
}

impl Browser {
    /// `None`, said loudly, if it can't be had. In CI that is a failure.
    pub fn new() -> Option<Browser> {
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
    pub fn play(&self, step: &str, width: usize, web: &Web, marks: &Path) -> Value {
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
    until("the reason to be told", || {
        let history = daemon.cmd(&["history", "coder"]).expect(0).stdout;
        history.contains("not this file").then_some(())
    });
    daemon.wait_state("coder", "idle");
    assert!(!daemon.cwd("coder").join("denied").exists());
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains(r#""via":"web""#), "{audit}");

    asks_to_run(&daemon, "touch denied");
    let web = Web::start(&daemon, "view");
    let told = browser.play("argued", 1280, &web, daemon.root());
    let before = told["before"].as_str().unwrap_or_default();
    assert!(before.contains("no") && before.contains("by web"), "{told}");
    assert!(before.contains("not this file"), "{told}");
    let always = told["always"].as_str().unwrap_or_default();
    assert!(always.contains("Bash(touch denied)"), "{told}");
    assert!(always.contains("2 asks and 0 denies"), "{told}");
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");

    asks_to_run(&daemon, "touch allowed");
    let web = Web::start(&daemon, "answer");
    let told = browser.play("allow", 390, &web, daemon.root());
    assert_eq!(told["wide"], 390, "nothing is wider than the phone");
    assert!(told["height"].as_f64().expect("a height") >= 48.0, "{told}");
    let steps = told["steps"].as_str().unwrap_or_default();
    let whole = "coder: yes sent ✓ decided ✓ key 1 ✓ dialog gone ✓ ran ✓";
    assert_eq!(steps.trim(), whole);
    until("the file", || {
        daemon.cwd("coder").join("allowed").exists().then_some(())
    });

    daemon.wait_state("coder", "idle");
    daemon.cmd(&["spawn", "--", "sleep", "600"]).expect(0);
    asks_to_run(&daemon, "touch third");
    daemon
        .cmd(&["submit", "coder", "count the files"])
        .expect(0);
    let web = Web::start(&daemon, "view");
    for width in [1280, 390] {
        let told = browser.play("views", width, &web, daemon.root());
        assert_eq!(told["serious"], json!([]), "what axe finds at {width}");
        assert_eq!(told["wide"], width, "nothing is wider than the page");
        if width == 390 {
            continue;
        }
        let shown = |view: &str| told[view].as_str().unwrap_or_default().to_owned();
        let audit = shown("audit");
        assert!(audit.contains("with the reason: not this file"), "{audit}");
        assert!(audit.contains("by web"), "{audit}");
        assert!(shown("sessions").contains("sleep 600"), "{told}");
        assert!(shown("tasks").contains("count the files"), "{told}");
        let timeline = shown("timeline");
        assert!(timeline.contains("People were waited for"), "{timeline}");
        assert!(
            timeline.contains("3 asks") || timeline.contains("4 asks"),
            "{timeline}"
        );
        assert!(
            shown("scrubbed").contains("asks Bash: touch third"),
            "{told}"
        );
        assert!(
            shown("log").contains("ran       Bash: touch allowed"),
            "{told}"
        );
        let buttons = told["buttons"].as_array().expect("buttons").len();
        assert!(buttons >= 5, "each says why it is off: {told}");
    }
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
    let nothing = json!({
        "json": "blocked", "form": "blocked", "image": "blocked", "icon": "blocked", "events": "blocked",
        "socket": "blocked", "live": "blocked", "frame": false, "opener": false, "window": false,
    });
    assert_eq!(told["got"], nothing, "{told}");
    for (name, held) in told["held"].as_object().expect("attempts") {
        assert_eq!(held, "blocked", "{name}: {told}");
    }
    assert_eq!(
        told["seen"],
        json!([]),
        "no credential reaches another server"
    );
    assert_eq!(daemon.status("coder")["state"], "confirming");
}

/// A second click on a button at which the next ask has just come answers nothing.
#[test]
fn an_ask_that_has_just_come_takes_no_answer() {
    let Some((browser, daemon)) = Browser::new().zip(coder()) else {
        return;
    };
    let call = |command: &str| Step::tool("Bash", json!({ "command": command }));
    let steps = vec![
        call("touch first"),
        call("touch second"),
        Step::text("Done."),
    ];
    daemon.endpoint.on("do both", steps);
    daemon.cmd(&["send", "coder", "do both"]).expect(5);
    let web = Web::start(&daemon, "answer");
    let told = browser.play("slides", 1280, &web, daemon.root());
    let off = told["off"].as_array().expect("buttons");
    assert!(
        off.len() >= 2 && off.iter().all(|off| *off == true),
        "{told}"
    );
    assert!(daemon.cwd("coder").join("first").exists());
    assert!(!daemon.cwd("coder").join("second").exists());
    assert_eq!(daemon.status("coder")["state"], "confirming");
}

#[test]
fn a_long_request_is_read_to_its_end_first() {
    let Some((browser, daemon)) = Browser::new().zip(coder()) else {
        return;
    };
    let lines: String = (1..=5000).map(|n| format!("echo line {n}\n")).collect();
    asks_to_run(&daemon, lines.trim_end());
    let web = Web::start(&daemon, "answer");
    let told = browser.play("long", 1280, &web, daemon.root());
    assert_eq!(told["before"], false, "its end was not on the screen");
    assert_eq!(told["lines"], 5000, "nothing is cut");
    let took = told["took_ms"].as_f64().expect("a time");
    assert!(took < 10_000.0, "also on a loaded machine: {told}");
}

#[test]
fn a_paired_device_stays_signed_in() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let daemon = super::answers::daemon();
    let pair = ["web", "pair", "--name", "phone", "--json"];
    let code = daemon.cmd(&pair).expect(0).json()["code"].clone();
    let mut web = Web::start(&daemon, "view");
    web.code = code.as_str().expect("a code").to_owned();
    let told = browser.play("device", 390, &web, daemon.root());
    let kept = "the token outlives the tab";
    assert_eq!(told["kept"], json!(["", 1, 0]), "{kept}");
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

/// A page that hears nothing, as after a sleep of the device, says so within half a minute and connects again by itself.
#[test]
fn the_page_says_that_nothing_comes_and_connects_again() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let daemon = super::answers::daemon();
    let web = Web::start(&daemon, "view");
    let server = Pid::from_raw(web.pid().cast_signed()).expect("a process");
    let marks = tempfile::tempdir().expect("a directory");
    let place = marks.path().to_owned();
    std::thread::scope(|scope| {
        let playing = scope.spawn(|| browser.play("silent", 1280, &web, &place));
        let is_there = |name| marks.path().join(name).exists().then_some(());
        until("the page", || is_there("seen"));
        kill_process(server, Signal::STOP).expect("it runs");
        std::fs::write(marks.path().join("stopped"), "").expect("a file");
        until("the silence", || is_there("silent"));
        // What happens meanwhile is there afterwards.
        daemon.cmd(&["stop", "echo"]).expect(0);
        kill_process(server, Signal::CONT).expect("it runs");
        let told = playing.join().expect("the page is live again");
        let silent = told["after_s"].as_f64().expect("seconds");
        assert!(silent < 30.0, "{told}");
    });
}

#[test]
fn a_page_says_that_the_server_or_the_daemon_is_of_another_version() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let daemon = super::answers::daemon();
    let web = Web::start(&daemon, "view");
    let told = browser.play("versions", 1280, &web, daemon.root());
    let ours = env!("CARGO_PKG_VERSION");
    let expected = [
        format!("This page is of missiond {ours}, and the daemon of 99.0.0"),
        format!("This page is of missiond {ours}, and its server of 98.0.0: load the page again"),
    ];
    for (told, expected) in ["daemon", "server"]
        .map(|key| &told[key])
        .iter()
        .zip(expected)
    {
        let told = told.as_str().unwrap_or_default();
        assert!(told.contains(&expected), "{told}");
    }
    assert_eq!(told["same"], 0, "nothing is said where all are the same");
}
