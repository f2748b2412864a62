//! What can't be done is said, and leaves nothing behind.

use crate::stage::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn nothing_is_started_that_is_not_right() {
    let daemon = daemon();
    let file = daemon.root().join("garbage");
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let garbage = file.to_str().unwrap();
    let config = daemon.config();
    let config = config.to_str().unwrap();
    for (arguments, code, said) in [
        (&["--id", "", "--", "cat"][..], 2, "the id is empty"),
        (&["--id", "Not A Name", "--", "cat"], 2, "can't be the id"),
        (&["--id", "missiond", "--", "cat"], 2, "can't be the id"),
        (&["--owner", "", "--", "cat"], 2, "the owner is empty"),
        (&["--owner", "a::b", "--", "cat"], 2, "can't be an owner"),
        (
            &["--cwd", "/no/such/dir", "--", "cat"],
            2,
            "no directory /no/such/dir",
        ),
        (&["--cwd", config, "--", "cat"], 2, "is not a directory"),
        (
            &["--", "no-such-program"],
            2,
            "no program `no-such-program`",
        ),
        (
            &["--", "/no/such/program"],
            2,
            "no program /no/such/program",
        ),
        (&["--", config], 2, "can't be executed"),
        (&["--", ""], 2, "the command is empty"),
        (&["--", garbage], 1, "its interpreter fails"),
        (
            &["--shell", "/no/such/shell"],
            2,
            "no program /no/such/shell",
        ),
        (&["--shell", "", "--login"], 2, "the shell is empty"),
        (&["--cols", "1", "--", "cat"], 2, "cols must be"),
        (&["--timeout", "0s", "--", "cat"], 2, "the timeout"),
        (&["--env", "=x", "--", "cat"], 2, "name of a variable"),
    ] {
        let refused = daemon.cmd(&[&["spawn"], arguments].concat()).expect(code);
        assert!(refused.stderr.contains(said), "{refused}");
    }
    nothing_left(&daemon);
}

#[test]
fn a_directory_that_is_gone_is_an_error() {
    let daemon = daemon();
    let gone = daemon.root().join("gone");
    let missiond = env!("CARGO_BIN_EXE_missiond");
    for arguments in ["exec -- pwd", "exec --cwd . -- pwd", "spawn -- pwd"] {
        std::fs::create_dir(&gone).unwrap();
        let line = format!("rmdir \"$PWD\"; exec {missiond} {arguments}");
        let refused = daemon.in_shell(&gone, &line).expect(2);
        let said = refused.stderr.contains("the current directory is gone");
        assert!(said, "{refused}");
    }
    nothing_left(&daemon);
}

#[test]
fn an_unknown_session_is_an_error_of_every_verb() {
    let daemon = daemon();
    for arguments in [
        &["info", "nope"][..],
        &["type", "nope", "x"],
        &["type", "nope", "x", "--wait"],
        &["write", "nope", "x"],
        &["resize", "nope", "80", "24"],
        &["signal", "nope", "INT"],
        &["close", "nope"],
        &["output", "nope"],
        &["clear", "nope"],
        &["follow", "nope"],
        &["search", "nope", "x"],
        &["screen", "nope"],
        &["wait", "nope", "--exit"],
        &["events", "nope"],
    ] {
        let refused = daemon.cmd(arguments).expect(2);
        assert!(
            refused.stderr.contains("no slot or session `nope`"),
            "{refused}"
        );
    }
}

#[test]
fn one_that_has_ended_takes_no_input() {
    let daemon = daemon();
    script(&daemon, "over", "exit 0");
    wait_exit(&daemon, "over");
    for arguments in [
        &["type", "over", "x"][..],
        &["type", "over", "x", "--wait"],
        &["write", "over", "x"],
        &["resize", "over", "80", "24"],
        &["signal", "over", "INT"],
    ] {
        let refused = daemon.cmd(arguments).expect(4);
        assert!(refused.stderr.contains("over has ended"), "{refused}");
    }
}
