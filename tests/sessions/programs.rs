//! Programs that people use by hand.

use crate::stage::*;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;

#[test]
fn an_interpreter_answers() {
    if !has("python3") {
        return;
    }
    let daemon = daemon();
    spawn(&daemon, &["--id", "py", "--", "python3", "-i"]);
    wait_output(&daemon, "py", ">>>");
    daemon.cmd(&["type", "py", "print(6 * 7)"]).expect(0);
    wait_output(&daemon, "py", "^42$");
    daemon.cmd(&["type", "py", "exit(5)"]).expect(0);
    wait_exit(&daemon, "py");
    assert_eq!(info(&daemon, "py")["exit_code"], 5);
}

#[test]
fn a_question_is_answered_and_a_password_is_not_shown() {
    let daemon = daemon();
    let script = "read -p 'Go on? (yes/no) ' answer; echo \"answer: $answer\"; \
                  read -s -p 'Password: ' word; echo; echo \"${#word} characters\"";
    spawn(&daemon, &["--id", "ask", "--", "bash", "-c", script]);
    wait_output(&daemon, "ask", r"Go on\? \(yes/no\)");
    daemon.cmd(&["type", "ask", "yes"]).expect(0);
    wait_output(&daemon, "ask", "answer: yes");
    wait_output(&daemon, "ask", "Password:");
    daemon.cmd(&["type", "ask", "open sesame"]).expect(0);
    wait_output(&daemon, "ask", "11 characters");
    wait_exit(&daemon, "ask");
    assert!(!output(&daemon, "ask").contains("sesame"));
    assert!(!daemon.log("ask").contains("sesame"));
}

#[test]
fn a_pager_and_an_editor_are_read_by_their_screen() {
    let daemon = daemon();
    let file = daemon.root().join("text");
    let text: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    if has("less") {
        spawn(
            &daemon,
            &["--id", "less", "--rows", "10", "--", "less", file],
        );
        wait_output(&daemon, "less", "^line 9$");
        daemon.cmd(&["write", "less", "G"]).expect(0);
        wait_output(&daemon, "less", "^line 200$");
        daemon.cmd(&["write", "less", "q"]).expect(0);
        wait_exit(&daemon, "less");
    }
    if has("vim") {
        spawn(
            &daemon,
            &[
                "--id", "vim", "--rows", "10", "--", "vim", "-u", "NONE", "-n", file,
            ],
        );
        wait_output(&daemon, "vim", "^line 9$");
        daemon.cmd(&["write", "vim", "ggihello \\e"]).expect(0);
        wait_output(&daemon, "vim", "^hello line 1$");
        let screen = daemon.cmd(&["screen", "vim"]).expect(0).stdout;
        assert!(screen.starts_with("hello line 1\nline 2\n"), "{screen}");
        daemon.cmd(&["write", "vim", ":wq\\r"]).expect(0);
        wait_exit(&daemon, "vim");
        assert!(
            std::fs::read_to_string(file)
                .unwrap()
                .starts_with("hello line 1\n")
        );
    }
}

/// `interrupt` ends what a shell waits for, never the shell; and it says so where that does not obey. A program that
/// waits for nothing is left alone.
#[test]
fn an_interrupt_ends_the_command_in_front_and_not_the_slots_program() {
    let setup = Setup::new().slot_with("shell", "kind = \"shell\"");
    let shell = ["/bin/bash", "--norc", "--noprofile"].map(str::to_owned);
    let daemon = Daemon::start_with(&setup, &shell);
    daemon.wait_state("shell", "idle");
    let pid = daemon.status("shell")["pid"].clone();
    let interrupt = |code: i32| daemon.cmd(&["interrupt", "shell", "--json"]).expect(code);
    let in_front = |name: Option<&str>| {
        let shown = || daemon.status("shell")["foreground"].clone();
        let what = format!("{name:?} in front");
        until(&what, || (shown().as_str() == name).then_some(()));
    };
    let runs = |command: &str, name: &str| {
        let line = format!("{command}\r");
        daemon.cmd(&["write", "shell", &line]).expect(0);
        in_front(Some(name));
    };
    let nothing = interrupt(0);
    assert!(
        nothing.stdout.contains(r#""effect":"nothing""#),
        "{nothing}"
    );

    runs("sleep 1000", "sleep");
    let done = interrupt(0);
    assert!(done.stdout.contains(r#""effect":"interrupted""#), "{done}");
    assert!(daemon.status("shell")["foreground"].is_null());

    // A pipeline is one group, and goes as one.
    runs("sleep 1000 | cat", "sleep");
    interrupt(0);
    in_front(None);

    runs("(trap '' INT; exec sleep 1000)", "sleep");
    let refused = interrupt(1);
    assert!(refused.stderr.contains("`sleep` goes on"), "{refused}");
    in_front(Some("sleep"));
    assert_eq!(daemon.status("shell")["pid"], pid);
    let keys = daemon.logged("audit.jsonl");
    assert_eq!(
        keys.matches(r#""via":"cli interrupt""#).count(),
        3,
        "{keys}"
    );
}

#[test]
fn an_interrupt_leaves_a_program_without_a_command_alone() {
    let setup = Setup::new().slot_with("shell", "kind = \"shell\"");
    let daemon = Daemon::start_with(&setup, &["/bin/cat".to_owned()]);
    daemon.wait_state("shell", "idle");
    let pid = daemon.status("shell")["pid"].clone();
    let done = daemon.json(&["interrupt", "shell"]);
    assert_eq!(done["effect"], "nothing", "{done}");
    daemon.cmd(&["write", "shell", "still here\r"]).expect(0);
    wait_output(&daemon, "shell", "^still here$");
    assert_eq!(daemon.status("shell")["pid"], pid);
}
