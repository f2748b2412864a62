//! Daemons that die, come back or do not read, and a disk that is full.

use crate::stage::*;
use crate::support::disk::SmallDisk;

#[tokio::test]
async fn the_newest_daemon_is_the_one_that_counts() {
    let stage = Stage::new();
    let mut old = stage.launch(&["/bin/cat"]).await;
    let mut new = stage.adopt().await;
    let ended = tokio::time::timeout(PATIENCE, old.link.next()).await;
    assert!(matches!(ended, Ok(Err(LinkError::Closed))), "{ended:?}");
    new.input(1, "x\n");
    new.until_text("x\r\nx\r\n").await;
}

/// Prints numbered lines as fast as it can, `count` of them.
fn flood(count: usize) -> String {
    format!(
        "stty raw; i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo line $i ééé; done; echo end"
    )
}

fn flooded(count: usize) -> String {
    let lines: String = (1..=count).map(|i| format!("line {i} ééé\n")).collect();
    lines + "end\n"
}

#[tokio::test]
async fn a_daemon_that_dies_in_mid_stream_loses_nothing() {
    const LINES: usize = 20_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    for round in 1..=20 {
        let enough = round * LINES / 25;
        shim.until("more lines", |driven| {
            driven.output.len() > enough * 10 || driven.hello.exit.is_some()
        })
        .await;
        // Dropping the link is all that anyone sees of a daemon that was killed.
        drop(shim);
        shim = stage.adopt().await;
    }
    shim.exit().await;
    assert_eq!(shim.text(), flooded(LINES));
    assert_eq!(stage.all_recorded(), flooded(LINES));
}

/// Where the process that plays a daemon finds its stage.
const STAGE: &str = "SHIM_TEST_STAGE";

/// No test, but the daemon of the next one, in a process of its own.
#[tokio::test]
#[ignore = "started by a_killed_daemon_is_survived_by_its_shim"]
async fn a_daemon_to_be_killed() {
    let Some(dir) = std::env::var_os(STAGE) else {
        return;
    };
    let spec = std::fs::read(Path::new(&dir).join("spec.json")).expect("a specification");
    let spec = serde_json::from_slice(&spec).expect("a specification");
    let (mut link, _) = launch(&spec).await.expect("the shim starts");
    while link.next().await.is_ok() {}
}

