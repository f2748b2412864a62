//! `exec` and `spawn` as scripts use them: exit codes, standard output, the environment, limits.

use super::stage::*;
use crate::support::daemon::{Daemon, missiond};
use crate::support::{skip, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Output;

/// Runs `missiond` with one more variable.
fn with_variable(daemon: &Daemon, name: &str, value: &str, arguments: &[&str]) -> Output {
    let mut command = missiond(daemon.root());
    command.args(arguments).env(name, value);
    command.output().expect("missiond runs")
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let daemon = daemon();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 3", 3),
        ("exit 127", 127),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let words = ["exec", "--yield", "50s", "--", "sh", "-c", script];
        let ended = daemon.cmd(&words).expect(code);
        assert_eq!(ended.stderr, "", "{script}: {ended}");
        let json = daemon.cmd(&[&["--json"], &words[..]].concat()).expect(code);
        assert_eq!(json.json()["exit_code"], code, "{script}: {json}");
        assert_eq!(json.stderr, "", "{script}: {json}");
    }
}

/// A failure of missiond has a line that says so, and no answer.
#[test]
fn a_failure_of_missiond_is_told_from_one_of_the_command() {
    let daemon = daemon();
    let refused = daemon.cmd(&["exec", "--", "no-such-program"]).expect(2);
    assert!(refused.stderr.starts_with("missiond: "), "{refused}");
    let json = daemon
        .cmd(&["--json", "exec", "--", "no-such-program"])
        .expect(2);
    assert_eq!(json.stdout, "", "{json}");
    assert!(json.stderr.contains("\"fault\":\"usage\""), "{json}");
}

#[test]
fn a_command_whose_time_is_over_ends_with_124() {
    let daemon = daemon();
    for script in ["sleep 1000", "trap 'exit 0' TERM; sleep 1000 & wait"] {
        let words = ["exec", "--timeout", "500ms", "--", "sh", "-c", script];
        let ended = daemon.cmd(&words).expect(124);
        assert!(ended.stderr.contains("after 500ms"), "{script}: {ended}");
        let json = daemon.cmd(&[&["--json"], &words[..]].concat()).expect(124);
        assert_eq!(json.json()["timed_out"], true, "{script}: {json}");
        assert_eq!(json.json()["exit_code"], 124, "{script}: {json}");
    }
    // One that ends by itself in time says nothing of it, and is waited for.
    let done = [
        "exec",
        "--timeout",
        "50s",
        "--",
        "sh",
        "-c",
        "sleep 1; exit 3",
    ];
    daemon.cmd(&done).expect(3);
}

#[test]
fn the_output_of_spawn_is_its_id_alone() {
    let daemon = daemon();
    let talks = ["spawn", "--", "sh", "-c", "echo hello; sleep 1000"];
    let made = daemon.cmd(&talks).expect(0);
    let id = made.stdout.trim_end();
    assert_eq!(made.stdout.lines().count(), 1, "{made}");
    assert_eq!(info(&daemon, id)["is_alive"], true);
    let quiet = daemon.cmd(&[&["-q"], &talks[..]].concat()).expect(0);
    assert_eq!(
        (quiet.stdout.lines().count(), quiet.stderr.as_str()),
        (1, "")
    );
}

#[test]
fn commands_have_the_environment_of_the_caller() {
    let daemon = daemon();
    let script = "echo FOO=$FOO HOME=$HOME XDG=$XDG_STATE_HOME TERM=$TERM SLOT=$MISSIOND_SLOT";
    let exec = ["exec", "--yield", "50s", "--", "sh", "-c", script];
    let ended = with_variable(&daemon, "FOO", "from the caller", &exec);
    let said = String::from_utf8(ended.stdout).expect("text");
    assert!(said.contains("FOO=from the caller HOME=/"), "{said}");
    assert!(said.contains("TERM=xterm-256color SLOT="), "{said}");
    // What the daemon has and the caller has not is not there.
    let bare = with_variable(&daemon, "XDG_STATE_HOME", "", &exec);
    let said = String::from_utf8(bare.stdout).expect("text");
    assert!(said.contains("XDG= "), "{said}");
    let spawn = [
        "spawn",
        "--id",
        "one",
        "--env",
        "BAR=named",
        "--",
        "sh",
        "-c",
        "echo $FOO $BAR",
    ];
    let made = with_variable(&daemon, "FOO", "spawned", &spawn);
    assert_eq!(String::from_utf8(made.stdout).expect("text"), "one\n");
    wait_exit(&daemon, "one");
    assert_eq!(output(&daemon, "one"), "spawned named\n");
}

