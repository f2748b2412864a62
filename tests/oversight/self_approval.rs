//! What a slot runs may look at the status, and nothing more.

use super::inside::{executable, missiond_in, refusals, run_in, shells};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{skip, until};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;

#[test]
fn a_slot_sees_the_status_and_is_refused_everything_else() {
    let daemon = shells();
    for arguments in ["status", "stats"] {
        let ended = missiond_in(&daemon, "one", "", arguments);
        assert_eq!(ended.code, "0", "{arguments}: {ended:?}");
    }
    assert!(refusals(&daemon).is_empty());
    let forbidden = [
        ("confirm two yes", "confirm"),
        ("confirm one yes", "confirm"),
        ("send two hello", "send"),
        ("start two", "start"),
        ("stop two", "stop"),
        ("restart two", "restart"),
        ("interrupt two", "interrupt"),
        ("write two x", "write"),
        ("reload", "reload"),
        // It looks what it would end, and is refused that too.
        ("down", "sessions"),
        ("down --yes", "sessions down"),
        ("screen two", "screen"),
        ("history two", "history"),
        ("events", "events"),
    ];
    for (arguments, _) in forbidden {
        let ended = missiond_in(&daemon, "one", "", arguments);
        assert_eq!(ended.code, "4", "{arguments}: {ended:?}");
        assert!(
            ended.output.contains("inside slot one"),
            "{arguments}: {ended:?}"
        );
    }
    let written = refusals(&daemon);
    let methods: Vec<&str> = written
        .iter()
        .filter_map(|entry| entry["input"]["method"].as_str())
        .collect();
    let expected: Vec<&str> = forbidden
        .iter()
        .flat_map(|(_, methods)| methods.split(' '))
        .collect();
    assert_eq!(methods, expected);
    for entry in &written {
        assert_eq!(entry["slot"], "one", "{entry}");
        assert_eq!(entry["verdict"], "deny", "{entry}");
        assert!(entry["uid"].is_u64() && entry["pid"].is_u64(), "{entry}");
    }
    assert!(daemon.log("one").contains("nobody approves himself"));
    assert_eq!(daemon.status("two")["restarts"], 0);
    daemon.cmd(&["stop", "two"]).expect(0);
}

/// A person has chosen the command of `[notify]`, and is not in it: what the daemon runs approves nothing, neither as its
/// child nor as an orphan in a session of its own, with no environment.
#[test]
fn what_notify_runs_sees_the_status_and_is_refused_everything_else() {
    let place = tempfile::tempdir().expect("a directory");
    let script = place.path().join("notify.sh");
    let notify = toml::Value::from(vec!["sh".to_owned(), script.display().to_string()]);
    let fails = "kind = \"shell\"\nautostart = false\ncommand = [\"/no/such/program\"]";
    let setup = Setup::new()
        .slot_with("one", "kind = \"shell\"")
        .slot_with("fails", fails)
        .table(&format!("[notify]\ncommand = {notify}"));
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    daemon.wait_state("one", "idle");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let call = format!(
        "env -i MISSIOND_SOCKET={} {}",
        socket.display(),
        env!("CARGO_BIN_EXE_missiond")
    );
    let noted = |arguments: &str, file: &str| {
        format!("{call} {arguments} >{file}.said 2>&1; echo $? >{file}.new; mv {file}.new {file}")
    };
    let orphan = format!(
        "until [ $(cut -d' ' -f4 /proc/$$/stat) = {} ]; do sleep 0.05; done\n{}\n",
        daemon.pid(),
        noted("stop one", "orphan")
    );
    fs::write(place.path().join("orphan.sh"), orphan).expect("a file");
    let lines = [
        format!("cd {}", place.path().display()),
        noted("status", "status"),
        noted("stop one", "stop"),
        noted("confirm one yes", "confirm"),
        noted("reload", "reload"),
        "(setsid sh orphan.sh &)".to_owned(),
    ];
    fs::write(&script, lines.join("\n")).expect("a file");
    // It gives up at once, which a person is told of.
    let _ = daemon.cmd(&["start", "fails"]);
    for (file, expected) in [
        ("status", "0"),
        ("stop", "4"),
        ("confirm", "4"),
        ("reload", "4"),
        ("orphan", "4"),
    ] {
        let file = place.path().join(file);
        let code = until("the command of [notify]", || fs::read_to_string(&file).ok());
        let said = fs::read_to_string(file.with_extension("said")).unwrap_or_default();
        assert_eq!(code.trim(), expected, "{}: {said}", file.display());
        assert!(expected == "0" || said.contains("not a person"), "{said}");
    }
    assert_eq!(refusals(&daemon).len(), 4);
    assert_eq!(daemon.status("one")["state"], "idle");
}

