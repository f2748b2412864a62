//! A slot that opens connections without end: people, its neighbours and even its own hooks are heard all the same.

use super::inside::*;
use crate::support::daemon::Daemon;
use crate::support::until;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const CROWD: usize = 600;
/// Most of the time is that of the command's own start, on a loaded machine; who is kept out is told so at once.
const SOON: Duration = Duration::from_secs(10);

fn connect(socket: &str) -> UnixStream {
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                stream.set_nonblocking(true).expect("a socket");
                return stream;
            }
            // The backlog is full.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether the daemon has let this one go; what it has said is put behind `said`.
fn is_over(stream: &mut UnixStream, said: &mut String) -> bool {
    let mut buffer = [0; 1024];
    match stream.read(&mut buffer) {
        Ok(0) => true,
        Ok(count) => {
            said.push_str(&String::from_utf8_lossy(&buffer[..count]));
            false
        }
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// No test, but what runs inside the slot: opens connections, and opens each one again that the daemon lets go. When
/// there have been [`CROWD`], it says so with what the daemon said to the first that was turned away.
#[test]
#[ignore = "it is run by the other tests"]
fn a_crowd() {
    let socket = std::env::var("MISSIOND_SOCKET").expect("it runs inside a slot");
    let mut crowd: Vec<UnixStream> = (0..CROWD).map(|_| connect(&socket)).collect();
    let mut said = String::new();
    let mut told = false;
    loop {
        for stream in &mut crowd {
            if is_over(stream, &mut said) {
                *stream = connect(&socket);
            }
        }
        if !said.is_empty() && !std::mem::replace(&mut told, true) {
            fs::write("said.new", &said).expect("a file");
            fs::rename("said.new", "said").expect("a file");
        }
        said.clear();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Slot `one` is crowded from now on; what its first client was told that was turned away.
fn crowded(daemon: &Daemon) -> String {
    let test = std::env::current_exe().expect("a test");
    let test = test.display();
    let line = format!("{test} --ignored --exact oversight::crowd::a_crowd >crowd.log 2>&1 &\n");
    daemon.cmd(&["write", "one", &line]).expect(0);
    let said = daemon.cwd("one").join("said");
    until("a client to be turned away", || {
        fs::read_to_string(&said).ok()
    })
}

#[track_caller]
fn soon(daemon: &Daemon, command: &[&str]) {
    let begun = Instant::now();
    daemon.cmd(command).expect(0);
    let took = begun.elapsed();
    assert!(took < SOON, "{command:?} took {took:?}");
}

const CALL: &str = r#"{"hook_event_name":"PreToolUse","session_id":"5a8b1c9e-0000-4000-8000-000000000000","tool_name":"Bash","tool_input":{"command":"ls"}}"#;

/// Calls the hook of a slot inside it; the daemon has heard it if it names the conversation, which is none of the slot.
#[track_caller]
fn hook(daemon: &Daemon, slot: &str) {
    fs::write(daemon.cwd(slot).join("call"), CALL).expect("a file");
    let arguments = format!("hook --socket $MISSIOND_SOCKET --slot {slot} <call");
    let heard = missiond_in(daemon, slot, "", &arguments);
    assert!(heard.output.contains("5a8b1c9e"), "{heard:?}");
}

#[test]
fn a_crowd_in_a_slot_keeps_nobody_out() {
    let daemon = shells();
    let told = crowded(&daemon);
    assert!(
        told.contains("turned away: the daemon is full (slot one "),
        "{told}"
    );
    assert!(
        told.contains("\"fault\":\"full\"") && told.contains("-32001"),
        "{told}"
    );
    for _ in 0..3 {
        for command in [&["status"][..], &["screen", "two"], &["sessions"]] {
            soon(&daemon, command);
        }
        hook(&daemon, "two");
    }
    soon(&daemon, &["stop", "two"]);
    soon(&daemon, &["stop", "one"]);
    soon(&daemon, &["down", "--yes"]);
    let log = fs::read_to_string(daemon.root().join("daemon.stderr")).expect("a log");
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("turned away"))
        .collect();
    // A process with too many connections is turned away before anybody looks where it comes from.
    let crowd = |line: &&str| line.contains("slot one") || line.contains(" of process ");
    assert!(told.iter().all(crowd), "{told:?}");
    // One line at once, then one in ten seconds.
    let most = 2 + 60 / 10;
    assert!((1..=most).contains(&told.len()), "{told:#?}");
    assert!(daemon.log("one").contains("was turned away"));
}

/// A command that finds no place says that the daemon is full: a daemon is there, and another start is no remedy.
#[test]
fn a_person_who_finds_no_place_is_told_that_the_daemon_is_full() {
    let daemon = shells();
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let socket = socket.display().to_string();
    // Each of them has a request under way, so that none makes place.
    let listen = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\",\"params\":{}}\n";
    let mut crowd: Vec<UnixStream> = Vec::new();
    let full = until("the daemon to be full", || {
        for _ in 0..50 {
            let mut stream = connect(&socket);
            let _ = stream.write_all(listen);
            crowd.push(stream);
        }
        Some(daemon.cmd(&["status"])).filter(|output| output.code != 0)
    });
    let full = full.expect(6);
    assert!(
        full.stderr.contains("turned away: the daemon is full"),
        "{full}"
    );
    let up = daemon.cmd(&["up"]).expect(6);
    assert!(up.stderr.contains("the daemon is full"), "{up}");
    drop(crowd);
    until("room for people", || {
        (daemon.cmd(&["status"]).code == 0).then_some(())
    });
    hook(&daemon, "one");
}

/// People who connect and ask for nothing leave, with the reason.
#[test]
fn whoever_says_nothing_is_let_go() {
    let daemon = shells();
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut silent = UnixStream::connect(socket).expect("the daemon listens");
    let patience = Some(Duration::from_secs(60));
    silent.set_read_timeout(patience).expect("a socket");
    let mut said = String::new();
    silent.read_to_string(&mut said).expect("an end");
    assert!(said.contains("nothing was asked for within 10s"), "{said}");
}
