//! Ways out of a slot that begin with the end of its shim. What is left of the slot then has nothing of it above itself
//! and nothing of it in its environment, and is still no person.

use super::inside::{refusals, run_in, shells};
use crate::support::daemon::{Daemon, missiond};
use crate::support::{processes, skip, until};
use rustix::fs::XattrFlags;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is run inside slot `one`, in an empty environment. `$KILL` ends the shim, `$UP` waits until the slot is up
/// again, `$ORPHANED` until the process has lost its parent, and `$CALL` types into slot `two`.
const ESCAPES: &[(&str, &str)] = &[
    ("at once", "setsid -f sh -c '$KILL; $CALL'"),
    (
        "when the slot is up again",
        "setsid -f sh -c '$KILL; $UP; $CALL'",
    ),
    (
        "twice detached",
        "setsid -f setsid -f sh -c '$KILL; $UP; $CALL'",
    ),
    (
        "by a child that is born after the kill",
        "setsid -f sh -c '$KILL; $UP; setsid -f sh -c \"$ORPHANED; $CALL\"'",
    ),
    (
        "by the child of a child, all others gone",
        "setsid -f sh -c '$KILL; setsid -f sh -c \"setsid -f sh child.sh\"'",
    ),
    (
        "without a session of its own",
        "sh -c 'trap \"\" HUP; (sh -c \"$KILL; $UP; $CALL\" &)'",
    ),
];

/// Runs an escape in slot `one` of this daemon; what `missiond` answered, and its exit code.
fn escape(daemon: &Daemon, line: &str) -> (String, String) {
    let cwd = daemon.cwd("one");
    let shim = &daemon.status("one")["shim_pid"];
    let socket = run_in(daemon, "one", "echo $MISSIOND_SOCKET").output;
    let missiond = format!(
        "env -i MISSIOND_SOCKET={} {}",
        socket.trim(),
        env!("CARGO_BIN_EXE_missiond")
    );
    let other_shim = format!("grep -o 'shim_pid\": *[0-9]*[0-9]' | grep -qv {shim}");
    let files = [
        (
            "call.sh",
            format!(
                "{missiond} write two \"touch escaped\n\" >said 2>&1; echo $? >ended.new; mv ended.new ended\n"
            ),
        ),
        (
            "up.sh",
            format!(
                "until {missiond} status one --json 2>&1 | {other_shim}; do [ -e up.sh ] || exit; sleep 0.1; done\n"
            ),
        ),
        (
            "orphaned.sh",
            "while [ -d /proc/$1 ] && [ -e up.sh ]; do sleep 0.05; done\n".to_owned(),
        ),
        ("child.sh", "sh up.sh; sh call.sh\n".to_owned()),
    ];
    for (name, text) in files {
        fs::write(cwd.join(name), text).expect("a file");
    }
    let line = line
        .replace("$KILL", &format!("kill -9 {shim}"))
        .replace("$UP", "sh up.sh")
        .replace("$ORPHANED", "sh orphaned.sh $$")
        .replace("$CALL", "sh call.sh");
    let line = format!("env -i PATH=$PATH {line}\n");
    daemon.cmd(&["write", "one", &line]).expect(0);
    let code = until(&line, || fs::read_to_string(cwd.join("ended")).ok());
    let said = fs::read_to_string(cwd.join("said")).expect("an answer");
    (said, code.trim().to_owned())
}

/// It was refused, it is written down, and nothing was typed.
fn is_refused(daemon: &Daemon, way: &str, (said, code): (String, String), why: &str) {
    assert_eq!(code, "4", "{way}: {said}");
    assert!(said.contains(why), "{way}: {said}");
    let written = refusals(daemon);
    assert_eq!(written.len(), 1, "{way}: {written:?}");
    assert_eq!(written[0]["slot"], "one", "{way}: {written:?}");
    let typed = daemon.cwd("two").join("escaped");
    assert!(!typed.exists(), "{way}");
}

/// Who is nothing of a slot's is a person still, whenever they began: here by a process that nobody is the parent of.
fn others_are_people(daemon: &Daemon) {
    daemon.cmd(&["write", "two", "touch person\n"]).expect(0);
    let missiond = env!("CARGO_BIN_EXE_missiond");
    let line = format!(
        "setsid -f sh -c \"until [ ! -d /proc/$$ ]; do sleep 0.05; done; {missiond} write two 'touch detached\n'\""
    );
    daemon.in_shell(daemon.root(), &line).expect(0);
    for file in ["person", "detached"] {
        let file = daemon.cwd("two").join(file);
        until("a person's keys", || file.exists().then_some(()));
    }
}

