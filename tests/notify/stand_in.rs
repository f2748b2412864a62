//! Servers on loopback that stand in for those of the world: any HTTP server that takes what it gets, and ntfy.

use crate::support::until;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Debug, Clone)]
pub struct Request {
    /// `POST` or `GET`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// By names in lower case.
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The token that it came with.
    pub fn token(&self) -> Option<&str> {
        let value = self.headers.get("authorization")?;
        value.strip_prefix("Bearer ")
    }
}

/// The answer to a request; a server may also keep the connection and write more.
pub struct Reply {
    pub status: &'static str,
    pub header: String,
    pub body: String,
}

impl Reply {
    pub fn ok(body: &str) -> Reply {
        Reply::with("200 OK", body)
    }

    pub fn with(status: &'static str, body: &str) -> Reply {
        Reply {
            status,
            header: String::new(),
            body: body.to_owned(),
        }
    }
}

type Handler = dyn Fn(&Request, &mut TcpStream) -> Option<Reply> + Send + Sync;

/// A server that notes each request.
#[derive(Clone)]
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` gives the reply, or writes to the connection itself.
    pub fn start(
        answer: impl Fn(&Request, &mut TcpStream) -> Option<Reply> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Server {
            address: listener.local_addr().expect("an address"),
            requests: Arc::default(),
        };
        let (requests, answer) = (server.requests.clone(), Arc::new(answer));
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, answer) = (requests.clone(), answer.clone());
                thread::spawn(move || serve(stream, &requests, &*answer));
            }
        });
        server
    }

    /// A server that takes everything.
    pub fn taking() -> Server {
        Server::start(|_, _| Some(Reply::ok("ok")))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }

    /// The first request that fits, when it has come.
    #[track_caller]
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Request) -> bool) -> Request {
        until(what, || self.requests().into_iter().find(&fits))
    }
}

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<Request>>, answer: &Handler) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    while let Some(request) = read(&mut reader) {
        requests.lock().expect("no panic").push(request.clone());
        let Some(reply) = answer(&request, &mut stream) else {
            return;
        };
        let Reply {
            status,
            header,
            body,
        } = reply;
        let text = format!(
            "HTTP/1.1 {status}\r\n{header}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}
