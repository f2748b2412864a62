//! An alert as each channel wants it: a JSON object for a webhook, a message for ntfy, a text for Slack.

use super::{Alert, AlertState};
use crate::core::settings::{NotifyConfig, NtfyConfig};
use crate::core::text::excerpt;
use crate::core::text::hidden::Hidden;
use serde::Serialize;
use serde_json::{Value, json};

/// A longer message would become an attachment at ntfy: its limit is 4096 bytes.
const MAX_NTFY: usize = 4000;

/// The event of a message that needs nobody.
const TEST: &str = "test";

/// ntfy's priorities, from 1 to 5.
const HIGH: u8 = 4;
const LOW: u8 = 2;

/// A channel that speaks HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Webhook,
    Ntfy,
    Slack,
}

impl Channel {
    pub const ALL: [Channel; 3] = [Channel::Webhook, Channel::Ntfy, Channel::Slack];

    /// Its name in slots.toml.
    pub fn word(self) -> &'static str {
        match self {
            Channel::Webhook => "webhook",
            Channel::Ntfy => "ntfy",
            Channel::Slack => "slack",
        }
    }
}

/// A JSON object, and where it is posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    pub channel: Channel,
    /// The alert that it is about.
    pub about: String,
    /// It says that the alert needs nobody any more.
    pub is_end: bool,
    pub url: Hidden,
    pub token: Option<Hidden>,
    /// JSON.
    pub body: Hidden,
}

/// The codes behind the buttons of a message to ntfy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buttons {
    pub deny: Option<Hidden>,
    pub allow: Option<Hidden>,
}

impl Post {
    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        let token = self.token.as_ref().map_or(0, |token| token.reveal().len());
        self.about.len() + self.url.reveal().len() + token + self.body.reveal().len()
    }
}

/// The messages about an alert, one for each channel that is configured.
pub fn posts(config: &NotifyConfig, alert: &Alert, buttons: &Buttons) -> Vec<Post> {
    let link = config.link.as_deref();
    let post = |channel, url: Hidden, token: Option<&Hidden>, body: Value| Post {
        channel,
        about: alert.id.clone(),
        is_end: alert.state != AlertState::Waits,
        url,
        token: token.cloned(),
        body: Hidden::new(body.to_string()),
    };
    let webhook = config.webhook.iter().map(|to| {
        let (url, token) = (to.url.clone(), to.token.as_ref());
        post(Channel::Webhook, url, token, object(alert, link))
    });
    let ntfy = config.ntfy.iter().map(|to| {
        let (url, token) = (to.server(), to.token.as_ref());
        post(
            Channel::Ntfy,
            url,
            token,
            for_ntfy(to, alert, link, buttons),
        )
    });
    let slack = config.slack.iter().map(|to| {
        let body = for_slack(alert, link);
        post(Channel::Slack, to.url.clone(), None, body)
    });
    webhook.chain(ntfy).chain(slack).collect()
}

/// A message that needs nobody, to see whether it arrives.
pub fn test_alert() -> Alert {
    let text = "This is a test of missiond's notifications. Nothing waits for you.";
    Alert::new("missiond", TEST, TEST, text)
}

fn object(alert: &Alert, link: Option<&str>) -> Value {
    let (answer, by) = match &alert.state {
        AlertState::Answered { answer, via } => (Some(*answer), Some(via.as_str())),
        AlertState::Waits | AlertState::Gone => (None, None),
    };
    let request = alert.request.as_ref().map(|request| {
        json!({
            "dialog": request.dialog,
            "kind": request.kind,
            "text": request.text,
            "whole": request.whole,
            "why": request.why,
        })
    });
    json!({
        "id": alert.id,
        "state": match alert.event == TEST {
            true => TEST,
            false => alert.state.word(),
        },
        "event": alert.event,
        "slot": alert.slot,
        "text": alert.text,
        "request": request,
        "answer": answer,
        "by": by,
        "link": link,
    })
}

