//! A client of the server, as simple as can be: JSON lines.

use crate::support::daemon::missiond;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    /// Starts the server and introduces itself.
    pub fn start(root: &Path, arguments: &[&str]) -> Client {
        let mut child = missiond(root)
            .arg("mcp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("missiond runs");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut client = Client {
            child,
            input,
            output,
            last_id: 0,
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = client.request("initialize", params);
        assert_eq!(hello["serverInfo"]["name"], "missiond", "{hello}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("not yet closed");
        writeln!(input, "{message}").expect("the server reads");
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            let count = self
                .output
                .read_line(&mut line)
                .expect("the server answers");
            assert!(count > 0, "the server has ended");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{answer}");
                return answer["result"].clone();
            }
        }
    }

    /// What a tool says, and whether that is an error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", params);
        let text = result["content"][0]["text"].as_str().expect("text");
        (text.to_owned(), result["isError"] == true)
    }

    /// What a tool says that must succeed.
    #[track_caller]
    pub fn told(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    /// What a tool says that must fail.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(is_error, "{tool}: {text}");
        text
    }

    pub fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["tools"].as_array().expect("a list").iter();
        tools
            .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
            .collect()
    }

    /// Closes its input and waits for its end.
    pub fn leave(mut self) -> i32 {
        self.input = None;
        let status = crate::support::until("the server to end", || {
            self.child.try_wait().expect("it is a child")
        });
        status.code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
