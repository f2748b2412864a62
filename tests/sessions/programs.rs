//! Programs that people use by hand.

use crate::stage::*;

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
