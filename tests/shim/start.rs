//! How a shim starts, and what it refuses to start.

use crate::stage::*;

#[tokio::test]
async fn what_can_not_start_is_refused_with_the_reason() {
    let stage = Stage::new();
    let write = |name: &str, content: &[u8], mode: u32| {
        let path = stage.path(name);
        std::fs::write(&path, content).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&path, mode).unwrap();
        path.display().to_string()
    };
    let plain = write("plain", b"#!/bin/sh\n", 0o644);
    let lost = write("lost", b"#!/no/such/sh\n", 0o755);
    let missing = stage.path("missing").display().to_string();
    let mut elsewhere = stage.spec(&["/bin/cat"]);
    elsewhere.cwd = "/no/such/directory".into();
    let mut linked = stage.spec(&["/bin/cat"]);
    linked.recording = stage.path("linked.cast");
    std::os::unix::fs::symlink(&plain, &linked.recording).unwrap();
    for (spec, reason) in [
        (stage.spec(&[&missing]), "No such file"),
        (stage.spec(&[&plain]), "not executable"),
        (stage.spec(&[&lost]), "/no/such/sh can't be run"),
        (elsewhere, "/no/such/directory can't be used"),
        (linked, "it is a symbolic link, and none is followed"),
    ] {
        match launch(&spec).await {
            Err(LaunchError::Refused(why)) if why.contains(reason) => {}
            other => panic!("{reason:?} expected, not {other:?}"),
        }
        assert!(!stage.path("test.sock").exists());
    }
    // A refusal leaves nothing in the way of the next start.
    stage.launch(&["/bin/cat"]).await;
    let twice = launch(&stage.spec(&["/bin/cat"])).await;
    assert!(matches!(twice, Err(LaunchError::Refused(why)) if why.contains("in use")));
}

/// The kernel's reason may pass: an update still writes the program. The settings are not to blame.
#[tokio::test]
async fn a_program_that_the_kernel_does_not_run_now_is_no_refusal() {
    let stage = Stage::new();
    let executable = |name: &str, content: &[u8]| {
        let path = stage.path(name);
        let mut options = std::fs::File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
        let file = options.create_new(true).write(true).open(&path);
        let mut file = file.expect("a new file");
        std::io::Write::write_all(&mut file, content).expect("it takes the bytes");
        (path.display().to_string(), file)
    };
    let (loaderless, written) = executable("loaderless", &without_loader("/bin/cat"));
    drop(written);
    let (updated, still_written) = executable("updated", &std::fs::read("/bin/cat").unwrap());
    for program in [&loaderless, &updated] {
        let launched = launch(&stage.spec(&[program])).await;
        assert!(
            matches!(&launched, Err(LaunchError::NotNow(why)) if why.contains("could not execute")),
            "{launched:?}"
        );
    }
    drop(still_written);
    stage.launch(&[&updated]).await;
}

/// What was removed while the daemon runs is made again, and the next start succeeds: the settings are not to blame.
#[tokio::test]
async fn a_directory_that_is_lost_is_no_refusal() {
    let stage = Stage::new();
    let mut no_socket = stage.spec(&["/bin/cat"]);
    no_socket.socket = stage.path("gone/test.sock");
    let mut no_recording = stage.spec(&["/bin/cat"]);
    no_recording.recording = stage.path("gone/test.cast");
    for spec in [no_socket, no_recording] {
        let launched = launch(&spec).await;
        assert!(
            matches!(&launched, Err(LaunchError::NotNow(why)) if why.contains("gone")),
            "{launched:?}"
        );
    }
    stage.launch(&["/bin/cat"]).await;
}

/// A program whose dynamic loader does not exist, which only the kernel finds out.
fn without_loader(program: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(program).expect("a program");
    let (loader, nothing) = (b"/ld-linux", b"/no-linux");
    let at = bytes
        .windows(loader.len())
        .position(|window| window == loader);
    let at = at.expect("a dynamically linked program");
    bytes[at..at + nothing.len()].copy_from_slice(nothing);
    bytes
}

#[tokio::test]
async fn nothing_but_the_given_environment_reaches_the_child() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["/usr/bin/env"]);
    spec.env.push(("SHELL".into(), "/bin/sh".into()));
    let mut shim = stage.launch_spec(&spec).await;
    shim.exit().await;
    let mut got: Vec<_> = shim.text().lines().map(str::to_owned).collect();
    got.sort();
    assert_eq!(
        got,
        ["HOME=/", "LC_ALL=C", "PATH=/usr/bin:/bin", "SHELL=/bin/sh"]
    );
}

#[tokio::test]
async fn a_shim_is_reached_in_a_directory_of_any_depth() {
    let stage = Stage::new();
    let deep = stage.path(&"d".repeat(120));
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::create_dir(&deep).unwrap();
    std::fs::set_permissions(&deep, private).unwrap();
    let mut spec = stage.spec(&["/bin/cat"]);
    spec.socket = deep.join("test.sock");
    let first = stage.launch_spec(&spec).await;
    drop(first);
    let adopted = ShimLink::adopt(&spec.socket).await;
    let mut again = stage.drive(adopted.expect("the shim answers"));
    again.input(1, "hello\n");
    again.until_text("hello\r\nhello\r\n").await;
    again.input(2, "\x04");
    again.exit().await;
    again.dismiss().await;
    assert!(!spec.socket.exists());
}

#[tokio::test]
async fn a_shim_belongs_to_nobody() {
    let stage = Stage::new();
    let shim = stage.launch(&["/bin/cat"]).await;
    let pid = shim.hello.shim_pid;
    assert_ne!(parent_of(pid), Some(std::process::id()));
    let own = std::process::id();
    let reaper = crate::support::reaper::pid();
    let is_left = |pid: &u32| *pid != reaper;
    eventually("nothing is left to reap", || {
        !children_of(own).iter().any(is_left)
    })
    .await;
    let session = |pid: u32| {
        let pid = rustix::process::Pid::from_raw(pid as i32);
        rustix::process::getsid(pid).unwrap().as_raw_nonzero().get() as u32
    };
    assert_eq!(session(pid), pid);
    assert_eq!(session(shim.hello.child_pid), shim.hello.child_pid);
    let standard: Vec<_> = (0..3)
        .map(|fd| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap())
        .collect();
    assert_eq!(standard, [Path::new("/dev/null"); 3]);
}

#[tokio::test]
async fn a_restarted_slot_goes_on_in_its_recording() {
    let stage = Stage::new();
    for word in ["first", "second"] {
        let mut shim = stage.sh(&format!("printf {word}")).await;
        shim.exit().await;
        shim.dismiss().await;
    }
    assert_eq!(stage.all_recorded(), "firstsecond");
    assert_eq!(stage.marks("m").len(), 4);
    assert_eq!(stage.marks("r"), ["80x24"], "the size of the second start");
}