#[tokio::test]
async fn a_killed_daemon_is_survived_by_its_shim() {
    const LINES: usize = 20_000;
    let stage = Stage::new();
    let spec = stage.spec(&["/bin/sh", "-c", &flood(LINES)]);
    std::fs::write(stage.path("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
    let mut daemon = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "survival::a_daemon_to_be_killed"])
        .env(STAGE, stage.dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_recording =
        || std::fs::metadata(&stage.recording).is_ok_and(|file| file.len() > 100_000);
    eventually("the flood runs", is_recording).await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let mut shim = stage.adopt().await;
    shim.exit().await;
    assert_eq!(shim.text(), flooded(LINES));
    assert_eq!(stage.all_recorded(), flooded(LINES));
}

#[tokio::test]
async fn a_daemon_that_does_not_read_is_let_go_and_the_child_runs_on() {
    const LINES: usize = 60_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    eventually("the child has ended", || {
        stage.marks("m").last().is_some_and(|mark| mark == "exit 0")
    })
    .await;
    let closed = tokio::time::timeout(PATIENCE, async {
        loop {
            match shim.link.next().await {
                Ok(FromShim::Output { bytes, .. }) => shim.take(&bytes),
                Ok(_) => {}
                Err(fault) => return fault,
            }
        }
    });
    assert!(matches!(closed.await, Ok(LinkError::Closed)));
    assert!(
        flooded(LINES).starts_with(&shim.text()),
        "what came was in order"
    );
    assert_eq!(stage.adopt().await.text(), flooded(LINES));
}

/// While the shim waits for its daemon it does not read the terminal, so that the rest of a character can't come. Wherever
/// a shim stops to read, with letters in front some of them stop inside a character of four bytes.
#[tokio::test]
async fn no_character_is_broken_where_the_terminal_was_not_read_for_a_while() {
    const CHARACTERS: usize = 500_000;
    let bytes = CHARACTERS * "𝄞".len();
    let stages = ["", "x", "xx", "xxx"].map(|letters| (letters, Stage::new()));
    let mut unread = Vec::new();
    for (letters, stage) in &stages {
        let script = format!(
            "stty raw; (printf '{letters}'; yes 𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞 | tr -d '\\n' | head -c {bytes}) | dd bs=4096 iflag=fullblock status=none"
        );
        unread.push(stage.sh(&script).await);
    }
    for (letters, stage) in &stages {
        eventually("the child has ended", || {
            stage.marks("m").last().is_some_and(|mark| mark == "exit 0")
        })
        .await;
        let text = stage.all_recorded();
        let text = text.strip_prefix(letters).expect("the first letters");
        let broken = text.chars().position(|character| character != '𝄞');
        assert_eq!((broken, text.len()), (None, bytes), "behind {letters:?}");
    }
}

/// A daemon on a loaded machine reads slowly, or reads the recording first, and says that it is at work.
#[tokio::test]
async fn a_daemon_that_is_behind_and_says_so_is_waited_for() {
    const LINES: usize = 60_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    let began = std::time::Instant::now();
    // Longer than a shim waits for a daemon that says nothing.
    while began.elapsed() < Duration::from_secs(8) {
        shim.link.say_taking().expect("the shim is there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let marks = stage.marks("m");
    assert_eq!(marks.len(), 1, "the child is held back: {marks:?}");
    // On the same connection, which was never closed.
    shim.exit().await;
    assert_eq!(shim.text(), flooded(LINES));
}

/// The longest time between two pieces of output in the recording, and the longest silence that was told.
fn longest_silence(stage: &Stage, heard: &[FromShim]) -> (Duration, Duration) {
    let file = std::fs::read(&stage.recording).expect("a recording");
    let times: Vec<f64> = events(&file)
        .into_iter()
        .filter(|(_, code, _)| code == "o")
        .map(|(at, _, _)| at)
        .collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let recorded = Duration::from_secs_f64(gaps.fold(0.0, f64::max));
    let (mut last, mut told) = (Duration::ZERO, Duration::ZERO);
    for message in heard {
        match message {
            FromShim::Output { at, .. } => last = *at,
            FromShim::Quiet { at } => told = told.max(*at - last),
            _ => {}
        }
    }
    (recorded, told)
}

/// A program that is held back writes nothing, and a screen that it has half drawn must not look settled: neither to the
/// daemon nor to one that reads the recording.
#[tokio::test]
async fn a_program_that_is_held_back_is_not_silent() {
    const LINES: usize = 60_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    let mut length = 0;
    let mut grows = || {
        let before = std::mem::replace(&mut length, stage.marks("o").len());
        before < length
    };
    while grows() {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(6) {
        shim.link.say_taking().expect("the shim is there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    shim.until_text("end\n").await;
    let (recorded, told) = longest_silence(&stage, &shim.heard);
    assert!(recorded < Duration::from_secs(3), "{recorded:?}");
    assert!(told < Duration::from_secs(1), "{told:?}");
}

/// A shim that gets no processor: what it finds afterwards was perhaps written at once.
#[tokio::test]
async fn time_in_which_a_shim_does_not_read_is_no_silence() {
    let began = std::time::Instant::now();
    let stage = Stage::new();
    let script = "printf half; until [ -e go ]; do :; done; printf rest; : > done; read x";
    let mut shim = stage.sh(script).await;
    shim.until_text("half").await;
    kill(shim.hello.shim_pid, rustix::process::Signal::STOP);
    let before = began.elapsed();
    std::fs::write(stage.path("go"), "").expect("a file");
    eventually("the rest is written", || stage.path("done").exists()).await;
    tokio::time::sleep(before + Duration::from_secs(1)).await;
    kill(shim.hello.shim_pid, rustix::process::Signal::CONT);
    shim.until_text("rest").await;
    let (recorded, told) = longest_silence(&stage, &shim.heard);
    assert!(recorded <= before, "{recorded:?}, {before:?} were heard");
    assert!(told <= before, "{told:?}, {before:?} were heard");
}

#[tokio::test]
async fn a_full_disk_stops_no_child() {
    let mut stage = Stage::new();
    let place = stage.path("disk");
    std::fs::create_dir(&place).expect("a directory");
    let Some(disk) = SmallDisk::mount(&place, "128k") else {
        return;
    };
    stage.recording = disk.path().join("test.cast");
    let mut shim = stage.sh("stty -echo; echo ready; exec cat").await;
    shim.until_text("ready").await;
    disk.fill();
    let long_line = "x".repeat(3000) + "\n";
    shim.input(1, long_line.clone());
    shim.input(2, long_line);
    shim.until("the trouble", |driven| driven.has_trouble("No space left"))
        .await;
    shim.input(3, "lost\n");
    shim.until_text("lost").await;
    disk.free();
    shim.until("the recovery", |driven| {
        driven.has_trouble("the recording goes on")
    })
    .await;
    shim.input(4, "kept\n");
    shim.until_text("kept").await;
    let recorded = stage.all_recorded();
    assert!(
        recorded.ends_with("kept\r\n") && !recorded.contains("lost"),
        "{recorded}"
    );
    assert!(
        stage
            .marks("m")
            .iter()
            .any(|mark| mark.starts_with("gap: "))
    );
    let told = |message: &&FromShim| matches!(message, FromShim::Trouble { .. });
    assert_eq!(shim.heard.iter().filter(told).count(), 2, "once each");
    shim.send(ToShim::Stop { grace_ms: 1000 });
    shim.exit().await;
    shim.dismiss().await;
}

#[tokio::test]
async fn a_rotation_loses_nothing() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    shim.input(1, "one\n");
    shim.until_text("one\r\none\r\n").await;
    let rotate = |seen| ToShim::Rotate {
        to: stage.path("test.1.cast"),
        seen,
        snapshot: "screen".into(),
    };
    shim.send(rotate(Duration::ZERO));
    let refused = |message: &FromShim| matches!(message, FromShim::NotRotated { .. });
    shim.until("a refusal", |driven| driven.heard.iter().any(refused))
        .await;
    shim.send(rotate(Duration::from_secs(1000)));
    let rotated = |message: &FromShim| matches!(message, FromShim::Rotated { .. });
    shim.until("the rotation", |driven| driven.heard.iter().any(rotated))
        .await;
    shim.input(2, "two\n");
    shim.until_text("two\r\ntwo\r\n").await;
    assert_eq!(stage.all_recorded(), "screentwo\r\ntwo\r\n");
    let old = std::fs::read_to_string(stage.path("test.1.cast")).unwrap();
    assert!(old.contains("one") && !old.contains("two"), "{old}");
    drop(shim);
    assert_eq!(stage.adopt().await.text(), "screentwo\r\ntwo\r\n");
}

#[tokio::test]
async fn nonsense_on_the_socket_harms_nobody() {
    use std::io::{Read, Write};
    let stage = Stage::new();
    drop(stage.launch(&["/bin/cat"]).await);
    for nonsense in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[2, 1, 0, 0, 0, b'{'],
        &[1; 8],
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(stage.path("test.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(nonsense).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // It says hello, and hangs up.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let mut shim = stage.adopt().await;
    shim.input(1, "fine\n");
    shim.until_text("fine\r\nfine\r\n").await;
}

#[tokio::test]
async fn a_shim_with_nothing_to_do_sleeps() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    shim.input(1, "x\n");
    shim.until_quiet(2).await;
    let status = format!("/proc/{}/status", shim.hello.shim_pid);
    let wakeups = || figure(&status, "voluntary_ctxt_switches:");
    let sleeps = async || {
        let before = wakeups();
        tokio::time::sleep(Duration::from_millis(500)).await;
        state_of(shim.hello.shim_pid) == Some('S') && wakeups() == before
    };
    // On a busy machine the last silence may be told late.
    for _ in 0..10 {
        if sleeps().await {
            return;
        }
    }
    panic!("it wakes up again and again");
}

/// What many slots cost in memory is mostly this. There are two, since the pages of the program count as
/// private to a process that is the only one to run it, which a shim beside its daemon is not.
#[tokio::test]
async fn a_shim_is_small() {
    let (stage, other) = (Stage::new(), Stage::new());
    let _other = other.launch(&["/bin/cat"]).await;
    let mut shim = stage.sh(&flood(5000)).await;
    shim.until_text("end").await;
    let rollup = format!("/proc/{}/smaps_rollup", shim.hello.shim_pid);
    let private = figure(&rollup, "Private_Dirty:") + figure(&rollup, "Private_Clean:");
    println!("private memory of a shim: {private} kB");
    if !cfg!(debug_assertions) {
        assert!(private < 1536, "{private} kB are private");
    }
}

/// No test, but a program of another slot.
#[tokio::test]
#[ignore = "started by a_program_of_a_slot_is_no_daemon"]
async fn a_program_that_wants_in() {
    let Some(dir) = std::env::var_os(STAGE) else {
        return;
    };
    let came = ShimLink::adopt(&Path::new(&dir).join("test.sock")).await;
    println!("came to {}", if came.is_ok() { "much" } else { "nothing" });
}

#[tokio::test]
async fn a_program_of_a_slot_is_no_daemon() {
    let (own, neighbour) = (Stage::new(), Stage::new());
    let mut shim = own.launch(&["/bin/cat"]).await;
    let test = std::env::current_exe().unwrap();
    let try_it = "--ignored --exact --nocapture survival::a_program_that_wants_in";
    let script = format!(
        "read go; {STAGE}={} {} {try_it}; read x",
        own.dir.path().display(),
        test.display()
    );
    let mut other = neighbour.sh(&script).await;
    other.input(1, "\n");
    other.until_text("came to nothing").await;
    // The daemon that it has did not lose it either.
    shim.input(1, "x\n");
    shim.until_text("x\r\nx\r\n").await;
}

/// The shim is found with nothing but the process table, and reached with its socket made again or with none at all.
#[tokio::test]
async fn a_shim_whose_socket_is_lost_comes_when_it_is_rung_for() {
    let stage = Stage::new();
    let within = stage.path("within");
    let make = || {
        let mut private = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        private.create(&within).unwrap();
    };
    make();
    let socket = within.join("test.sock");
    let spec = ShimSpec {
        socket: socket.clone(),
        ..stage.spec(&["/bin/cat"])
    };
    drop(stage.launch_spec(&spec).await);
    let find = || missiond::shim::Handle::find(stage.dir.path(), "test").unwrap();
    let shim = find().expect("it lives");
    for (n, can_be_made) in [(1, true), (2, false), (3, true), (4, false)] {
        let _ = std::fs::remove_file(&within);
        let _ = std::fs::remove_dir_all(&within);
        if !can_be_made {
            std::fs::write(&within, "").unwrap();
        }
        let came = ShimLink::summon(&shim, &socket).await.expect("it comes");
        let mut driven = stage.drive(came);
        assert_eq!(socket.exists(), can_be_made);
        driven.input(n, format!("round {n}\n"));
        driven
            .until_text(&format!("round {n}\r\nround {n}\r\n"))
            .await;
    }
    shim.dismiss();
    eventually("it is gone", || find().is_none()).await;
    let nobody = ShimLink::summon(&shim, &socket).await;
    assert!(
        matches!(nobody, Err(LaunchError::Unreached { .. })),
        "{nobody:?}"
    );
}
