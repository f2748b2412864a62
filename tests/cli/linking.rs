//! `link`: the page of a moment.

use crate::fake::{Home, Ran};
use chrono::{DateTime, TimeDelta, Utc};
use missiond::audit::{Audit, Record};
use serde_json::{Value, json};

const HOSTILE: &str =
    "</pre><script>alert(1)</script>\u{202e} curl -H 'Authorization: Bearer abcdefgh12345'";

/// A slot that was asked about a hostile command half a minute ago, and answered 12 s later.
struct Scene {
    home: Home,
    asked: DateTime<Utc>,
}

impl Scene {
    fn new() -> Scene {
        let scene = Scene {
            home: Home::new(),
            asked: Utc::now() - TimeDelta::seconds(30),
        };
        scene
            .home
            .write("slots.toml", "[daemon]\nlogs = \"logs\"\n");
        let rule = json!({"text": "Bash(curl *)", "file": "/p/coder.toml", "line": 7});
        let input = json!({"command": HOSTILE});
        let dialog = json!({"id": "d1", "kind": "permission", "tool": "Bash", "input": input, "text": "",
            "options": [{"label": "Yes"}, {"label": "No"}], "selected": 0, "complete": true});
        let events = [
            (
                -600,
                json!({"event": "spawned", "pid": 7, "session_id": null, "resumed": false}),
            ),
            (
                0,
                json!({"event": "verdict", "tool": "Bash", "target": HOSTILE, "verdict": "ask", "rule": rule,
                "why": "asked", "by": "policy"}),
            ),
            (0, json!({"event": "dialog", "dialog": dialog})),
            (
                0,
                json!({"event": "state", "from": "thinking", "to": "confirming"}),
            ),
            (
                12,
                json!({"event": "verdict", "tool": "Bash", "target": HOSTILE, "verdict": "deny", "rule": null,
                "why": "a person chose No", "by": "person"}),
            ),
            (12, json!({"event": "dialog_gone", "id": "d1"})),
        ];
        let lines = events
            .into_iter()
            .map(|(second, what)| scene.event(second, &what));
        scene
            .home
            .write("logs/coder.events.jsonl", &lines.collect::<String>());
        let began = scene.at(-600).timestamp();
        let cast = format!(
            "{{\"version\": 2, \"width\": 60, \"height\": 3, \"timestamp\": {began}}}\n\
             [0.0, \"m\", \"start 7\"]\n[1.0, \"o\", \"at work\"]\n\
             [20.0, \"m\", \"confirming\"]\n[20.1, \"o\", \"\\r\\u001b[KMay I? <b>token=abcdefgh12345\"]\n\
             [32.2, \"o\", \"\\r\\u001b[Kno more\"]\n"
        );
        scene.home.write("logs/coder.cast", &cast);
        scene
    }

    fn at(&self, second: i64) -> DateTime<Utc> {
        self.asked + TimeDelta::seconds(second)
    }

    fn event(&self, second: i64, what: &Value) -> String {
        let mut event = json!({"seq": 1, "time": self.at(second), "slot": "coder"});
        let fields = event.as_object_mut().unwrap();
        fields.extend(what.as_object().unwrap().clone());
        format!("{event}\n")
    }

    fn audited(&self) {
        let logs = self.home.path("logs");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let audit = Audit::open(&logs.join("audit.jsonl"), &logs).unwrap();
            let call = json!({"command": HOSTILE});
            audit
                .write(Record::verdict("coder", "Bash", &call))
                .await
                .unwrap();
            audit
                .write(Record::key("other", "1", "of another slot"))
                .await
                .unwrap();
        });
    }

    fn page(&self, second: i64) -> String {
        self.link(second, &[]).exits(0).stdout
    }

    fn link(&self, second: i64, more: &[&str]) -> Ran {
        let at = self.at(second).to_rfc3339();
        self.home
            .run(&[&["link", "coder", "-c", "slots.toml", "--at", &at], more].concat())
    }
}

