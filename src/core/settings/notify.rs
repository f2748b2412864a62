//! `[notify]`: by which channels a person is called, and when.

use super::supervision::{TIMES, time_or_off};
use super::table::Table;
use crate::core::text::hidden::Hidden;
use ::core::net::IpAddr;
use chrono::{NaiveTime, Timelike};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// How a person is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotifyConfig {
    /// The program that calls a person, and its arguments.
    pub command: Vec<String>,
    /// How long a slot waits for a person before missiond calls one.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    pub notify_after: Option<Duration>,
    /// Hours in which nobody is called, in local time, such as `22:00-07:00`. What still waits at their end is told then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub quiet: Option<QuietHours>,
    /// The address of your page, as a link in the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// An HTTP server that gets each message as a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookConfig>,
    /// A topic of an ntfy server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntfy: Option<NtfyConfig>,
    /// An incoming webhook of Slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<SlackConfig>,
}

/// `[notify.webhook]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookConfig {
    /// Where each message is posted to.
    pub url: Hidden,
    /// Sent as `Authorization: Bearer …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Hidden")]
    pub token: Option<Hidden>,
}

/// `[notify.ntfy]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NtfyConfig {
    /// The address of the topic, such as `https://ntfy.example.org/TOPIC`.
    pub url: Hidden,
    /// The access token of a user of that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Hidden")]
    pub token: Option<Hidden>,
    /// Another topic of that server, to which the buttons of a message post your answer. Without it there are no buttons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Hidden")]
    pub reply: Option<Hidden>,
    /// Which answers the buttons give.
    pub answers: RemoteAnswers,
    /// Accept `answers = "allow"` on ntfy.sh, whose owners see every message.
    pub public_server: bool,
}

/// Which answers can be given by the buttons of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteAnswers {
    /// A no.
    #[default]
    Deny,
    /// Also a yes for this once, if the message has the whole request and nobody else can read the topic.
    Allow,
}

const ANSWERS: &[(&str, RemoteAnswers)] = &[
    ("deny", RemoteAnswers::Deny),
    ("allow", RemoteAnswers::Allow),
];

/// `[notify.slack]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlackConfig {
    /// The address of the incoming webhook.
    pub url: Hidden,
}

/// The keys whose values no error shows.
pub(crate) const HIDDEN_KEYS: &[&str] = &["url", "token", "reply"];

/// No address or token is longer.
const LONGEST: usize = 2048;

impl Default for NotifyConfig {
    fn default() -> NotifyConfig {
        NotifyConfig {
            command: Vec::new(),
            notify_after: Some(Duration::from_secs(60)),
            quiet: None,
            link: None,
            webhook: None,
            ntfy: None,
            slack: None,
        }
    }
}

impl NotifyConfig {
    /// Reads all keys but `command`, which is checked like every other command.
    pub(super) fn read(table: &mut Table<'_, '_>) -> NotifyConfig {
        let after = table.duration_or_off("notify_after", TIMES);
        let default = NotifyConfig::default();
        NotifyConfig {
            command: Vec::new(),
            notify_after: after.map_or(default.notify_after, Spanned::into_inner),
            quiet: quiet(table),
            link: address(table, "link").map(|link| link.reveal().to_owned()),
            webhook: table.table("webhook", "[notify.webhook]", |table, at| {
                let (url, token) = (required(table, at), token(table));
                Some(WebhookConfig { url: url?, token })
            }),
            ntfy: table.table("ntfy", "[notify.ntfy]", ntfy),
            slack: table.table("slack", "[notify.slack]", |table, at| {
                let url = required(table, at)?;
                Some(SlackConfig { url })
            }),
        }
    }
}

