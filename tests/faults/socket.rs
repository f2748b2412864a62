//! Clients that behave badly, and places where no socket may be.

use super::shells::*;
use crate::support::daemon::{Daemon, missiond};
use crate::support::run::Running;
use crate::support::{is_root, skip, until};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A subscription to all events.
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"events","params":{}}"#;
const QUIET: &str = "echo up; exec cat";
/// How long `ping` may take while others misbehave; the machine may be busy with other tests too.
const SOON: Duration = Duration::from_millis(200);

fn socket_of(daemon: &Daemon) -> PathBuf {
    daemon.root().join("run/missiond/missiond.sock")
}

fn connect(daemon: &Daemon) -> UnixStream {
    let stream = UnixStream::connect(socket_of(daemon)).expect("the daemon listens");
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).expect("a socket");
    stream.set_write_timeout(patience).expect("a socket");
    stream
}

/// Asks for the status as another client; how long the answer takes, at best of three.
fn answers_soon(daemon: &Daemon) {
    let ask = || {
        let begun = Instant::now();
        let mut stream = connect(daemon);
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"status","params":{}}"#;
        writeln!(stream, "{request}").expect("it reads");
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .expect("an answer");
        assert!(line.contains("\"result\""), "{line}");
        begun.elapsed()
    };
    let best = (0..3).map(|_| ask()).min().expect("three");
    assert!(best < SOON, "status took {best:?}");
}

#[test]
fn a_request_that_is_wrong_gets_the_code_of_json_rpc() {
    let daemon = shells(&["a"], QUIET);
    let asked = |line: &[u8]| {
        let mut stream = connect(&daemon);
        stream.write_all(line).expect("it reads");
        let mut answer = String::new();
        let read = BufReader::new(stream).read_line(&mut answer);
        read.expect("an answer");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        let error = &answer["error"];
        (
            error["code"].as_i64(),
            error["data"]["fault"].as_str().map(str::to_owned),
        )
    };
    let usage = Some("usage".to_owned());
    for (line, code, fault) in [
        (
            &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fly\"}\n"[..],
            -32601,
            &usage,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\",\"params\":{\"slot\":5}}\n",
            -32602,
            &usage,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"info\",\"params\":{\"slot\":\"no\"}}\n",
            -32000,
            &usage,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}\n", -32600, &None),
        (b"no JSON\n", -32700, &None),
        (b"{\"method\":\"\xff\xfe\"}\n", -32700, &None),
    ] {
        let line_shown = String::from_utf8_lossy(line);
        assert_eq!(asked(line), (Some(code), fault.clone()), "{line_shown}");
    }
}

/// As `nc -N` does: it asks, says that nothing more will come, and reads to the end.
#[test]
fn a_client_that_asks_nothing_more_is_still_answered() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let wait = |stream: &mut UnixStream, word: &str| {
        let params = format!(r#"{{"slot":"a","output":"got {word}","timeout_ms":50000}}"#);
        let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"wait","params":{params}}}"#);
        writeln!(stream, "{request}").expect("it reads");
    };
    let mut stream = connect(&daemon);
    wait(&mut stream, "it");
    stream.shutdown(Shutdown::Write).expect("a socket");
    echoes(&daemon, "it");
    let mut answer = String::new();
    // To the end, since the daemon closes what it has answered.
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains(r#""matched":"got it""#), "{answer}");

    // One that is gone altogether leaves its place, though what it asked for is not answered.
    let open = || fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
    let before = open();
    let crowd = (0..20).map(|_| connect(&daemon));
    let mut crowd: Vec<UnixStream> = crowd.collect();
    for (number, stream) in crowd.iter_mut().enumerate() {
        match number % 2 {
            0 => wait(stream, "never"),
            _ => writeln!(stream, "{LISTEN}").expect("it reads"),
        }
        stream.shutdown(Shutdown::Write).expect("a socket");
    }
    until("all to be heard", || (open() >= before + 20).then_some(()));
    drop(crowd);
    until("all to be let go", || (open() <= before).then_some(()));
}