/// A message with the same `sequence_id` replaces the one before; an older server shows it beside that.
fn for_ntfy(to: &NtfyConfig, alert: &Alert, link: Option<&str>, buttons: &Buttons) -> Value {
    let (priority, tag) = match alert.state {
        AlertState::Waits => (HIGH, "bell"),
        AlertState::Answered { .. } | AlertState::Gone => (LOW, "heavy_check_mark"),
    };
    let mut message = json!({
        "topic": to.topic(),
        "title": title(alert),
        "message": excerpt::head(&body(alert), MAX_NTFY),
        "priority": priority,
        "tags": [tag],
        "sequence_id": alert.id,
    });
    if let Some(link) = link {
        message["click"] = json!(link);
    }
    if alert.state == AlertState::Waits {
        message["actions"] = json!(actions(to, link, buttons));
    }
    message
}

/// At most three, as ntfy takes them. A button posts its code to the reply topic, and nothing else.
fn actions(to: &NtfyConfig, link: Option<&str>, buttons: &Buttons) -> Vec<Value> {
    let button = |label: &str, code: &Option<Hidden>| {
        Some(json!({
            "action": "http",
            "label": label,
            "url": to.reply_url()?.reveal(),
            "method": "POST",
            "body": code.as_ref()?.reveal(),
            "clear": true,
        }))
    };
    let open = link.map(|link| json!({"action": "view", "label": "Open", "url": link}));
    let deny = button("Deny", &buttons.deny);
    let allow = button("Allow once", &buttons.allow);
    [deny, open, allow].into_iter().flatten().collect()
}

/// What became of an answer that came from ntfy, if not what was meant.
pub fn note_post(config: &NotifyConfig, slot: &str, text: &str) -> Option<Post> {
    let to = config.ntfy.as_ref()?;
    let text = super::bounded(text);
    let body = json!({
        "topic": to.topic(),
        "title": format!("{slot}: your answer was not given"),
        "message": excerpt::head(&text, MAX_NTFY),
        "priority": LOW,
    });
    Some(Post {
        channel: Channel::Ntfy,
        about: slot.to_owned(),
        is_end: false,
        url: to.server(),
        token: to.token.clone(),
        body: Hidden::new(body.to_string()),
    })
}