/// Losing its parents does not take a process out of its slot: the shim adopts it.
#[test]
fn an_orphan_in_a_session_of_its_own_with_no_environment_is_still_inside() {
    let daemon = shells();
    let shim = daemon.status("one")["shim_pid"].clone();
    let script = format!(
        "until [ $(cut -d' ' -f4 /proc/$$/stat) = {shim} ]; do sleep 0.05; done\n\
         env -i MISSIOND_SOCKET=$MISSIOND_SOCKET {} stop two >said 2>&1\n\
         echo $? >ended.new; mv ended.new ended\n",
        env!("CARGO_BIN_EXE_missiond")
    );
    let cwd = daemon.cwd("one");
    fs::write(cwd.join("orphan.sh"), script).expect("a file");
    let began = run_in(&daemon, "one", "(setsid sh orphan.sh &)");
    assert_eq!(began.code, "0", "{began:?}");
    let code = until("the orphan to be answered", || {
        fs::read_to_string(cwd.join("ended")).ok()
    });
    let said = fs::read_to_string(cwd.join("said"));
    assert_eq!(code.trim(), "4", "{said:?}");
    assert_eq!(refusals(&daemon).len(), 1);
    assert_eq!(daemon.status("two")["state"], "idle");
}

/// A hook speaks for the slot that it runs in and for a conversation that the slot has.
#[test]
fn a_hook_from_elsewhere_or_of_another_conversation_is_refused() {
    let daemon = shells();
    let call = r#"{"hook_event_name":"PreToolUse","session_id":"5a8b1c9e-0000-4000-8000-000000000000","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    fs::write(daemon.cwd("one").join("call"), call).expect("a file");
    let hook = |slot: &str| {
        let arguments = format!("hook --socket $MISSIOND_SOCKET --slot {slot} <call");
        missiond_in(&daemon, "one", "", &arguments)
    };
    let foreign = hook("two");
    assert_eq!(foreign.code, "2", "{foreign:?}");
    assert!(foreign.output.contains("from slot one"), "{foreign:?}");
    let unknown = hook("one");
    assert_eq!(unknown.code, "2", "{unknown:?}");
    assert!(unknown.output.contains("5a8b1c9e"), "{unknown:?}");
    let socket = fs::read_to_string(format!("/proc/{}/environ", daemon.status("one")["pid"]))
        .expect("the environment of the slot")
        .split('\0')
        .find_map(|variable| variable.strip_prefix("MISSIOND_SOCKET=").map(str::to_owned))
        .expect("a socket");
    let outside = daemon
        .cmd_with_input(&["hook", "--socket", &socket, "--slot", "one"], call)
        .expect(2);
    assert!(outside.stderr.contains("outside"), "{outside}");
    let written = refusals(&daemon);
    assert_eq!(written.len(), 3, "{written:?}");
    assert_eq!(written[0]["slot"], "one");
    assert_eq!(
        written[1]["session"],
        "5a8b1c9e-0000-4000-8000-000000000000"
    );
    assert!(daemon.log("one").contains("WARNING   refused: "));
}

