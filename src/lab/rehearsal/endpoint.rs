//! The scripted Messages API: a small HTTP server on loopback that answers by its script.

use super::conversation::{asked, is_side_question};
use super::http;
use super::script::{ErrorStep, ModelScript, Step};
use super::sse::{self, Beat};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::BufReader;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// The interval of pings on a waiting stream, and so the maximum delay until a client that is gone is noticed.
const PING: Duration = Duration::from_millis(500);
/// The maximum of connections. A Claude Code opens a handful; more than this at once means a loop.
const MAX_CONNECTIONS: usize = 64;
/// The maximum of requests kept for inspection: some hundred turns of tests.
const MAX_REQUESTS: usize = 1024;
/// The maximum bytes of their bodies: each contains its whole conversation.
const MAX_REQUEST_BYTES: usize = 128 * 1024 * 1024;

/// One request that Claude Code made.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The body, if it was JSON.
    pub body: Value,
    size: usize,
}

impl EndpointRequest {
    /// Tells whether this asks the model to continue the conversation, and is not a side question.
    pub fn is_turn(&self) -> bool {
        self.method == "POST" && is_messages(&self.target) && !is_side_question(&self.body)
    }

    /// The last text of the person in it.
    pub fn prompt(&self) -> String {
        asked(&self.body).prompt
    }
}

/// A running endpoint. It stops when dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<ModelScript>,
    requests: Mutex<Requests>,
    arrived: Condvar,
    /// The names of the open gates.
    gates: watch::Sender<BTreeSet<String>>,
    next_id: AtomicU64,
}

#[derive(Debug, Default)]
struct Requests {
    kept: VecDeque<EndpointRequest>,
    bytes: usize,
}