#[test]
fn what_a_killed_shim_leaves_is_no_person() {
    for (way, line) in ESCAPES {
        let daemon = shells();
        let answer = escape(&daemon, line);
        is_refused(&daemon, way, answer, "left over from slot one");
        others_are_people(&daemon);
    }
}

/// The next daemon is not above the shims that it takes up.
#[test]
fn what_a_killed_shim_of_an_earlier_daemon_leaves_is_no_person() {
    let mut daemon = shells();
    daemon.crash();
    daemon.again();
    daemon.wait_state("one", "idle");
    let answer = escape(&daemon, ESCAPES[1].1);
    is_refused(&daemon, "taken up", answer, "left over from slot one");
    daemon.cmd(&["write", "two", "touch person\n"]).expect(0);
}

/// A control group that is delegated as systemd does it; `None` if this machine lets nobody make one.
fn delegated() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mount = mount.split(' ').nth(4)?;
    let group = Path::new(mount).join(format!("missiond-test-{}", std::process::id()));
    fs::create_dir(&group).ok()?;
    let marked = rustix::fs::setxattr(&group, "user.delegate", b"1", XattrFlags::empty());
    marked.is_ok().then_some(group)
}

/// With a control group of its own, all of a slot is known and ended, whatever became of parents and environments.
#[test]
fn a_slot_with_a_control_group_is_known_by_it_and_ended_with_it() {
    let Some(group) = delegated() else {
        return skip("no control group can be made here");
    };
    let mut daemon = shells();
    daemon.cmd(&["down", "--yes"]).expect(0);
    let program = missiond(daemon.root());
    let mut inside = Command::new("sh");
    let enter = format!(
        "echo 0 >{}/cgroup.procs; exec \"$0\" \"$@\"",
        group.display()
    );
    inside.args(["-c", &enter]).arg(program.get_program());
    inside.env_clear().current_dir(daemon.root());
    for (name, value) in program.get_envs() {
        inside.env(name, value.unwrap_or_default());
    }
    daemon.again_as(inside);
    daemon.wait_state("one", "idle");
    let shim = daemon.status("one")["shim_pid"].to_string();
    let groups = fs::read_to_string(format!("/proc/{shim}/cgroup")).expect("it runs");
    let own = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .expect("a group");
    assert!(own.ends_with("/one"), "{own}");
    let own = group.parent().expect("a mount").join(own);
    // A process of the test's, which no shim is above.
    let call = format!(
        "echo 0 >{}/cgroup.procs; {} write two x",
        own.display(),
        env!("CARGO_BIN_EXE_missiond")
    );
    let said = daemon.in_shell(daemon.root(), &call).expect(4);
    assert!(said.stderr.contains("inside slot one"), "{said}");
    let left = "setsid -f env -i sh -c 'trap \"\" TERM; echo $$ >left; while [ -e left ]; do sleep 0.1; done'";
    let left = leave(&daemon, left);
    processes::kill(shim.parse().expect("a pid"));
    until("the end of all that the slot had left", || {
        processes::start_of(left).is_none().then_some(())
    });
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    until("the groups to be removed", || fs::remove_dir(&group).ok());
}

/// Has slot one start a process that writes its pid to `left`, and goes on without it.
fn leave(daemon: &Daemon, process: &str) -> i32 {
    let and_waits = format!("{process}; until [ -s left ]; do sleep 0.05; done");
    run_in(daemon, "one", &and_waits);
    let pid = fs::read_to_string(daemon.cwd("one").join("left")).expect("a pid");
    pid.trim().parse().expect("a pid")
}

/// The daemon adopts what its slots leave, and so it has to reap it.
#[test]
fn no_dead_process_stays_with_the_daemon() {
    let daemon = shells();
    let shim = daemon.status("one")["shim_pid"].as_i64().expect("a shim");
    let shim = i32::try_from(shim).expect("a pid");
    let left = "setsid -f env -i sh -c 'echo $$ >left; until [ -e end ]; do sleep 0.05; done'";
    let left = leave(&daemon, left);
    processes::kill(shim);
    until("the shim to be reaped", || {
        processes::start_of(shim).is_none().then_some(())
    });
    until("the orphan to be the daemon's", || {
        (processes::parent_of(left) == Some(daemon.pid())).then_some(())
    });
    fs::write(daemon.cwd("one").join("end"), "").expect("a file");
    until("the orphan to be reaped", || {
        processes::start_of(left).is_none().then_some(())
    });
    daemon.wait_state("one", "idle");
}
