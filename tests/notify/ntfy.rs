//! A stand-in for an ntfy server: topics that are published to as JSON or as plain text, polled and streamed as JSON lines, with
//! access control by token, as its documentation has it.

use super::stand_in::{Reply, Request, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct State {
    /// In the order of their coming, all topics together.
    messages: Vec<Value>,
    /// Those who listen to a topic.
    streams: Vec<(String, TcpStream)>,
}

/// Whether somebody with this token may do this with this topic.
type Access = fn(token: Option<&str>, topic: &str, writes: bool) -> bool;

pub struct Ntfy {
    pub server: Server,
    state: Arc<Mutex<State>>,
}

impl Ntfy {
    pub fn start(access: Access) -> Ntfy {
        let state = Arc::new(Mutex::new(State::default()));
        let own = state.clone();
        let server = Server::start(move |request, stream| answer(&own, access, request, stream));
        Ntfy { server, state }
    }

    /// The messages of a topic.
    pub fn messages(&self, topic: &str) -> Vec<Value> {
        let state = self.state.lock().expect("no panic");
        let all = state.messages.iter();
        all.filter(|one| one["topic"] == topic).cloned().collect()
    }

    /// What a phone does when a button is tapped.
    #[track_caller]
    pub fn tap(&self, button: &Value) {
        assert_eq!(
            (&button["action"], &button["method"]),
            (&json!("http"), &json!("POST"))
        );
        let url = button["url"].as_str().expect("an address");
        self.post(url, button["body"].as_str().expect("a code"));
    }

    /// A message to a topic, from somebody without a token.
    #[track_caller]
    pub fn post(&self, url: &str, body: &str) {
        let (host, topic) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .expect("an address");
        let mut stream = TcpStream::connect(host).expect("the stand-in");
        let length = body.len();
        write!(
            stream,
            "POST /{topic} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("the stand-in reads");
        let mut answer = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut answer).expect("an answer");
        assert!(answer.contains(" 200 "), "{answer}");
    }
}

fn answer(
    state: &Mutex<State>,
    access: Access,
    request: &Request,
    stream: &mut TcpStream,
) -> Option<Reply> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let topic = parts.next().unwrap_or_default();
    let is_read = request.method == "GET" && parts.next() == Some("json");
    let published = (request.method == "POST" && topic.is_empty()).then(|| request.json());
    let named = published.as_ref().and_then(|one| one["topic"].as_str());
    let topic = named.unwrap_or(topic).to_owned();
    if !access(request.token(), &topic, !is_read) {
        let refusal = r#"{"code":40301,"http":403,"error":"forbidden"}"#;
        return Some(Reply::with("403 Forbidden", refusal));
    }
    let mut state = state.lock().expect("no panic");
    if is_read {
        return state.read(&topic, query, stream);
    }
    let mut message = published.unwrap_or_else(|| json!({"message": request.body}));
    if message["message"]
        .as_str()
        .is_some_and(|text| text.len() > 4096)
    {
        return Some(Reply::with("413 Request Entity Too Large", ""));
    }
    message["id"] = json!(format!("m{:011}", state.messages.len()));
    message["event"] = json!("message");
    message["topic"] = json!(topic);
    state.publish(&topic, message.clone());
    Some(Reply::ok(&message.to_string()))
}

impl State {
    fn publish(&mut self, topic: &str, message: Value) {
        self.streams
            .retain_mut(|(of, stream)| of != topic || chunk(stream, &message).is_ok());
        self.messages.push(message);
    }

    /// All that is kept, or all after a message; then what comes, unless it is a poll.
    fn read(&mut self, topic: &str, query: &str, stream: &mut TcpStream) -> Option<Reply> {
        let since = query
            .split('&')
            .find_map(|part| part.strip_prefix("since="));
        let after = self
            .messages
            .iter()
            .position(|one| one["id"].as_str() == since);
        let kept = self.messages[after.map_or(0, |at| at + 1)..].iter();
        let kept: Vec<&Value> = kept.filter(|one| one["topic"] == topic).collect();
        if query.contains("poll=1") {
            let lines = kept.iter().map(|one| format!("{one}\n"));
            return Some(Reply::ok(&lines.collect::<String>()));
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        let open = json!({"id": "open", "event": "open", "topic": topic});
        for line in [&open].into_iter().chain(kept) {
            chunk(stream, line).ok()?;
        }
        let own = stream.try_clone().ok()?;
        self.streams.push((topic.to_owned(), own));
        None
    }
}

fn chunk(stream: &mut TcpStream, line: &Value) -> std::io::Result<()> {
    let line = format!("{line}\n");
    write!(stream, "{:x}\r\n{line}\r\n", line.len())
}
