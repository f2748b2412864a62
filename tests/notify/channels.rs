//! Who is called, when, and what of it leaves the machine.

use super::stand_in::{Reply, Request, Server};
use super::{ask, calls_by, coder, everything_written};
use crate::support::until;
use chrono::{Local, TimeDelta};
use serde_json::Value;
use std::fs;

/// What was posted about an ask, by its state.
fn states(server: &Server) -> Vec<Value> {
    let requests = server.requests();
    requests
        .iter()
        .map(|one| one.json()["state"].clone())
        .collect()
}

#[test]
fn an_ask_is_told_once_by_each_channel_and_then_who_has_answered_it() {
    let (webhook, ntfy, slack) = (Server::taking(), Server::taking(), Server::taking());
    let daemon = coder(&format!(
        "[notify]\nnotify_after = \"10ms\"\nlink = \"https://box.example.org/\"\n\
         [notify.webhook]\nurl = \"{}\"\ntoken = \"hook-token-1\"\n\
         [notify.ntfy]\nurl = \"{}\"\ntoken = \"tk_ntfytoken2\"\n\
         [notify.slack]\nurl = \"{}\"\n",
        webhook.url("/hidden-path-3"),
        ntfy.url("/topic-hidden-4"),
        slack.url("/services/hidden5"),
    ));
    let dialog = ask(&daemon);
    let asked = webhook.wait_for("the message", |_| true);
    let line = (asked.method.as_str(), asked.path.as_str());
    assert_eq!(line, ("POST", "/hidden-path-3"));
    assert_eq!(asked.token(), Some("hook-token-1"));
    let told = asked.json();
    assert_eq!(told["state"], "waits", "{told}");
    assert_eq!(told["slot"], "coder");
    assert_eq!(told["request"]["dialog"], dialog["id"], "{told}");
    assert_eq!(told["request"]["whole"], true, "{told}");
    let request = told["request"]["text"].as_str().expect("a text");
    assert!(request.starts_with("Bash\n./deploy.sh"), "{told}");
    let message = ntfy.wait_for("the message", |_| true);
    assert_eq!(
        (message.path.as_str(), message.token()),
        ("/", Some("tk_ntfytoken2"))
    );
    let message = message.json();
    assert_eq!(message["topic"], "topic-hidden-4", "{message}");
    assert_eq!(message["click"], "https://box.example.org/", "{message}");
    let text = slack.wait_for("the message", |_| true).json();
    let text = text["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("coder asks you\nBash\n./deploy.sh"), "{text}");

    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    let answered = |request: &Request| request.body.contains("answered");
    let end = webhook.wait_for("the answer", answered).json();
    assert_eq!(
        (&end["id"], &end["state"]),
        (&told["id"], &"answered".into())
    );
    assert_eq!(
        (&end["answer"], &end["by"]),
        (&"yes".into(), &"cli confirm".into())
    );
    let end = ntfy.wait_for("the answer", answered).json();
    assert_eq!(end["sequence_id"], message["sequence_id"]);
    assert_eq!(end["priority"], 2, "{end}");
    let said = slack.wait_for("the answer", answered).body;
    assert!(said.contains("answered: yes, by cli confirm"), "{said}");
    assert_eq!(states(&webhook), ["waits", "answered"]);

    // Nothing that was written or is shown names an address or a token.
    let shown = daemon.cmd(&["config", "show"]).expect(0).stdout;
    assert!(shown.contains("[notify.ntfy]"), "{shown}");
    let written = everything_written(&daemon) + &shown;
    for secret in [
        "hook-token-1",
        "tk_ntfytoken2",
        "hidden-path-3",
        "hidden-4",
        "hidden5",
    ] {
        assert!(!written.contains(secret), "{secret} was written");
    }
}

#[test]
fn an_ask_that_is_answered_in_time_gives_no_message() {
    let webhook = Server::taking();
    let daemon = coder(&calls_by(&webhook, "1h", ""));
    ask(&daemon);
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
    let tested = daemon.json(&["notify", "test"]);
    assert_eq!(tested[0]["channel"], "webhook", "{tested}");
    assert_eq!(tested[0]["ok"], true, "{tested}");
    // What came before would have been sent before.
    let requests = webhook.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0].json()["state"], "test");
}

#[test]
fn quiet_hours_hold_messages_back_and_tell_what_still_waits_at_their_end() {
    let webhook = Server::taking();
    let hour = |hours| (Local::now() + TimeDelta::hours(hours)).format("%H:%M");
    let quiet = format!("quiet = \"{}-{}\"\n", hour(-2), hour(4));
    let daemon = coder(&calls_by(&webhook, "10ms", &quiet));
    ask(&daemon);
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
    let dialog = ask(&daemon);
    daemon.cmd(&["notify", "test"]).expect(0);
    assert_eq!(states(&webhook).len(), 1, "the test alone");
    let file = daemon.config();
    let config = fs::read_to_string(&file).expect("the config");
    fs::write(&file, config.replace(&quiet, "")).expect("the config");
    daemon.cmd(&["reload"]).expect(0);
    let told = webhook.wait_for("what still waits", |one| one.json()["event"] == "waits");
    assert_eq!(told.json()["request"]["dialog"], dialog["id"]);
    assert_eq!(states(&webhook).len(), 2, "the other one was answered");
}

/// An address leads only where slots.toml says; and a failure is shown without it.
#[test]
fn a_redirect_is_not_followed_and_a_failure_is_in_the_status_until_it_is_over() {
    let elsewhere = Server::taking();
    let to = elsewhere.url("/latest/meta-data");
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_broken = broken.clone();
    let webhook = Server::start(move |_, _| {
        let reply = match is_broken.load(std::sync::atomic::Ordering::SeqCst) {
            true => Reply {
                header: format!("Location: {to}\r\n"),
                ..Reply::with("307 Temporary Redirect", "")
            },
            false => Reply::ok(""),
        };
        Some(reply)
    });
    let daemon = coder(&calls_by(&webhook, "1h", ""));
    let tested = daemon.cmd(&["notify", "test", "--json"]).expect(1);
    let said = &tested.json()[0];
    assert_eq!(said["ok"], false, "{tested}");
    let error = said["error"].as_str().expect("an error");
    assert!(
        error.contains("307, a redirect, which is not followed"),
        "{error}"
    );
    assert_eq!(webhook.requests().len(), 1);
    assert!(elsewhere.requests().is_empty());
    let shows = |words: &str| {
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        let doctor = daemon.cmd(&["doctor"]).stdout;
        (status.contains(words), doctor.contains(words))
    };
    let words = "a message of [notify] by webhook did not arrive";
    until("the failure in status and doctor", || {
        (shows(words) == (true, true)).then_some(())
    });
    assert!(!everything_written(&daemon).contains("hidden-path"));
    broken.store(false, std::sync::atomic::Ordering::SeqCst);
    daemon.cmd(&["notify", "test"]).expect(0);
    until("its end in status and doctor", || {
        (shows(words) == (false, false)).then_some(())
    });
}

#[test]
fn a_test_without_a_channel_is_wrong_usage() {
    let daemon = coder("");
    let said = daemon.cmd(&["notify", "test"]).expect(2);
    assert!(said.stderr.contains("no channel in [notify]"), "{said}");
}
