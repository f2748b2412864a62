//! A process that is no daemon puts its own socket in the place of the daemon's: clients and hooks send nothing to it, and
//! the daemon takes its place back.

use super::shells::*;
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const SOCKET: &str = "IMPOSTOR_SOCKET";

/// What the impostor was sent.
fn heard(socket: &Path) -> PathBuf {
    socket.with_extension("heard")
}

/// Answers everything with an empty list, and writes down what it was sent.
#[test]
#[ignore = "started by nothing_is_sent_to_a_process_that_listens_in_place_of_the_daemon"]
fn the_impostor() {
    let socket = PathBuf::from(std::env::var_os(SOCKET).expect("it is started by the other test"));
    let own = socket.with_extension("other");
    let listener = UnixListener::bind(&own).expect("a socket");
    std::fs::write(heard(&socket), "").expect("a file");
    std::fs::rename(&own, &socket).expect("it takes the place");
    for stream in listener.incoming().flatten() {
        let mut out = stream.try_clone().expect("the same stream");
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            std::fs::write(heard(&socket), line).expect("a file");
            let _ = out.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}\n");
        }
    }
}

struct Impostor(Child);

impl Impostor {
    fn at(socket: &Path) -> Impostor {
        let test = std::env::current_exe().expect("a test");
        let mut command = Command::new(test);
        command.args(["--ignored", "--exact", "faults::impostor::the_impostor"]);
        let impostor = Impostor(command.env(SOCKET, socket).spawn().expect("it starts"));
        until("it to have the place", || {
            let is_ready = heard(socket).exists() && !socket.with_extension("other").exists();
            is_ready.then_some(())
        });
        impostor
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nothing_is_sent_to_a_process_that_listens_in_place_of_the_daemon() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let pid = Pid::from_raw(daemon.pid()).expect("a process");
    // The daemon can't take its socket back while it is stopped.
    kill_process(pid, Signal::STOP).expect("it runs");
    let impostor = Impostor::at(&socket);
    let other = impostor.0.id();
    let sent = || std::fs::read_to_string(heard(&socket)).expect("a file");
    for command in [&["status"][..], &["stop", "a"], &["send", "a", "secret"]] {
        let ran = daemon.cmd(command);
        assert_ne!(ran.code, 0, "{command:?}: {ran}");
        let named = format!("process {other} listens at");
        assert!(ran.stderr.contains(&named), "{command:?}: {ran}");
    }
    let lock = daemon.root().join("state/missiond/missiond.lock");
    let hook = format!(
        "timeout 3 {} hook --socket '{}' --slot a --lock '{}'",
        env!("CARGO_BIN_EXE_missiond"),
        socket.display(),
        lock.display()
    );
    let call =
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let line = format!("printf '%s' '{call}' | {hook}");
    let gate = daemon.in_shell(daemon.root(), &line);
    assert_eq!(gate.code, 124, "it waits for the daemon: {gate}");
    assert_eq!(sent(), "");
    kill_process(pid, Signal::CONT).expect("it runs");
    until("the daemon to have its socket again", || {
        let ran = daemon.cmd(&["status"]);
        (ran.code == 0).then_some(())
    });
    let said = daemon.cmd(&["status"]).expect(0).stdout;
    let named = format!("process {other} listened at");
    assert!(said.contains(&named), "{said}");
    assert_eq!(sent(), "");
    daemon.cmd(&["stop", "a"]).expect(0);
    assert_eq!(daemon.status("a")["state"], "exited");
}
