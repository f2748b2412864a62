//! The daemon under a service manager: readiness, the watchdog and a socket that was passed on.

use crate::support::daemon::missiond;
use crate::support::{PATIENCE, processes, skip, until};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Stdio};

const CONFIG: &str = "[[slot]]\nname = \"a\"\nkind = \"shell\"\ncwd = \".\"\nautostart = false\n\
    command = [\"sh\"]\n";

/// Started as a service manager does it: the socket is descriptor 3, and the variables name this process.
fn start(root: &Path, listener: UnixListener) -> Child {
    let program = missiond(root);
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" run";
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", script])
        .arg(program.get_program())
        .env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
        .env("NOTIFY_SOCKET", root.join("notify.sock"))
        .env("WATCHDOG_USEC", "400000")
        .current_dir(root)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .spawn()
        .expect("sh runs")
}

fn hear(service: &UnixDatagram, wanted: &str) -> String {
    let mut text = [0; 4096];
    until(wanted, || {
        let length = service.recv(&mut text).expect("the daemon speaks");
        let said = String::from_utf8_lossy(&text[..length]).into_owned();
        let heard = said.lines().any(|line| line == wanted);
        heard.then_some(said)
    })
}

/// A directory with a config, and the socket's own inside.
fn stage() -> tempfile::TempDir {
    let dir = tempfile::Builder::new()
        .prefix("md")
        .tempdir()
        .expect("a directory");
    let root = dir.path();
    for private in ["run", "run/missiond", "state", "home"] {
        let mut builder = fs::DirBuilder::new();
        builder
            .mode(0o700)
            .create(root.join(private))
            .expect("it can be made");
    }
    fs::write(root.join("slots.toml"), CONFIG).expect("it can be written");
    dir
}

#[test]
fn the_service_manager_is_told_and_its_socket_is_used_and_left() {
    let root = stage();
    let root = root.path();
    let service = UnixDatagram::bind(root.join("notify.sock")).expect("a socket");
    service.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let socket = root.join("run/missiond/missiond.sock");
    let mut daemon = start(root, UnixListener::bind(&socket).expect("a socket"));
    let said = hear(&service, "READY=1");
    assert!(said.contains("STATUS=1 slot"), "{said}");
    hear(&service, "WATCHDOG=1");
    let status = missiond(root)
        .arg("status")
        .output()
        .expect("missiond runs");
    assert!(status.status.success(), "{status:?}");
    let down = missiond(root).arg("down").output().expect("missiond runs");
    assert!(down.status.success(), "{down:?}");
    hear(&service, "STOPPING=1");
    let ended = until("its end", || daemon.try_wait().expect("it is a child"));
    assert!(ended.success(), "{ended:?}");
    assert!(socket.exists(), "the socket is the service manager's");
    processes::kill_all_of(root);
}

/// The service manager listens before there is a daemon: a client may be there first, and name another config.
#[test]
fn a_client_of_another_config_is_refused_by_the_daemon_that_it_starts() {
    let root = stage();
    let root = root.path();
    let (one, other) = (root.join("slots.toml"), root.join("other.toml"));
    fs::write(&other, CONFIG).expect("it can be written");
    let socket = root.join("run/missiond/missiond.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let named = |flags: &[&Path]| {
        let mut client = missiond(root);
        client.arg("status").arg("-c").arg(&other);
        client.args(flags.iter().flat_map(|flag| [Path::new("--socket"), flag]));
        client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().expect("missiond runs")
    };
    let clients = [named(&[]), named(&[&socket])];
    let mut daemon = start(root, listener);
    for client in clients {
        let client = client.wait_with_output().expect("it runs");
        let said = String::from_utf8_lossy(&client.stderr);
        assert_eq!(client.status.code(), Some(4), "{said}");
        for config in [&one, &other] {
            assert!(said.contains(&*config.to_string_lossy()), "{said}");
        }
    }
    // Nothing was asked of it but who it is.
    let status = missiond(root).arg("status").output();
    assert!(status.expect("missiond runs").status.success());
    let down = missiond(root).arg("down").output();
    assert!(down.expect("missiond runs").status.success());
    until("its end", || daemon.try_wait().expect("it is a child"));
    processes::kill_all_of(root);
}

/// The files in `dist/`, by systemd's own judgement.
#[test]
fn the_units_are_good() {
    let root = tempfile::tempdir().expect("a directory");
    let bin = root.path().join(".cargo/bin");
    fs::create_dir_all(&bin).expect("it can be made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_missiond"), bin.join("missiond"))
        .expect("a link");
    let verify = std::process::Command::new("systemd-analyze")
        .args(["verify", "--user"])
        .args(["dist/missiond.service", "dist/missiond.socket"])
        .env("HOME", root.path())
        .env("XDG_RUNTIME_DIR", root.path())
        .output();
    let Ok(verify) = verify else {
        return skip("the units are not looked at (needs systemd-analyze)");
    };
    let said = String::from_utf8_lossy(&verify.stderr);
    assert!(verify.status.success() && said.is_empty(), "{said}");
}