/// That a conversation has begun is not believed because a hook says so. The real `/clear` is in the tests of the whole.
#[test]
fn a_forged_start_leads_to_no_other_conversation() {
    let setup = Setup::new().slot("one").policy("one", "");
    let directory = tempfile::tempdir().expect("a directory");
    let command = [executable(&directory, "#!/bin/sh\nexec /bin/sh\n")];
    let daemon = Daemon::start_with(&setup, &command);
    until("the slot to run", || {
        daemon.status("one")["pid"].as_u64().map(drop)
    });
    let own = daemon.status("one")["session_id"].clone();
    let forged = "5a8b1c9e-0000-4000-8000-000000000000";
    let start =
        format!(r#"{{"hook_event_name":"SessionStart","source":"clear","session_id":"{forged}"}}"#);
    fs::write(daemon.cwd("one").join("call"), start).expect("a file");
    let hook = "hook --socket $MISSIOND_SOCKET --slot one <call";
    let said = missiond_in(&daemon, "one", "", hook);
    assert_eq!(said.code, "1", "{said:?}");
    let status = daemon.status("one");
    assert_eq!(status["session_id"], own);
    assert_eq!(status["gate"], "ungated", "{status}");
    assert_eq!(refusals(&daemon)[0]["session"], forged);
    assert!(daemon.log("one").contains(forged));
    // As Claude Code does it.
    let begin = run_in(
        &daemon,
        "one",
        &format!("mkdir -p ~/.claude/session-env/{forged}"),
    );
    assert_eq!(begin.code, "0", "{begin:?}");
    let said = missiond_in(&daemon, "one", "", hook);
    assert_eq!(said.code, "0", "{said:?}");
    assert_eq!(daemon.status("one")["session_id"], forged);
}

/// A shim takes keys from a person's processes, and from nothing that any slot runs.
#[test]
fn a_slot_can_not_press_its_own_keys() {
    let daemon = shells();
    let found = run_in(&daemon, "one", "perl -e 'use IO::Socket::UNIX'");
    if found.code != "0" {
        return skip(&format!("there is no perl to connect with: {found:?}"));
    }
    let connects = |slot: &str| {
        let place = daemon.cwd("one").join("said");
        let script = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; \
                      my $n = sysread($s, my $b, 1); print $n ? 1 : 0;";
        fs::write(daemon.cwd("one").join("connect.pl"), script).expect("a file");
        let shims = format!("$(dirname $MISSIOND_SOCKET)/shims/*{slot}*");
        let ended = run_in(&daemon, "one", &format!("perl connect.pl {shims} >said"));
        assert_eq!(ended.code, "0", "{ended:?}");
        fs::read_to_string(place).expect("an answer")
    };
    assert_eq!(connects("two"), "0", "the shim of another slot");
    assert_eq!(connects("one"), "0", "its own shim");
    let socket = daemon.root().join("run/missiond/shims/missiond.two.sock");
    let mut outside = UnixStream::connect(socket).expect("a shim listens");
    let mut greeting = [0];
    assert_eq!(outside.read(&mut greeting).expect("a greeting"), 1);
}

/// `[mcp]` grants what it names, on the slots that it names, and never an approval.
#[test]
fn a_role_can_grant_some_of_it() {
    let setup = Setup::new().slot("one").slot("two").policy(
        "one",
        "[mcp]\nallow = [\"stop\", \"send\"]\nslots = [\"two\"]\n",
    );
    // A shell in place of Claude Code, whatever arguments it is given.
    let directory = tempfile::tempdir().expect("a directory");
    let command = [executable(&directory, "#!/bin/sh\nexec /bin/sh\n")];
    let daemon = Daemon::start_with(&setup, &command);
    for slot in ["one", "two"] {
        until("the slot to run", || {
            daemon.status(slot)["pid"].as_u64().map(drop)
        });
    }
    for refused in [
        "confirm two yes",
        "start two",
        "stop one",
        "stop --all",
        "send two --slash /help",
        "send two --shell '!ls'",
    ] {
        let ended = missiond_in(&daemon, "one", "", refused);
        assert_eq!(ended.code, "4", "{refused}: {ended:?}");
        assert!(ended.output.contains("inside slot one"), "{ended:?}");
    }
    let ended = missiond_in(&daemon, "one", "", "stop two");
    assert_eq!(ended.code, "0", "{ended:?}");
    assert_eq!(daemon.status("two")["state"], "exited");
    assert_eq!(refusals(&daemon).len(), 6);
}
