//! A client of `missiond web` that sends just the bytes that a test wants.

use crate::support::daemon::Daemon;
use crate::support::run::Running;
use crate::support::until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No answer takes longer, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Web {
    running: Running,
    pub port: u16,
    pub code: String,
}

/// An answer, once its connection has closed.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            // A connection that was closed without an answer has no status.
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The message of an error.
    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Web {
    pub fn start(daemon: &Daemon, scope: &str) -> Web {
        let running = daemon.spawn(&["web", "--port", "0", "--scope", scope, "--json"]);
        let told: Value = until("the address of the page", || {
            serde_json::from_str(&running.printed()).ok()
        });
        let address = told["address"].as_str().expect("an address");
        let port = address
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        Web {
            running,
            port: port.expect("a port"),
            code: told["code"].as_str().expect("a code").to_owned(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Its own name for itself.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Sends these bytes, and reads until the server closes.
    #[track_caller]
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has refused already may have closed.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            match stream.read(&mut buffer) {
                Ok(count @ 1..) => answer.extend_from_slice(&buffer[..count]),
                Ok(0) => break,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                other => panic!("{other:?} after {:?}", Answer::parse(&answer)),
            }
        }
        Answer::parse(&answer)
    }

    /// A request with these lines in its head, beside what every request has.
    #[track_caller]
    pub fn request(&self, line: &str, head: &[&str], body: &str) -> Answer {
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for entry in head {
            text += &format!("{entry}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    /// A token for the code, which is used up.
    #[track_caller]
    pub fn token(&self) -> String {
        let body = json!({ "code": self.code }).to_string();
        let answer = self.post("session", None, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let token = answer.json()["token"].as_str().map(str::to_owned);
        token.expect("a token")
    }

    /// A request as an honest program sends it.
    #[track_caller]
    pub fn post(&self, name: &str, token: Option<&str>, body: &str) -> Answer {
        let host = format!("Host: {}", self.host());
        let token = token.map(|token| format!("Authorization: Bearer {token}"));
        let mut head = vec![host.as_str(), "Content-Type: application/json"];
        head.extend(token.as_deref());
        self.request(&format!("POST /api/{name}"), &head, body)
    }

    #[track_caller]
    pub fn get(&self, path: &str, token: Option<&str>) -> Answer {
        let host = format!("Host: {}", self.host());
        let token = token.map(|token| format!("Authorization: Bearer {token}"));
        let mut head = vec![host.as_str()];
        head.extend(token.as_deref());
        self.request(&format!("GET {path}"), &head, "")
    }
}
