//! What a test program leaves behind when it is killed.

use super::shells::{ECHOES, shells};
use crate::support::{processes, until};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// No test, but the one that is killed.
#[test]
#[ignore = "started by a_test_program_that_is_killed_leaves_no_process_behind"]
fn a_test_to_be_killed() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    println!("root {}", daemon.root().display());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_test_program_that_is_killed_leaves_no_process_behind() {
    let own = std::env::current_exe().expect("this program");
    let mut killed = Command::new(own)
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("faults::left_behind::a_test_to_be_killed")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(killed.stdout.take().expect("its output")).lines();
    let mut lines = lines.map_while(Result::ok);
    let root = lines.find_map(|line| Some(PathBuf::from(line.split_once("root ")?.1)));
    let root = root.expect("it tells where it is");
    let left = || processes::all_of(&root).len();
    assert!(left() >= 3, "a daemon, a shim and a program");
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    until("the end of what it left", || (left() == 0).then_some(()));
    until("the end of its directory", || {
        (!root.exists()).then_some(())
    });
}