#[test]
fn the_page_has_the_screen_the_request_the_answer_and_the_audit() {
    let scene = Scene::new();
    scene.audited();
    let page = scene.page(5);
    for part in [
        ">May I? &lt;b&gt;",
        "Asked because of: Bash(curl *) in /p/coder.toml:7. Answered with deny after 12s.",
        "a person chose No",
        "The chain of the audit is unbroken; its head is 2:",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("of another slot"), "{page}");
    assert!(chosen(&page).contains(">May I? "), "{page}");
    let later = scene.page(20);
    assert!(
        chosen(&later).contains(">no more<") && later.contains("No dialog was up."),
        "{later}"
    );
    // A minute is meant, and the dialog came up in it.
    assert!(chosen(&scene.page(-40)).contains(">May I? "));
    assert!(chosen(&scene.page(-100)).contains(">at work<"));
}

/// The screen that is shown first: the one of the moment.
#[track_caller]
fn chosen(page: &str) -> &str {
    let (_, frame) = page.split_once(" checked>").expect("a moment");
    frame.split("<input").next().unwrap_or(frame)
}

/// One steps from the request to the answer, each with the screen of then.
#[test]
fn the_moments_around_it_can_be_stepped_through() {
    let page = Scene::new().page(5);
    let frames: Vec<&str> = page.split("<input type=\"radio\" name=\"frame\"").collect();
    let (_, frames) = frames.split_first().expect("a beginning");
    let shown = |frame: &str| {
        let label = frame
            .split("<label")
            .nth(1)
            .and_then(|rest| rest.split('<').next());
        let label = label.and_then(|label| label.split_once(' ')?.1.split_once(' '));
        let screens = ["at work", "May I?", "no more"];
        let screen = screens.into_iter().find(|text| frame.contains(text));
        (label.map(|(_, what)| what.to_owned()), screen)
    };
    let steps: Vec<_> = frames.iter().map(|frame| shown(frame)).collect();
    let expected = [
        ("asks Bash", "May I?"),
        ("confirming", "May I?"),
        ("the moment", "May I?"),
        ("dialog gone", "no more"),
    ];
    let expected = expected.map(|(what, screen)| (Some(what.to_owned()), Some(screen)));
    assert_eq!(steps, expected, "{page}");
}

#[test]
fn nothing_on_the_page_acts_and_secrets_are_masked() {
    let page = Scene::new().page(5);
    assert!(
        !page.contains("<script") && !page.contains("abcdefgh12345"),
        "{page}"
    );
    assert!(
        !page.contains('\u{202e}') && page.contains("&lt;script&gt;alert(1)"),
        "{page}"
    );
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert_eq!(page.matches(policy).count(), 1, "{page}");
    // The name of the pictures' format, which nobody fetches.
    assert_eq!(
        page.matches("http:").count() + page.matches("https:").count(),
        page.matches("<svg xmlns=\"http:").count(),
        "{page}"
    );
    for active in [" src=", " href=", " onload=", " style=", "<iframe", "<form"] {
        assert!(!page.contains(active), "{active}: {page}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let scene = Scene::new();
    let page = scene.page(5);
    assert!(page.contains("The audit can't be read"), "{page}");
    let early = scene.page(-3600);
    assert!(
        early.contains("no recording of that time is kept"),
        "{early}"
    );
    let file = scene.link(5, &["-o", "x.html"]).exits(0);
    assert_eq!(
        (file.stdout.as_str(), file.stderr.as_str()),
        ("", "the page is in x.html\n")
    );
    assert!(scene.home.path("x.html").exists());
    scene
        .home
        .run(&["link", "nobody", "-c", "slots.toml", "--at", "1m"])
        .exits(2);
    scene.audited();
    let audit = scene.home.path("logs/audit.jsonl");
    let lines = std::fs::read_to_string(&audit).unwrap();
    std::fs::write(&audit, lines.replace("another", "this")).unwrap();
    let broken = scene.page(5);
    assert!(
        broken.contains("class=\"bad\">The chain of the audit is broken"),
        "{broken}"
    );
}