/// Plain text: nothing in it becomes a mention or a picture.
fn for_slack(alert: &Alert, link: Option<&str>) -> Value {
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;");
        text.replace('<', "&lt;").replace('>', "&gt;")
    };
    let text = format!("{}\n{}", title(alert), body(alert));
    let link = link.map(|link| format!("\n{link}")).unwrap_or_default();
    json!({
        "text": format!("{}{link}", escaped(&text)),
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

fn title(alert: &Alert) -> String {
    let slot = &alert.slot;
    match alert.event.as_str() {
        TEST => "missiond: a test".to_owned(),
        "waits" => format!("{slot} asks you"),
        "doubtful" => format!("{slot}: look at its screen"),
        "gave_up" => format!("{slot} was given up"),
        trouble => format!("{slot}: {trouble}"),
    }
}

fn body(alert: &Alert) -> String {
    if let Some(story) = alert.state.story() {
        return format!("{story}\n{}", alert.text);
    }
    let Some(request) = &alert.request else {
        return alert.text.clone();
    };
    let part = match request.whole {
        true => "",
        false => "\n(not the whole request)",
    };
    let why = request.why.as_ref();
    let why = why.map(|why| format!("\n\nno rule answers it: {why}"));
    format!("{}{part}{}", request.text, why.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tests::permission;
    use super::*;
    use crate::core::settings::{RemoteAnswers, SlackConfig, WebhookConfig};

    fn config() -> NotifyConfig {
        NotifyConfig {
            link: Some("https://box.example.org/".into()),
            webhook: Some(WebhookConfig {
                url: Hidden::new("https://hooks.example.org/1"),
                token: Some(Hidden::new("secret")),
            }),
            ntfy: Some(NtfyConfig {
                url: Hidden::new("https://ntfy.example.org/topic"),
                token: None,
                reply: Some(Hidden::new("replies")),
                answers: RemoteAnswers::Allow,
                public_server: false,
            }),
            slack: Some(SlackConfig {
                url: Hidden::new("https://slack.example.org/2"),
            }),
            ..NotifyConfig::default()
        }
    }

    fn bodies(alert: &Alert) -> Vec<Value> {
        let posts = posts(&config(), alert, &Buttons::default());
        let bodies = posts
            .iter()
            .map(|post| serde_json::from_str(post.body.reveal()));
        bodies.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn an_ask_and_its_answer_have_the_same_id_on_each_channel() {
        let mut alert = Alert::of_dialog("coder", &permission("make <!channel>"));
        let asked = bodies(&alert);
        assert_eq!(asked[0]["state"], "waits");
        assert_eq!(asked[0]["request"]["whole"], true);
        assert_eq!(asked[1]["topic"], "topic");
        assert_eq!(asked[1]["title"], "coder asks you");
        let text = asked[2]["text"].as_str().unwrap();
        assert!(text.contains("make &lt;!channel&gt;"), "{text}");
        alert.state = AlertState::Answered {
            answer: "yes",
            via: "cli confirm".into(),
        };
        let answered = bodies(&alert);
        assert_eq!(answered[0]["id"], asked[0]["id"]);
        assert_eq!(answered[0]["state"], "answered");
        assert_eq!(answered[0]["answer"], "yes");
        assert_eq!(answered[1]["sequence_id"], asked[1]["sequence_id"]);
        assert_eq!(answered[1]["priority"], LOW);
        for body in &answered[1..] {
            let said = body.to_string();
            assert!(said.contains("answered: yes, by cli confirm"), "{said}");
        }
    }

    #[test]
    fn a_button_posts_its_code_to_the_reply_topic_and_an_end_has_none() {
        let mut alert = Alert::of_dialog("coder", &permission("make"));
        let buttons = Buttons {
            deny: Some(Hidden::new("c1")),
            allow: Some(Hidden::new("c2")),
        };
        let message = |alert: &Alert| {
            let all = posts(&config(), alert, &buttons);
            let post = all.iter().find(|post| post.channel == Channel::Ntfy);
            serde_json::from_str::<Value>(post.unwrap().body.reveal()).unwrap()
        };
        let actions = message(&alert)["actions"].clone();
        let labels: Vec<&Value> = actions
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["label"])
            .collect();
        assert_eq!(labels, ["Deny", "Open", "Allow once"]);
        assert_eq!(actions[0]["url"], "https://ntfy.example.org/replies");
        assert_eq!(
            (&actions[0]["body"], &actions[2]["body"]),
            (&json!("c1"), &json!("c2"))
        );
        alert.state = AlertState::Gone;
        assert!(message(&alert)["actions"].is_null());
    }

    #[test]
    fn the_longest_message_fits_into_one_of_ntfy() {
        let mut alert = Alert::of_dialog("coder", &permission(&"ü".repeat(5000)));
        if let Some(request) = &mut alert.request {
            request.why = Some("ü".repeat(1000));
        }
        let message = &bodies(&alert)[1]["message"];
        let message = message.as_str().unwrap();
        assert!(message.len() <= MAX_NTFY, "{}", message.len());
        assert!(message.contains("(not the whole request)"), "{message}");
    }

    #[test]
    fn no_form_of_a_post_shows_its_address_or_token() {
        let buttons = Buttons {
            deny: Some(Hidden::new("code-1")),
            allow: None,
        };
        let shown = format!("{:?}", posts(&config(), &test_alert(), &buttons));
        for secret in [
            "hooks.example.org",
            "ntfy.example.org",
            "slack.example.org",
            "secret",
            "code-1",
        ] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
