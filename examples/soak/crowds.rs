//! Clients of the daemon: those that a slot opens, those that follow, those that read nothing.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A tool call of a conversation that is none of the slot: if the daemon has heard it, the refusal names it.
const CALL: &[u8] = br#"{"hook_event_name":"PreToolUse","session_id":"5a8b1c9e-0000-4000-8000-000000000000","tool_name":"Bash","tool_input":{"command":"ls"}}"#;

/// Runs inside a slot: opens so many connections, and each one again that the daemon closes.
pub fn flood(count: usize) -> Result<()> {
    let socket = std::env::var("MISSIOND_SOCKET")?;
    let open = || loop {
        if let Ok(stream) = UnixStream::connect(&socket) {
            let _ = stream.set_nonblocking(true);
            return stream;
        }
        std::thread::yield_now();
    };
    let mut crowd: Vec<UnixStream> = (0..count).map(|_| open()).collect();
    fs::write("flooded", "")?;
    loop {
        for stream in &mut crowd {
            if matches!(stream.read(&mut [0; 4096]), Ok(0)) {
                *stream = open();
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs inside a slot: for each file `call` it runs the hook of a tool call, and writes how many microseconds that took.
pub fn neighbour() -> Result<()> {
    loop {
        while !Path::new("call").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_file("call")?;
        let told = match call() {
            Ok(took) => took.as_micros().to_string(),
            Err(error) => format!("{error:#}"),
        };
        fs::write("took.new", told)?;
        fs::rename("took.new", "took")?;
    }
}

fn call() -> Result<Duration> {
    let begun = Instant::now();
    let mut hook = Command::new(std::env::var("SOAK_PROGRAM")?)
        .args(["hook", "--slot", "neighbour", "--socket"])
        .arg(std::env::var("MISSIOND_SOCKET")?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = hook.stdin.take().context("no input")?;
    input.write_all(CALL)?;
    drop(input);
    let output = hook.wait_with_output()?;
    let took = begun.elapsed();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(said.contains("5a8b1c9e"), "not heard: {said}");
    Ok(took)
}

fn listener(socket: &Path, slots: &str) -> Result<UnixStream> {
    let params = format!(r#"{{"data":true,"slots":[{slots}]}}"#);
    let mut stream = UnixStream::connect(socket)?;
    writeln!(
        stream,
        r#"{{"jsonrpc":"2.0","id":1,"method":"events","params":{params}}}"#
    )?;
    Ok(stream)
}

/// Clients that ask for all output, and read nothing.
pub fn silent_readers(socket: PathBuf, count: usize) -> Result<Vec<UnixStream>> {
    (0..count).map(|_| listener(&socket, "")).collect()
}

/// A client for each slot that reads what the slot writes.
pub struct Followers(Vec<(UnixStream, JoinHandle<Result<u64>>)>);

impl Followers {
    pub fn start(socket: PathBuf, count: usize) -> Result<Followers> {
        let follower = |slot| -> Result<_> {
            let stream = listener(&socket, &format!("\"s{slot}\""))?;
            let reading = stream.try_clone()?;
            let thread = std::thread::spawn(move || read_all(reading));
            Ok((stream, thread))
        };
        Ok(Followers((0..count).map(follower).collect::<Result<_>>()?))
    }

    /// How many bytes they have read in all. One that was dropped by the daemon is an error.
    pub fn end(self) -> Result<u64> {
        let mut sum = 0;
        for (stream, thread) in self.0 {
            ensure!(!thread.is_finished(), "a follower was dropped");
            stream.shutdown(Shutdown::Both)?;
            let read = thread.join().ok().context("a follower panicked")?;
            sum += read?;
        }
        Ok(sum)
    }
}

fn read_all(mut stream: UnixStream) -> Result<u64> {
    let mut buffer = vec![0; 16 << 10];
    let mut sum = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(sum),
            count => sum += count as u64,
        }
    }
}