#[test]
fn a_line_runs_in_the_shell_that_was_named() {
    let daemon = daemon();
    let line = [
        "exec",
        "--yield",
        "50s",
        "--shell",
        "bash",
        "--",
        "echo ${BASH_VERSION:+bash}",
    ];
    assert_eq!(daemon.cmd(&line).expect(0).stdout, "bash\n");
    std::fs::write(daemon.root().join("home/.profile"), "export READ=profile\n").expect("a file");
    let login = [
        "exec",
        "--yield",
        "50s",
        "--login",
        "--shell",
        "sh",
        "--",
        "echo $READ",
    ];
    assert_eq!(daemon.cmd(&login).expect(0).stdout, "profile\n");
}

#[test]
fn one_that_takes_too_much_memory_is_ended() {
    let daemon = daemon();
    if !has("python3") {
        return;
    }
    let hungry = "x = bytearray(300_000_000); import time; time.sleep(1000)";
    spawn(
        &daemon,
        &[
            "--id",
            "hungry",
            "--max-memory",
            "200MB",
            "--",
            "python3",
            "-c",
            hungry,
        ],
    );
    spawn(
        &daemon,
        &["--id", "modest", "--max-memory", "200MB", "--", "cat"],
    );
    wait_exit(&daemon, "hungry");
    let ended = info(&daemon, "hungry");
    let why = ended["last_error"].as_str().expect("a reason");
    assert!(why.contains("allowed"), "{ended}");
    assert_eq!(info(&daemon, "modest")["is_alive"], true);
    daemon
        .cmd(&["spawn", "--max-memory", "lots", "--", "cat"])
        .expect(2);
    daemon
        .cmd(&["spawn", "--max-memory", "5kB", "--", "cat"])
        .expect(2);
}

#[test]
fn exec_says_why_missiond_ended_the_command() {
    let mut daemon = daemon();
    if !has("python3") {
        return;
    }
    let hungry = "x = bytearray(300_000_000); import time; time.sleep(1000)";
    let limits = ["exec", "--yield", "60s", "--max-memory", "200MB"];
    let command = ["--", "python3", "-c", hungry];
    let told = daemon.cmd(&[&limits[..], &command].concat()).expect(143);
    let why = "missiond: the command was ended: over max_memory: ";
    assert!(told.stderr.starts_with(why), "{told}");
    let told = daemon.cmd(&[&limits[..], &["--json"], &command].concat());
    let told = told.expect(143);
    let answer: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let why = answer["ended_because"].as_str().expect("a reason");
    assert!(why.starts_with("over max_memory: "), "{answer}");
    // What ends by itself has said why.
    let own = daemon.cmd(&["exec", "--yield", "60s", "--", "sh", "-c", "kill $$"]);
    let own = own.expect(143);
    assert_eq!(own.stderr, "", "{own}");
    // The reason outlives the daemon.
    let id = answer["session_id"].as_str().expect("an id");
    daemon.crash();
    daemon.again();
    assert_eq!(info(&daemon, id)["last_error"], why);
}

/// A client of the socket, line by line.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn connect(daemon: &Daemon) -> Raw {
        let socket = daemon.root().join("run/missiond/missiond.sock");
        Raw(BufReader::new(
            UnixStream::connect(socket).expect("it listens"),
        ))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.0.get_mut(), "{request}").expect("it is taken");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }
}

#[test]
fn a_session_may_end_with_the_connection_that_asked_for_it() {
    let mut daemon = daemon();
    let made = |client: &mut Raw, id: &str, tied: bool| {
        client.ask(
            "spawn",
            json!({"id": id, "command": ["cat"], "with_connection": tied}),
        )
    };
    let mut client = Raw::connect(&daemon);
    made(&mut client, "tied", true);
    made(&mut client, "free", false);
    let exec = json!({"cmd": "sleep 1000", "with_connection": true});
    let exec = client.ask("unified_exec", exec)["session_id"].clone();
    assert_eq!(info(&daemon, "tied")["is_alive"], true);
    drop(client);
    wait_exit(&daemon, "tied");
    wait_exit(&daemon, exec.as_str().expect("an id"));
    let ended = info(&daemon, "tied");
    let why = ended["last_error"].as_str().expect("a reason");
    assert!(why.contains("connection has ended"), "{ended}");
    assert_eq!(info(&daemon, "free")["is_alive"], true);
    // The connection ends with the daemon as well.
    let mut client = Raw::connect(&daemon);
    made(&mut client, "later", true);
    daemon.crash();
    daemon.again();
    wait_exit(&daemon, "later");
    until("the one that is free to be taken up", || {
        (info(&daemon, "free")["is_alive"] == true).then_some(())
    });
}