impl Endpoint {
    /// Starts on a free port of 127.0.0.1, on a separate thread, so that tests without a runtime can use it too.
    pub fn start() -> io::Result<Endpoint> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared::new());
        let stop = CancellationToken::new();
        let (served, stopped) = (shared.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("scripted-api".to_owned())
            .spawn(move || {
                // Dropping the runtime at the end also ends all connections.
                runtime.block_on(stopped.run_until_cancelled(serve(listener, served)));
            })?;
        Ok(Endpoint {
            address,
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the steps that answer `prompt` from now on.
    pub fn on(&self, prompt: &str, steps: Vec<Step>) {
        locked(&self.shared.script).set(prompt, steps);
    }

    /// Opens a gate permanently: everything that waits at it continues.
    pub fn open(&self, gate: &str) {
        self.shared.gates.send_modify(|open| {
            open.insert(gate.to_owned());
        });
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<EndpointRequest> {
        locked(&self.shared.requests).kept.iter().cloned().collect()
    }

    /// Tells whether the last turn that the model was asked for contains this text. Each request has the whole
    /// conversation, so only the last is searched.
    pub fn was_told(&self, text: &str) -> bool {
        let requests = locked(&self.shared.requests);
        let last = requests.kept.iter().rev().find(|request| request.is_turn());
        last.is_some_and(|request| says(&request.body["messages"], text))
    }

    /// The first request, past or future, that matches `wanted`; `None` after `timeout`.
    pub fn wait_for_request(
        &self,
        timeout: Duration,
        wanted: impl Fn(&EndpointRequest) -> bool,
    ) -> Option<EndpointRequest> {
        let end = Instant::now() + timeout;
        let mut requests = locked(&self.shared.requests);
        loop {
            if let Some(found) = requests.kept.iter().find(|request| wanted(request)) {
                return Some(found.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            requests = self
                .shared
                .arrived
                .wait_timeout(requests, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// Tells whether any text in this value contains `text`.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said.contains(text),
        Value::Array(values) => values.iter().any(|value| says(value, text)),
        Value::Object(values) => values.values().any(|value| says(value, text)),
        _ => false,
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already printed, and nothing is left to stop.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new() -> Shared {
        Shared {
            script: Mutex::default(),
            requests: Mutex::default(),
            arrived: Condvar::new(),
            gates: watch::Sender::new(BTreeSet::new()),
            next_id: AtomicU64::new(1),
        }
    }

    fn keep(&self, request: EndpointRequest) {
        let mut requests = locked(&self.requests);
        requests.bytes += request.size;
        requests.kept.push_back(request);
        while requests.kept.len() > MAX_REQUESTS || requests.bytes > MAX_REQUEST_BYTES {
            let gone = requests.kept.pop_front().map_or(0, |oldest| oldest.size);
            requests.bytes -= gone;
        }
        self.arrived.notify_all();
    }
}

/// A panic while this was held leaves the value consistent, because each is changed in one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            // An interrupt looks like a client that disconnects in the middle.
            let _ = connection(stream, &shared).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(request) = http::read_request(&mut reader).await? {
        let keep_alive = request.keep_alive;
        answer(request, shared, &mut writer).await?;
        if !keep_alive {
            break;
        }
    }
    Ok(())
}

fn is_messages(target: &str) -> bool {
    target.split('?').next() == Some("/v1/messages")
}

async fn answer(
    request: http::HttpRequest,
    shared: &Shared,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let head = request.method == "HEAD";
    let request = EndpointRequest {
        method: request.method,
        target: request.target,
        size: request.body.len(),
        body: serde_json::from_slice(&request.body).unwrap_or_default(),
    };
    let asks_model = request.method == "POST" && is_messages(&request.target);
    let counts = request.target.contains("/count_tokens");
    let body = request.body.clone();
    shared.keep(request);
    if counts {
        return http::write_json(writer, 200, &json!({"input_tokens": 10}), head).await;
    }
    if !asks_model {
        return http::write_json(writer, 200, &json!({}), head).await;
    }
    match steps_for(&body, shared) {
        Ok(steps) => respond(&body, &steps, shared, writer).await,
        Err(error) => fail(writer, &error).await,
    }
}

/// The model's next steps, or the error of the API instead.
fn steps_for(body: &Value, shared: &Shared) -> Result<Vec<Step>, ErrorStep> {
    if is_side_question(body) {
        return Ok(vec![Step::text("Rehearsal")]);
    }
    let asked = asked(body);
    let steps = locked(&shared.script)
        .response(&asked.prompt, asked.round)
        .map_err(|message| ErrorStep {
            status: 400,
            error: "invalid_request_error".to_owned(),
            message,
        })?;
    match steps.last() {
        Some(Step::Error(error)) => Err(error.clone()),
        _ => Ok(steps),
    }
}

async fn fail(writer: &mut OwnedWriteHalf, error: &ErrorStep) -> io::Result<()> {
    let body = json!({"type": "error", "error": {"type": error.error, "message": error.message}});
    http::write_json(writer, error.status, &body, false).await
}

async fn respond(
    body: &Value,
    steps: &[Step],
    shared: &Shared,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let model = body["model"].as_str().unwrap_or("scripted");
    let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
    let response = sse::response(steps, model, id);
    if body["stream"] != json!(true) {
        return http::write_json(writer, 200, &response.message, false).await;
    }
    http::start_events(writer).await?;
    for beat in &response.beats {
        match beat {
            Beat::Event(event) => http::write_event(writer, event).await?,
            Beat::Gate(name) => {
                let mut gates = shared.gates.subscribe();
                let open = async { drop(gates.wait_for(|open| open.contains(name)).await) };
                ping_until(open, writer).await?;
            }
            Beat::Pause(time) => ping_until(tokio::time::sleep(*time), writer).await?,
        }
    }
    http::end_events(writer).await
}

/// Sends pings until `over` completes; fails if the client is gone.
async fn ping_until(over: impl Future<Output = ()>, writer: &mut OwnedWriteHalf) -> io::Result<()> {
    tokio::pin!(over);
    loop {
        tokio::select! {
            () = &mut over => return Ok(()),
            () = tokio::time::sleep(PING) => {
                http::write_event(writer, &json!({"type": "ping"})).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    const SOON: Duration = Duration::from_secs(10);

    fn endpoint() -> Endpoint {
        Endpoint::start().expect("a free port")
    }

    /// Sends one request on a new connection; returns the answer as text.
    fn ask(endpoint: &Endpoint, method: &str, target: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(endpoint.address).expect("a listener");
        let length = body.len();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn turn(prompt: &str, stream: bool) -> String {
        json!({"model": "m", "stream": stream, "tools": [{"name": "Bash"}],
            "messages": [{"role": "user", "content": prompt}]})
        .to_string()
    }

    #[test]
    fn anything_else_is_answered_with_ok() {
        let endpoint = endpoint();
        assert!(ask(&endpoint, "HEAD", "/", "").starts_with("HTTP/1.1 200"));
        assert!(ask(&endpoint, "GET", "/api/hello", "").ends_with("{}"));
        let counted = ask(
            &endpoint,
            "POST",
            "/v1/messages/count_tokens?beta=true",
            "{}",
        );
        assert!(counted.ends_with(r#"{"input_tokens":10}"#), "{counted}");
    }

    #[test]
    fn a_turn_is_streamed_and_kept() {
        let endpoint = endpoint();
        let answer = ask(
            &endpoint,
            "POST",
            "/v1/messages?beta=true",
            &turn("hello", true),
        );
        assert!(answer.contains(r#""text":"You said: hello""#), "{answer}");
        assert!(answer.trim_end().ends_with('0'), "{answer}");
        let kept = endpoint.wait_for_request(SOON, EndpointRequest::is_turn);
        assert_eq!(kept.map(|request| request.prompt()), Some("hello".into()));
        assert!(endpoint.was_told("hell") && !endpoint.was_told("messages"));
    }

    #[test]
    fn without_streaming_the_answer_is_one_message() {
        let answer = ask(&endpoint(), "POST", "/v1/messages", &turn("hello", false));
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let message: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(message["content"][0]["text"], "You said: hello");
    }

    #[test]
    fn a_gate_holds_the_answer_until_it_is_opened() {
        let endpoint = endpoint();
        endpoint.on(
            "wait",
            vec![Step::text("before"), Step::gate("g"), Step::text("after")],
        );
        let mut stream = TcpStream::connect(endpoint.address).expect("a listener");
        let body = turn("wait", true);
        write!(
            stream,
            "POST /v1/messages HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut seen = String::new();
        let mut buffer = [0; 512];
        while !seen.contains("\"ping\"") {
            let count = stream.read(&mut buffer).expect("a stream");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        assert!(seen.contains("before") && !seen.contains("after"), "{seen}");
        endpoint.open("g");
        let mut rest = String::new();
        stream.read_to_string(&mut rest).expect("the rest");
        assert!(rest.contains("after"), "{rest}");
    }

    #[test]
    fn errors_have_their_status() {
        let endpoint = endpoint();
        endpoint.on(
            "no",
            vec![Step::error(529, "overloaded_error", "Overloaded")],
        );
        let answer = ask(&endpoint, "POST", "/v1/messages", &turn("no", true));
        assert!(answer.starts_with("HTTP/1.1 529"), "{answer}");
        assert!(answer.contains("overloaded_error"), "{answer}");
        let answer = ask(&endpoint, "POST", "/v1/messages", &turn("JSON:[", true));
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }

    #[test]
    fn it_stops_with_a_stream_still_open() {
        let endpoint = endpoint();
        endpoint.on("wait", vec![Step::gate("never")]);
        let mut stream = TcpStream::connect(endpoint.address).expect("a listener");
        let body = turn("wait", true);
        write!(
            stream,
            "POST /v1/messages HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        endpoint
            .wait_for_request(SOON, EndpointRequest::is_turn)
            .expect("it arrived");
        drop(endpoint);
        let mut rest = Vec::new();
        // Either a clean end or a reset: the connection is gone.
        let _ = stream.read_to_end(&mut rest);
    }
}