#[test]
fn bad_clients_are_bounded_and_harm_nobody() {
    let daemon = shells(&["a"], QUIET);
    daemon.wait_state("a", "idle");

    let crowd: Vec<UnixStream> = (0..400).map(|_| connect(&daemon)).collect();
    answers_soon(&daemon);
    // More than there are places: some are turned away, and there is place again when others have left.
    let mut more: Vec<UnixStream> = (0..100).map(|_| connect(&daemon)).collect();
    for stream in &more {
        stream.set_nonblocking(true).expect("a socket");
    }
    until("some to be turned away", || {
        let is_over = |stream: &mut UnixStream| matches!(stream.read(&mut [0; 10]), Ok(0));
        more.iter_mut().any(is_over).then_some(())
    });
    drop((crowd, more));
    until("room for clients", || {
        (daemon.cmd(&["status"]).code == 0).then_some(())
    });

    let mut endless = connect(&daemon);
    let chunk = vec![b'x'; 1 << 20];
    let sent = (0..10)
        .take_while(|_| endless.write_all(&chunk).is_ok())
        .count();
    println!("{sent} MB of one line were taken");
    answers_soon(&daemon);
    let mut told = String::new();
    let _ = endless.read_to_string(&mut told);
    assert!(told.is_empty() || told.contains("bytes"), "{told}");

    let mut half = connect(&daemon);
    half.write_all(b"{\"jsonrpc\":\"2.0\",").expect("it reads");
    answers_soon(&daemon);

    let mut nonsense = connect(&daemon);
    nonsense.write_all(b"\x00\xff\xfe\n").expect("it reads");
    let _ = nonsense.read_to_end(&mut Vec::new());
    answers_soon(&daemon);
    drop(half);
}

/// To look up where a client comes from takes time, for which all others wait: that is done for so many connections of a
/// process that asks for nothing, and for no more.
#[test]
fn a_process_that_floods_the_socket_with_half_requests_holds_up_nobody() {
    let daemon = shells(&["a"], QUIET);
    daemon.wait_state("a", "idle");
    let half = || {
        let mut stream = connect(&daemon);
        // One that was turned away reads nothing.
        let _ = stream.write_all(b"{\"jsonrpc\":\"2.0\",");
        stream
    };
    (0..600).for_each(|_| drop(half()));
    let mut told = String::new();
    let _ = half().read_to_string(&mut told);
    let why = "the process has 512 connections on which it asks for nothing";
    assert!(told.contains(why), "{told}");
    // Another process is not concerned, and it is over when the time is.
    daemon.cmd(&["status"]).expect(0);
    until("it may ask again", || {
        let mut stream = connect(&daemon);
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"status","params":{}}"#;
        let _ = writeln!(stream, "{request}");
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line.contains("\"result\"").then_some(())
    });
}

/// Requests on their way at once: fewer than a client may have.
const AT_ONCE: usize = 32;

/// Presses so many keys in a slot. Each is an event.
pub fn write_many(daemon: &Daemon, slot: &str, keys: usize) {
    let mut client = connect(daemon);
    let params = format!(r#"{{"slot":"{slot}","bytes":[120]}}"#);
    let write = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"write","params":{params}}}"#);
    let mut answers = BufReader::new(client.try_clone().expect("a socket"));
    for begun in (0..keys).step_by(AT_ONCE) {
        let count = AT_ONCE.min(keys - begun);
        let lines = format!("{write}\n").repeat(count);
        client.write_all(lines.as_bytes()).expect("it reads");
        for _ in 0..count {
            let mut line = String::new();
            answers.read_line(&mut line).expect("an answer");
            assert!(line.contains("result"), "{line}");
        }
    }
}

#[test]
fn a_client_that_stops_reading_its_events_is_dropped_and_told() {
    let daemon = shells(&["a"], QUIET);
    daemon.wait_state("a", "idle");
    let mut deaf = connect(&daemon);
    writeln!(deaf, "{LISTEN}").expect("it reads");
    // Each write is an event of a kilobyte or so in the reason of nobody but itself.
    write_many(&daemon, "a", 4000);
    answers_soon(&daemon);
    let log = daemon.root().join("daemon.stderr");
    until("it to be dropped", || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        log.contains("was dropped: it did not read").then_some(())
    });
    let mut heard = String::new();
    deaf.read_to_string(&mut heard).expect("an end");
    let whole = |line| serde_json::from_str(line).expect("whole lines");
    let lines: Vec<serde_json::Value> = heard.lines().map(whole).collect();
    let last = lines.last().expect("a last line");
    assert_eq!(last["error"]["code"], -32002, "{last}");
    assert_eq!(last["error"]["data"]["fault"], "too_slow", "{last}");
}