#[test]
fn the_older_names_of_the_parameters_are_taken() {
    let daemon = daemon();
    let mut client = Raw::connect(&daemon);
    let exec = json!({"cmd": "pwd; read x; echo got-$x; read y", "workdir": "/", "yield_time_ms": 50,
        "shell": "/bin/sh", "login": true, "max_output_tokens": 100});
    let started = client.ask("unified_exec", exec);
    assert_eq!(started["running"], true, "{started}");
    let id = started["session_id"].as_str().expect("an id");
    let look = json!({"session_id": id, "chars": "yes\n", "yield_time_ms": 1000});
    client.ask("write_stdin", look);
    wait_output(&daemon, id, "^got-yes$");
    assert!(output(&daemon, id).starts_with("/\n"));
    // One line runs in $SHELL, where nothing else is named.
    let shell = json!({"cmd": "echo $0", "env": {"SHELL": "/bin/bash"}, "yield_ms": 50000});
    assert_eq!(client.ask("unified_exec", shell)["output"], "/bin/bash\n");
    let nobody =
        json!({"cmd": "echo $0", "env": {"SHELL": "/usr/sbin/nologin"}, "yield_ms": 50000});
    assert_eq!(client.ask("unified_exec", nobody)["exit_code"], 0);
}

#[test]
fn a_program_with_a_prompt_is_waited_for_by_its_prompt() {
    let daemon = daemon();
    let script = "n=1; while printf 'ask [%s]: ' $n && read -r l; do sleep 0.5; echo \"got $l\"; n=$((n+1)); done";
    crate::stage::script(&daemon, "repl", script);
    wait_output(&daemon, "repl", "ask \\[1\\]");
    let learned = daemon.cmd(&["type", "repl", "one", "--wait", "--timeout", "50s"]);
    assert_eq!(learned.expect(0).stdout, "got one\n");
    let named = [
        "type",
        "repl",
        "two",
        "--until-prompt",
        r"^ask \[\d+\]: ?$",
        "--timeout",
        "50s",
    ];
    assert_eq!(daemon.cmd(&named).expect(0).stdout, "got two\n");
    let never = [
        "type",
        "repl",
        "x",
        "--until-prompt",
        "^never$",
        "--timeout",
        "2s",
    ];
    daemon.cmd(&never).expect(124);
    daemon
        .cmd(&["type", "repl", "x", "--until-prompt", "("])
        .expect(2);
}

#[test]
fn the_interpreter_of_python_is_waited_for_by_its_prompt() {
    let daemon = daemon();
    if !has("python3") {
        return;
    }
    spawn(&daemon, &["--id", "py", "--", "python3", "-q", "-i"]);
    wait_output(&daemon, "py", "^>>>");
    let answer = daemon.json(&["type", "py", "print(6 * 7)", "--wait", "--timeout", "50s"]);
    let output = answer["output"].as_str().expect("text");
    assert!(output.contains("42") && !output.contains(">>>"), "{answer}");
}

#[test]
fn what_a_session_uses_is_told_or_said_to_be_unknown() {
    let daemon = daemon();
    spawn(&daemon, &["--id", "plain", "--", "cat"]);
    let plain = info(&daemon, "plain");
    assert!(
        plain["memory"].is_u64() && plain["cpu"].is_number(),
        "{plain}"
    );
    assert!(plain["network"].is_null(), "{plain}");
    let why = plain["network_unknown"].as_str().expect("a reason");
    assert!(why.contains("namespace"), "{plain}");
    let shown = daemon.cmd(&["info", "plain"]).expect(0);
    assert!(shown.stdout.contains("network   not counted"), "{shown}");
    // In a namespace of its own the figures are its own.
    let unshared = ["exec", "--yield", "50s", "--", "unshare", "-rn", "true"];
    if daemon.cmd(&unshared).code != 0 {
        return skip("the network of a session is not counted (needs unshare -rn)");
    }
    spawn(&daemon, &["--id", "apart", "--", "unshare", "-rn", "cat"]);
    until("the namespace to be made", || {
        let apart = info(&daemon, "apart");
        (apart["network"]["received"] == 0 && apart["network_unknown"].is_null()).then_some(())
    });
}
