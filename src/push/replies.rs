//! Replies from the reply topic of ntfy: a stream that the daemon keeps open to the server, so that it needs no open
//! port.

use super::http::HttpClient;
use super::{Failing, PushError};
use crate::core::settings::NtfyConfig;
use crate::core::text::hidden::Hidden;
use serde::Deserialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// The maximum of queued replies; each is a code of 20 characters.
const MAX_REPLIES: usize = 16;
/// The maximum characters of a reply; a longer one is not a code.
const MAX_REPLY: usize = 64;
/// The pause before a new connection; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The interval at which it is checked again who can read the topic, while the server sends lines.
const LOOK_AGAIN: Duration = Duration::from_secs(10 * 60);

/// The keys under which a failure is shown.
const STREAM: &str = "ntfy replies";
const PRIVATE: &str = "ntfy answers";

/// The open stream. It ends when this is dropped, at the next line or the next pause.
#[derive(Debug)]
pub struct Replies {
    codes: mpsc::Receiver<String>,
    is_private: Arc<AtomicBool>,
    /// Dropping this ends the thread's pauses.
    _stop: Sender<()>,
}

impl Replies {
    /// `None` if no reply topic is configured.
    pub fn start(
        config: &NtfyConfig,
        failing: watch::Sender<Failing>,
    ) -> io::Result<Option<Replies>> {
        // Removes the failures of an earlier stream.
        failing.send_if_modified(|failing| {
            failing.remove(STREAM).is_some() | failing.remove(PRIVATE).is_some()
        });
        let Some(reply) = config.reply_url() else {
            return Ok(None);
        };
        let (codes, received) = mpsc::channel(MAX_REPLIES);
        let (stop, stopped) = channel();
        let is_private = Arc::new(AtomicBool::new(false));
        let stream = ReplyStream {
            agent: HttpClient::new(),
            reply,
            topic: config.url.clone(),
            token: config.token.clone(),
            allows: config.allows(),
            codes,
            stopped,
            is_private: is_private.clone(),
            failing,
            began: Instant::now(),
            last: None,
            looked: None,
        };
        std::thread::Builder::new()
            .name("notify-replies".to_owned())
            .spawn(move || stream.run())?;
        Ok(Some(Replies {
            codes: received,
            is_private,
            _stop: stop,
        }))
    }

    /// The next reply.
    pub async fn next(&mut self) -> Option<String> {
        self.codes.recv().await
    }

    /// Tells whether only readers that the server knows can read the topic: neither a reader without a token nor one
    /// with the token in slots.toml, which every program of this user can read.
    pub fn topic_is_private(&self) -> bool {
        self.is_private.load(Ordering::SeqCst)
    }
}

/// A line of the stream.
#[derive(Debug, Deserialize)]
struct NtfyLine {
    id: String,
    event: String,
    #[serde(default)]
    message: String,
}

struct ReplyStream {
    agent: HttpClient,
    reply: Hidden,
    topic: Hidden,
    token: Option<Hidden>,
    allows: bool,
    codes: mpsc::Sender<String>,
    stopped: Receiver<()>,
    is_private: Arc<AtomicBool>,
    failing: watch::Sender<Failing>,
    began: Instant,
    /// The id of the last message.
    last: Option<String>,
    looked: Option<Instant>,
}

impl ReplyStream {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            self.look_who_reads();
            let began = Instant::now();
            let error = self.hear();
            if self.codes.is_closed() {
                break;
            }
            if began.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            if let Some(error) = error {
                let text = format!("the replies of ntfy are not received: {}", error.text);
                self.note(STREAM, Some(text));
            }
            match self.stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Receives replies until the server ends the stream. The server keeps replies that came while there was no stream;
    /// they come first.
    fn hear(&mut self) -> Option<PushError> {
        let since = match &self.last {
            Some(id) => id.clone(),
            // Relative to the server's clock.
            None => format!("{}s", self.began.elapsed().as_secs() + 1),
        };
        let url = Hidden::new(format!("{}/json?since={since}", self.reply.reveal()));
        let lines = self.agent.lines(&url, self.token.as_ref());
        let lines = match lines {
            Ok(lines) => lines,
            Err(error) => return Some(error),
        };
        for line in lines {
            match line {
                Ok(line) => self.take(&line)?,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Takes a line; `None` if the receiver is gone.
    fn take(&mut self, line: &str) -> Option<()> {
        // Lines of other kinds are ignored.
        let Ok(line) = serde_json::from_str::<NtfyLine>(line) else {
            return Some(());
        };
        self.note(STREAM, None);
        if self
            .looked
            .is_none_or(|looked| looked.elapsed() > LOOK_AGAIN)
        {
            self.look_who_reads();
        }
        if line.event == "message" && self.last.as_ref() != Some(&line.id) {
            self.last = Some(line.id);
            let text = line.message.chars().take(MAX_REPLY).collect();
            return self.codes.blocking_send(text).ok();
        }
        (!self.codes.is_closed()).then_some(())
    }

    /// Checks who can read the topic. A button for yes is offered only if its code is safe from programs that can read
    /// slots.toml.
    fn look_who_reads(&mut self) {
        if !self.allows {
            return;
        }
        self.looked = Some(Instant::now());
        let url = Hidden::new(format!("{}/json?poll=1&since=1s", self.topic.reveal()));
        let own = self.token.as_ref();
        let refused = |token| self.agent.is_refused(&url, token);
        let private = refused(None).and_then(|anybody| Ok(anybody && refused(own)?));
        self.is_private.store(private == Ok(true), Ordering::SeqCst);
        let text = match private {
            Ok(true) => None,
            Ok(false) => Some("`answers = \"allow\"` is not in force: the topic of ntfy can be read without a token or with the one in slots.toml; give that token write access only".to_owned()),
            Err(error) => Some(format!("`answers = \"allow\"` is not in force: it is unknown who can read the topic of ntfy: {}", error.text)),
        };
        self.note(PRIVATE, text);
    }

    fn note(&self, key: &'static str, text: Option<String>) {
        if self.codes.is_closed() {
            // Another stream may have replaced this one.
            return;
        }
        let is_new = self.failing.send_if_modified(|failing| match &text {
            Some(text) => failing.insert(key, text.clone()).as_ref() != Some(text),
            None => failing.remove(key).is_some(),
        });
        if let Some(text) = text.filter(|_| is_new) {
            tracing::warn!("[notify] {text}");
        }
    }
}