#[test]
fn another_user_is_refused() {
    let daemon = shells(&["a"], QUIET);
    if !is_root("another user is not tried") {
        return;
    }
    // Even where the file system would let him in.
    for open in [
        daemon.root(),
        &daemon.root().join("run"),
        &daemon.root().join("run/missiond"),
    ] {
        fs::set_permissions(open, Permissions::from_mode(0o755)).expect("it is ours");
    }
    fs::set_permissions(socket_of(&daemon), Permissions::from_mode(0o666)).expect("it is ours");
    // Being hung up on before or after the request was read is the same to us.
    let script = r#"use IO::Socket::UNIX; $SIG{PIPE} = 'IGNORE'; $| = 1;
        my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; $s->autoflush(1);
        print $s "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":{}}\n";
        print sysread($s, my $answer, 100) || 0;"#;
    let foreign = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "perl", "-e", script])
        .arg(socket_of(&daemon))
        .output();
    let Some(foreign) = foreign.ok().filter(|output| !output.stdout.is_empty()) else {
        skip("another user is not tried (needs setpriv and perl)");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&foreign.stdout).trim(), "0");
    let told = fs::read_to_string(daemon.root().join("daemon.stderr")).unwrap_or_default();
    assert!(told.contains("belongs to uid 65534"), "{told}");
}

/// Starts a daemon that must not start; what it says.
fn refused(root: &Path) -> String {
    let mut command = missiond(root);
    command.arg("run");
    let output = Running::start(command, "run".to_owned(), "").end();
    assert_ne!(output.code, 0, "{output}");
    output.stderr
}

#[test]
fn a_place_that_others_reach_is_refused_with_the_cure() {
    let daemon = shells(&["a"], QUIET);
    daemon.cmd(&["down", "--yes"]).expect(0);
    let run = daemon.root().join("run/missiond");
    fs::set_permissions(&run, Permissions::from_mode(0o777)).expect("it is ours");
    let told = refused(daemon.root());
    assert!(
        told.contains(&format!("chmod 700 {}", run.display())),
        "{told}"
    );
    fs::set_permissions(&run, Permissions::from_mode(0o700)).expect("it is ours");

    let aside = daemon.root().join("aside");
    fs::rename(&run, &aside).expect("it is ours");
    symlink(&aside, &run).expect("a link");
    let told = refused(daemon.root());
    assert!(told.contains("symbolic link"), "{told}");
    fs::remove_file(&run).expect("it is ours");
    fs::rename(&aside, &run).expect("it is ours");

    if is_root("a directory of another user is not tried") {
        std::os::unix::fs::chown(&run, Some(65534), None).expect("as root");
        let told = refused(daemon.root());
        assert!(told.contains("belongs to user 65534"), "{told}");
        std::os::unix::fs::chown(&run, Some(0), None).expect("as root");
    }

    // A file that is no socket is not ours to remove.
    fs::write(run.join("missiond.sock"), "a letter").expect("it is ours");
    let told = refused(daemon.root());
    assert!(told.contains("is not a socket"), "{told}");
    assert_eq!(
        fs::read_to_string(run.join("missiond.sock")).expect("still there"),
        "a letter"
    );
}

/// What a killed daemon was about to start has its locks until it is another program.
#[test]
fn a_lock_that_is_about_to_be_left_is_waited_for() {
    let mut daemon = shells(&["a"], QUIET);
    let lock = daemon.root().join("state/missiond/missiond.lock");
    daemon.crash();
    let held = fs::File::open(&lock).expect("a lock");
    held.try_lock().expect("it is free");
    let leaving = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(held);
    });
    daemon.again();
    leaving.join().expect("it is left");
    daemon.wait_state("a", "idle");
}

#[test]
fn a_dead_socket_is_replaced_and_a_newer_one_is_left_alone() {
    let mut daemon = shells(&["a"], QUIET);
    daemon.wait_state("a", "idle");
    let socket = socket_of(&daemon);
    daemon.crash();
    assert!(socket.exists(), "it is left behind");
    daemon.again();
    let mode = fs::metadata(&socket).expect("a socket").mode();
    assert_eq!(mode & 0o777, 0o600);

    // Something newer listens in the place of the daemon's own.
    fs::remove_file(&socket).expect("it is ours");
    let newer = UnixListener::bind(&socket).expect("a socket");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(daemon.pid()).expect("a pid"),
        rustix::process::Signal::TERM,
    )
    .expect("it runs");
    assert_eq!(daemon.wait_for_its_end(), Some(0));
    assert!(socket.exists(), "the newer one stays");
    let told = refused(daemon.root());
    assert!(told.contains("is running already"), "{told}");
    drop(newer);
}
