//! A disk of the recording that does not answer: nobody waits for it for long, and what is lost is counted.

use crate::stage::*;
use crate::support::frozen_disk::FrozenDisk;
use std::time::Instant;

/// A disk that hangs does so for ever. This is a long time for one that does not.
const SOON: Duration = Duration::from_secs(20);

const ECHOES: &str = "stty -echo; echo ready; while read -r line; do echo \"got $line\"; done";

/// A stage whose recording lies on a disk that can be frozen.
fn frozen_stage() -> Option<(Stage, FrozenDisk)> {
    let mut stage = Stage::new();
    let disk = FrozenDisk::mount(&stage.path("disk"))?;
    stage.recording = stage.path("disk").join("test.cast");
    Some((stage, disk))
}

#[tokio::test]
async fn a_hung_recording_holds_up_no_key_and_no_end_and_gets_everything_later() {
    let Some((stage, mut disk)) = frozen_stage() else {
        return;
    };
    let mut shim = stage.sh(ECHOES).await;
    shim.until_text("ready").await;
    disk.freeze();
    let begun = Instant::now();
    shim.input(1, "one\n");
    shim.until_text("got one").await;
    shim.until_heard(FromShim::RecordingHangs { hangs: true })
        .await;
    shim.input(2, "two\n");
    shim.until_text("got two").await;
    let path = stage.recording.display().to_string();
    assert!(shim.has_trouble(&path), "{:?}", shim.heard);

    // A daemon that comes meanwhile gets what waits, each once and in order.
    let mut next = stage.adopt().await;
    next.until_heard(FromShim::RecordingHangs { hangs: true })
        .await;
    next.input(3, "three\n");
    next.until_text("got three").await;
    assert_eq!(next.text(), "ready\r\ngot one\r\ngot two\r\ngot three\r\n");
    next.send(ToShim::Stop { grace_ms: 1000 });
    next.exit().await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());

    // It ends, nobody takes it for the shim of a program any more, and it still writes.
    next.send(ToShim::Dismiss);
    let socket = stage.path("test.sock");
    eventually("the socket is gone", || !socket.exists()).await;
    let comm = std::fs::read_to_string(format!("/proc/{}/comm", next.hello.shim_pid));
    assert_ne!(comm.expect("it still writes").trim(), "missiond-shim");
    disk.thaw();
    let pid = next.hello.shim_pid;
    eventually("the shim is gone", || !is_running(pid)).await;
    assert_eq!(stage.all_recorded(), next.text());
    let marks = stage.marks("m");
    assert!(
        marks.last().is_some_and(|mark| mark.starts_with("exit")),
        "{marks:?}"
    );
    assert!(
        !marks.iter().any(|mark| mark.starts_with("gap")),
        "{marks:?}"
    );
}

#[tokio::test]
async fn a_program_outlives_a_disk_that_hangs_and_what_has_no_room_is_counted() {
    let Some((stage, mut disk)) = frozen_stage() else {
        return;
    };
    let flood = "stty raw; echo ready; read x; \
        head -c 3000000 /dev/zero | tr '\\0' x; echo end; exec cat";
    let mut shim = stage.sh(flood).await;
    let before = stage.count("o", shim.hello.recorded as usize);
    shim.until_text("ready").await;
    disk.freeze();
    shim.input(1, "go\n");
    shim.until_text("end").await;
    disk.thaw();
    shim.until("the loss to be told", |shim| {
        shim.has_trouble("are missing from it")
    })
    .await;
    let answers = FromShim::RecordingHangs { hangs: false };
    assert_eq!(shim.heard.iter().filter(|one| **one == answers).count(), 1);
    let heard = shim.heard.iter();
    let heard = heard.filter(|message| matches!(message, FromShim::Output { .. }));
    let written = before + heard.count();
    let length = std::fs::metadata(&stage.recording).expect("a file").len();
    let kept = stage.count("o", length as usize);
    let lost: usize = stage
        .marks("m")
        .iter()
        .filter_map(|mark| lost_by(mark))
        .sum();
    assert!(lost > 0 && kept > before, "{lost} lost, {kept} kept");
    assert_eq!(kept + lost, written, "every event is kept or counted");
    shim.input(2, "after\n");
    shim.until_text("after").await;
    assert!(stage.all_recorded().ends_with("after\n"));
    shim.send(ToShim::Stop { grace_ms: 1000 });
    shim.exit().await;
    shim.dismiss().await;
}

/// How many events this mark says are missing.
fn lost_by(mark: &str) -> Option<usize> {
    let (count, why) = mark.strip_prefix("gap: ")?.split_once(' ')?;
    assert!(why.contains("the disk did not answer"), "{mark}");
    count.parse().ok()
}

/// A new program of the slot waits for the shim before it, which still writes, and is not refused for good.
#[tokio::test]
async fn a_start_on_a_disk_that_hangs_is_no_refusal() {
    let Some((stage, mut disk)) = frozen_stage() else {
        return;
    };
    disk.freeze();
    let begun = Instant::now();
    let failed = launch(&stage.spec(&["/bin/cat"])).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let Err(LaunchError::NotNow(why)) = failed else {
        panic!("{failed:?}");
    };
    assert!(
        why.contains("does not answer") && why.contains("test.cast"),
        "{why}"
    );
    disk.thaw();
}