fn ntfy(table: &mut Table<'_, '_>, at: Range<usize>) -> Option<NtfyConfig> {
    let (url, token) = (required(table, at.clone()), token(table));
    let (reply, answers) = (table.string("reply"), table.word("answers", ANSWERS));
    let public_server = table.flag("public_server");
    let config = NtfyConfig {
        url: url?,
        token,
        reply: reply.clone().map(|reply| Hidden::new(reply.into_inner())),
        answers: answers.clone().map(Spanned::into_inner).unwrap_or_default(),
        public_server: public_server.map(Spanned::into_inner).unwrap_or_default(),
    };
    if !is_topic(config.topic()) {
        let label = "the address ends with the topic: https://HOST/TOPIC, with letters, digits, `_` and `-`";
        table.fault(at, "no topic in `url`", label);
        return None;
    }
    let is_other = |reply: &str| is_topic(reply) && reply != config.topic();
    if let Some(reply) = reply.filter(|reply| !is_other(reply.get_ref())) {
        let label = "the name of another topic of the same server";
        table.fault(reply.span(), "bad `reply`", label);
    }
    if let Some((answers, why)) = answers.and_then(|answers| Some((answers, config.no_answers()?)))
    {
        table.fault(answers.span(), "answers that can't be given", why);
    }
    Some(config)
}

impl NtfyConfig {
    /// Why `answers` can't be as it is.
    fn no_answers(&self) -> Option<&'static str> {
        let (_, rest) = self.url.reveal().split_once("://").unwrap_or_default();
        let host = host_of(rest).to_ascii_lowercase();
        let is_public = host == "ntfy.sh" || host.ends_with(".ntfy.sh");
        match self.answers {
            _ if self.reply.is_none() => {
                Some("add: reply = \"…\", another topic of the same server")
            }
            RemoteAnswers::Allow if is_public && !self.public_server => Some(
                "everything in a message passes the server of ntfy.sh: use a server of your own, or add public_server = true",
            ),
            RemoteAnswers::Allow | RemoteAnswers::Deny => None,
        }
    }

    /// Whether a yes may be offered, if all else is right.
    pub fn allows(&self) -> bool {
        self.reply.is_some() && self.answers == RemoteAnswers::Allow
    }

    /// The address of the reply topic.
    pub fn reply_url(&self) -> Option<Hidden> {
        let reply = self.reply.as_ref()?.reveal();
        Some(Hidden::new(format!("{}{reply}", self.server().reveal())))
    }

    /// The last part of the address.
    pub fn topic(&self) -> &str {
        let url = self.url.reveal().trim_end_matches('/');
        // Behind the scheme there is the host first.
        let (_, behind) = url.split_once("://").unwrap_or_default();
        behind.rsplit_once('/').map_or("", |(_, topic)| topic)
    }

    /// The server, at which messages are published as JSON.
    pub fn server(&self) -> Hidden {
        let url = self.url.reveal().trim_end_matches('/');
        Hidden::new(url.strip_suffix(self.topic()).unwrap_or(url))
    }
}

/// The names of topics, as ntfy has them.
fn is_topic(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

fn required(table: &mut Table<'_, '_>, at: Range<usize>) -> Option<Hidden> {
    if !table.has("url") {
        table.fault(at, "channel without a `url`", "add: url = \"https://…\"");
    }
    address(table, "url")
}

/// An address that may be called. No fault shows it.
fn address(table: &mut Table<'_, '_>, key: &'static str) -> Option<Hidden> {
    let url = table.string(key)?;
    if let Some(why) = fault_in(url.get_ref()) {
        table.fault(url.span(), format!("bad `{key}`"), why);
        return None;
    }
    Some(Hidden::new(url.into_inner()))
}

fn fault_in(url: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}#".contains(c);
    if url.len() > LONGEST || !url.chars().all(is_plain) {
        return Some("an address has no spaces and no `#`, and at most 2048 characters of ASCII");
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let host = host_of(rest);
    match scheme {
        _ if rest
            .split('/')
            .next()
            .is_some_and(|host| host.contains('@')) =>
        {
            Some("write no name or password into the address: use `token`")
        }
        "https" | "http" if host.is_empty() => Some("the address has no host"),
        "https" => None,
        "http" if is_near(host) => None,
        "http" => Some(
            "`http` shows everything to the network: use https. `http` is for localhost and private addresses, such as 192.168.1.2",
        ),
        _ => Some("an address begins with https://"),
    }
}

/// The host, without a port.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(literal) => literal.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// This machine, or an address of a private network.
fn is_near(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// It becomes the value of a header.
fn token(table: &mut Table<'_, '_>) -> Option<Hidden> {
    let token = table.string("token")?;
    let text = token.get_ref();
    if text.is_empty() || text.len() > LONGEST || !text.chars().all(|c| c.is_ascii_graphic()) {
        let label = "a token has no spaces, and at most 2048 characters of ASCII";
        table.fault(token.span(), "bad `token`", label);
        return None;
    }
    Some(Hidden::new(token.into_inner()))
}

fn quiet(table: &mut Table<'_, '_>) -> Option<QuietHours> {
    let text = table.string("quiet")?;
    let hours = QuietHours::parse(text.get_ref());
    if hours.is_none() {
        let label = "`quiet` takes two times of day, such as \"22:00-07:00\"";
        table.fault(text.span(), "bad hours", label);
    }
    hours
}

/// Hours of the day, perhaps over midnight, in minutes since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u32,
    to: u32,
}

const DAY: u32 = 24 * 60;

impl QuietHours {
    fn parse(text: &str) -> Option<QuietHours> {
        let (from, to) = text.split_once('-')?;
        let minutes = |text: &str| {
            let time = NaiveTime::parse_from_str(text.trim(), "%H:%M").ok()?;
            Some(time.hour() * 60 + time.minute())
        };
        let (from, to) = (minutes(from)?, minutes(to)?);
        (from != to).then_some(QuietHours { from, to })
    }

    /// How long they go on from this time of day; `None` outside of them.
    pub fn left(self, now: NaiveTime) -> Option<Duration> {
        let since_start = (now.hour() * 60 + now.minute() + DAY - self.from) % DAY;
        let length = (self.to + DAY - self.from) % DAY;
        let minutes = length.checked_sub(since_start).filter(|left| *left > 0)?;
        let left = Duration::from_secs(u64::from(minutes) * 60);
        Some(left - Duration::from_secs(u64::from(now.second())))
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuietHours { from, to } = self;
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl Serialize for QuietHours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_go_over_midnight() {
        let night = QuietHours::parse("22:00-07:00").unwrap();
        assert_eq!(night.to_string(), "22:00-07:00");
        let left = |h, m, s| night.left(NaiveTime::from_hms_opt(h, m, s).unwrap());
        assert_eq!(left(21, 59, 59), None);
        assert_eq!(left(22, 0, 0), Some(Duration::from_secs(9 * 3600)));
        assert_eq!(left(0, 0, 30), Some(Duration::from_secs(7 * 3600 - 30)));
        assert_eq!(left(6, 59, 59), Some(Duration::from_secs(1)));
        assert_eq!(left(7, 0, 0), None);
        let noon = QuietHours::parse("12:00 - 13:30").unwrap();
        assert_eq!(noon.left(NaiveTime::from_hms_opt(13, 30, 0).unwrap()), None);
        assert!(
            noon.left(NaiveTime::from_hms_opt(13, 29, 0).unwrap())
                .is_some()
        );
        for bad in ["", "22-7", "22:00", "22:00-22:00", "25:00-07:00"] {
            assert_eq!(QuietHours::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_address_is_encrypted_unless_it_is_near_and_names_nobody() {
        for good in [
            "https://ntfy.example.org/topic",
            "http://localhost:8080/a?b=c",
            "http://127.0.0.1/x",
            "http://[::1]:80/x",
            "http://192.168.1.7/x",
        ] {
            assert_eq!(fault_in(good), None, "{good}");
        }
        for bad in [
            "",
            "ntfy.example.org/topic",
            "http://ntfy.example.org/topic",
            "http://169.254.169.254/latest",
            "https://",
            "https:///x",
            "https://me:pass@host/x",
            "https://host/a b",
            "https://host/a#b",
            "file:///etc/passwd",
        ] {
            assert!(fault_in(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn the_topic_is_the_last_part_of_the_address() {
        let ntfy = |url: &str| NtfyConfig {
            url: Hidden::new(url),
            token: None,
            reply: None,
            answers: RemoteAnswers::Deny,
            public_server: false,
        };
        let config = ntfy("https://ntfy.example.org/my-topic/");
        assert_eq!(config.topic(), "my-topic");
        assert_eq!(config.server().reveal(), "https://ntfy.example.org/");
        assert!(!is_topic(ntfy("https://ntfy.example.org").topic()));
        assert!(!is_topic(ntfy("https://ntfy.example.org/a?b").topic()));
    }
}
