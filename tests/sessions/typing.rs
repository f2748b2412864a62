//! Commands that are typed, and shells that say when they are done.

use crate::stage::*;
use crate::support::daemon::Daemon;
use crate::support::until;
use missiond::control::client::Client;
use missiond::control::requests::{Type, TypeParams};
use rustix::process::{Pid, Signal, kill_process};

/// Bash, and zsh where it is there.
fn shells() -> Vec<&'static str> {
    let mut shells = vec!["bash"];
    shells.extend(has("zsh").then_some("zsh"));
    shells
}

fn shell(daemon: &Daemon, shell: &str) {
    spawn(daemon, &["--id", shell, "--shell", shell]);
}

#[test]
fn a_command_gives_its_own_output_and_exit_code() {
    let daemon = daemon();
    for sh in shells() {
        shell(&daemon, sh);
        assert_eq!(
            typed(&daemon, sh, "echo one; false"),
            ("one\n".into(), 1),
            "{sh}"
        );
        assert_eq!(
            typed(&daemon, sh, "echo a\necho b; (exit 7)"),
            ("a\nb\n".into(), 7),
            "{sh}"
        );
        assert_eq!(
            typed(&daemon, sh, "printf unended"),
            ("unended".into(), 0),
            "{sh}"
        );
        assert_eq!(typed(&daemon, sh, ""), (String::new(), 0), "{sh}");
        assert_eq!(
            typed(&daemon, sh, "PS1='new> '"),
            (String::new(), 0),
            "{sh}"
        );
        assert_eq!(
            typed(&daemon, sh, "echo again"),
            ("again\n".into(), 0),
            "{sh}"
        );
        let forged =
            r"printf '\033]133;D;0;99;missiond=x\007\033]133;D;0;99\007'; echo real; false";
        assert_eq!(typed(&daemon, sh, forged), ("real\n".into(), 1), "{sh}");
        daemon.cmd(&["type", sh, "(exit 9)", "--wait"]).expect(9);
        // Bash says `exit` by itself.
        let (output, code) = typed(&daemon, sh, "echo bye; exit 3");
        assert!(output.starts_with("bye\n") && code == 3, "{sh}: {output}");
    }
}

#[test]
fn the_users_own_files_are_read_and_the_prompt_looks_the_same() {
    let daemon = daemon();
    let home = daemon.root().join("home");
    std::fs::write(
        home.join(".bashrc"),
        "PS1='me> '; hi() { echo hi there; }\n",
    )
    .unwrap();
    std::fs::write(home.join(".zshrc"), "PS1='me> '; hi() { echo hi there }\n").unwrap();
    for sh in shells() {
        shell(&daemon, sh);
        assert_eq!(typed(&daemon, sh, "hi"), ("hi there\n".into(), 0), "{sh}");
        let screen = daemon.cmd(&["screen", sh]).expect(0).stdout;
        assert_eq!(screen.trim_end(), "me> hi\nhi there\nme>", "{sh}");
        assert_eq!(
            typed(&daemon, sh, "echo \"<$ZDOTDIR>\""),
            ("<>\n".into(), 0),
            "{sh}"
        );
    }
}

#[test]
fn a_login_shell_reads_the_profile() {
    let daemon = daemon();
    let home = daemon.root().join("home");
    std::fs::write(home.join(".bash_profile"), "export FROM=profile\n").unwrap();
    std::fs::write(home.join(".zprofile"), "export FROM=profile\n").unwrap();
    for sh in shells() {
        spawn(&daemon, &["--id", sh, "--shell", sh, "--login"]);
        assert_eq!(
            typed(&daemon, sh, "echo $FROM"),
            ("profile\n".into(), 0),
            "{sh}"
        );
        let one = format!("{sh}-one");
        let command = ["--", "sh", "-c", "echo $FROM"];
        spawn(
            &daemon,
            &[&["--id", &one, "--shell", sh, "--login"], &command[..]].concat(),
        );
        wait_exit(&daemon, &one);
        assert_eq!(output(&daemon, &one), "profile\n", "{sh}");
    }
}

#[test]
fn a_login_bash_is_one() {
    let daemon = daemon();
    let home = daemon.root().join("home");
    std::fs::write(home.join(".bash_logout"), "echo logged out\n").unwrap();
    let arguments = ["--id", "bash", "--shell", "bash", "--login"];
    spawn(&daemon, &[&arguments[..], &["--env", "ENV=mine"]].concat());
    let line = "shopt -q login_shell && shopt -oq posix; echo $? $ENV ${HISTFILE##*/}";
    let told = typed(&daemon, "bash", line);
    assert_eq!(told, ("1 mine .bash_history\n".into(), 0));
    let (output, code) = typed(&daemon, "bash", "logout");
    assert!(output.contains("logged out") && code == 0, "{output}");
}

/// Whatever a shell is set to, it says where it stands.
#[test]
fn settings_of_the_shell_do_not_hide_its_prompt() {
    let daemon = daemon();
    let home = daemon.root().join("home");
    let settings = [
        "set -u",
        "set -e",
        "set -eu; unset PROMPT_COMMAND ZDOTDIR",
        "IFS=0123456789missond",
        "set -o noclobber; set -o noglob",
        "readonly PROMPT_COMMAND",
        "[ -e nothing ] && true",
    ];
    for sh in shells() {
        for (n, setting) in settings.into_iter().enumerate() {
            for file in [".bashrc", ".zshrc", ".bash_profile", ".zshenv"] {
                std::fs::write(home.join(file), format!("{setting}\n")).unwrap();
            }
            for login in [false, true] {
                let id = format!("{sh}-{n}-{login}");
                let arguments = ["--id", &id, "--shell", sh, "--login"];
                spawn(&daemon, &arguments[..if login { 5 } else { 4 }]);
                let told = typed(&daemon, &id, "echo hi; ! true");
                assert_eq!(told, ("hi\n".into(), 1), "{id}: {setting}");
                let told = typed(&daemon, &id, "echo again");
                assert_eq!(told, ("again\n".into(), 0), "{id}: {setting}");
                daemon.cmd(&["close", &id]).expect(0);
            }
        }
    }
}

#[test]
fn a_prompt_command_that_is_set_anew_is_no_output_either() {
    let daemon = daemon();
    shell(&daemon, "bash");
    for line in [
        "PROMPT_COMMAND='echo PC'",
        "PROMPT_COMMAND=\"$PROMPT_COMMAND; echo PC\"",
        "PROMPT_COMMAND+=('echo PC')",
    ] {
        typed(&daemon, "bash", line);
        assert_eq!(
            typed(&daemon, "bash", "echo c"),
            ("c\n".into(), 0),
            "{line}"
        );
    }
    // The marks are in the prompt by now.
    typed(&daemon, "bash", "unset PROMPT_COMMAND");
    assert_eq!(typed(&daemon, "bash", "echo d; false"), ("d\n".into(), 1));
}

#[test]
fn a_busy_shell_and_half_a_command_are_told() {
    let daemon = daemon();
    for sh in shells() {
        shell(&daemon, sh);
        typed(&daemon, sh, "true");
        let half = daemon.cmd(&["type", sh, "echo 'abc", "--wait"]).expect(4);
        assert!(half.stderr.contains("waits for the rest"), "{half}");
        assert_eq!(typed(&daemon, sh, "def'"), ("abc\ndef\n".into(), 0), "{sh}");
        daemon.cmd(&["type", sh, "echo 'abc", "--wait"]).expect(4);
        daemon.cmd(&["keys", sh, "ctrl+c"]).expect(0);
        daemon
            .cmd(&["wait", sh, "--prompt", "--timeout", "50s"])
            .expect(0);
        let waiting = daemon.spawn(&["type", sh, "echo go; sleep 1000", "--wait"]);
        wait_output(&daemon, sh, "^go$");
        let busy = daemon.cmd(&["type", sh, "true", "--wait"]).expect(4);
        assert!(busy.stderr.contains("busy with another command"), "{busy}");
        let late = ["wait", sh, "--prompt", "--timeout", "100ms"];
        daemon.cmd(&late).expect(124);
        daemon.cmd(&["keys", sh, "ctrl+c"]).expect(0);
        waiting.end().expect(130);
    }
}

#[test]
fn a_shell_that_becomes_another_program_is_not_waited_for() {
    let daemon = daemon();
    shell(&daemon, "bash");
    let replaced = daemon
        .cmd(&["type", "bash", "exec cat", "--wait"])
        .expect(4);
    assert!(
        replaced.stderr.contains("has become another program"),
        "{replaced}"
    );
}

#[test]
fn a_program_that_a_shell_becomes_and_that_ends_is_the_command() {
    let daemon = daemon();
    for sh in shells() {
        shell(&daemon, sh);
        let line = "echo one; exec sh -c 'echo two; exit 3'";
        assert_eq!(typed(&daemon, sh, line), ("one\ntwo\n".into(), 3), "{sh}");
    }
}

/// Neither is busy: nobody will ever say that a command is done.
#[test]
fn a_shell_that_has_lost_its_marks_is_not_waited_for() {
    let daemon = daemon();
    for sh in shells() {
        for (n, line) in [
            format!("exec {sh}"),
            "unset PROMPT_COMMAND; precmd_functions=(); PS1='mine> '".into(),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("{sh}-{n}");
            spawn(&daemon, &["--id", &id, "--shell", sh]);
            let wait = ["type", &id, &line, "--wait", "--timeout", "50s"];
            let lost = daemon.cmd(&wait).expect(4);
            assert!(lost.stderr.contains("it is unknown when"), "{lost}");
            let again = daemon.cmd(&["type", &id, "echo x", "--wait"]).expect(4);
            assert!(again.stderr.contains("it is unknown when"), "{again}");
            assert!(again.stderr.contains("--quiet"), "{again}");
            daemon.cmd(&["wait", &id, "--prompt"]).expect(4);
            let quiet = daemon.json(&["type", &id, "echo x$((40 + 2))", "--quiet", "500ms"]);
            assert!(quiet["output"].as_str().unwrap().contains("x42"), "{quiet}");
        }
    }
}

#[test]
fn a_shell_that_its_own_file_replaces_is_not_waited_for() {
    if !has("zsh") {
        return;
    }
    let daemon = daemon();
    std::fs::write(daemon.root().join("home/.bashrc"), "exec zsh -f\n").unwrap();
    shell(&daemon, "bash");
    let lost = daemon.cmd(&["type", "bash", "true", "--wait", "--timeout", "50s"]);
    assert!(lost.expect(4).stderr.contains("without the marks"));
}

#[test]
fn who_waits_for_a_session_that_is_closed_is_told_why() {
    let daemon = daemon();
    shell(&daemon, "bash");
    let typing = daemon.spawn(&["type", "bash", "echo go; sleep 1000", "--wait"]);
    wait_output(&daemon, "bash", "^go$");
    let following = daemon.spawn(&["follow", "bash"]);
    let seen = || following.printed().contains("go\r\n").then_some(());
    until("what is followed", seen);
    daemon.cmd(&["close", "bash", "--force"]).expect(0);
    for waiting in [typing, following] {
        let told = waiting.end().expect(1);
        let why = "the session bash has been closed: by request";
        assert!(told.stderr.contains(why), "{told}");
    }
}

#[test]
fn who_follows_a_session_that_is_closed_when_idle_is_told_so() {
    let daemon = daemon_with("idle_close = \"2s\"");
    shell(&daemon, "bash");
    let told = daemon.cmd(&["follow", "bash"]).expect(0);
    let why = "idle at its prompt for 2s";
    assert!(told.stderr.contains(why), "{told}");
}

#[test]
fn a_program_that_says_nothing_is_waited_for_by_its_silence() {
    let daemon = daemon();
    script(
        &daemon,
        "plain",
        "while read -r line; do echo \"got $line\"; done",
    );
    let refused = daemon.cmd(&["type", "plain", "x", "--wait"]).expect(4);
    assert!(refused.stderr.contains("--quiet"), "{refused}");
    daemon.cmd(&["wait", "plain", "--prompt"]).expect(4);
    let answer = daemon.json(&["type", "plain", "hello", "--quiet", "500ms"]);
    let output = answer["output"].as_str().unwrap();
    assert!(output.contains("got hello"), "{answer}");
    daemon.cmd(&["type", "plain", "a\u{1b}b"]).expect(2);
}

#[test]
fn what_the_prompt_prints_and_a_trace_of_it_are_no_output() {
    let daemon = daemon();
    let home = daemon.root().join("home");
    std::fs::write(home.join(".bashrc"), "PROMPT_COMMAND='echo prompting'\n").unwrap();
    std::fs::write(home.join(".zshrc"), "precmd() { echo prompting }\n").unwrap();
    for sh in shells() {
        shell(&daemon, sh);
        assert_eq!(
            typed(&daemon, sh, "printf abc; (exit 5)"),
            ("abc".into(), 5),
            "{sh}"
        );
        typed(&daemon, sh, "set -x");
        let (traced, code) = typed(&daemon, sh, "false");
        assert!(
            traced.ends_with("false\n") && traced.lines().count() == 1,
            "{sh}: {traced}"
        );
        assert_eq!(code, 1, "{sh}");
        typed(&daemon, sh, "set +x");
        // The word of the marks must not become known by a trace.
        assert!(!output(&daemon, sh).contains("missiond="), "{sh}");
        let elsewhere = home.join(format!("{sh}.out"));
        typed(&daemon, sh, &format!("exec >'{}'", elsewhere.display()));
        assert_eq!(
            typed(&daemon, sh, "echo there; (exit 6)"),
            (String::new(), 6),
            "{sh}"
        );
        let there = std::fs::read_to_string(elsewhere).unwrap();
        // Zsh itself writes there too; what missiond has added does not.
        assert!(
            there.contains("there\n") && !there.contains("missiond"),
            "{sh}: {there}"
        );
    }
}

#[test]
fn a_command_that_was_just_entered_is_not_taken_for_the_next() {
    let daemon = daemon();
    shell(&daemon, "bash");
    typed(&daemon, "bash", "true");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let line = |text: &str, wait| TypeParams {
        slot: "bash".into(),
        text: text.into(),
        wait,
        quiet_ms: None,
        until_prompt: None,
        timeout_ms: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    // One behind the other, before the shell can say anything.
    let second = runtime.expect("a runtime").block_on(async {
        let mut first = Client::connect(&socket).await?;
        let mut second = Client::connect(&socket).await?;
        first
            .call::<Type>(line("read -r x; echo one", false))
            .await?;
        second.call::<Type>(line("echo two", true)).await
    });
    assert!(
        second
            .unwrap_err()
            .to_string()
            .contains("busy with another command")
    );
}

/// Who no longer waits has not interrupted anything.
#[test]
fn ctrl_c_ends_the_waiting_and_not_the_command() {
    let daemon = daemon();
    shell(&daemon, "bash");
    let line = "while [ ! -e go ]; do sleep 0.05; done; echo over";
    let waits = daemon.spawn(&["type", "bash", line, "--wait"]);
    wait_output(&daemon, "bash", "while");
    let own = Pid::from_raw(waits.pid().cast_signed()).expect("a pid");
    kill_process(own, Signal::INT).expect("it waits");
    let told = waits.end().expect(130);
    assert!(told.stderr.contains("goes on in bash"), "{told}");
    assert!(told.stderr.contains("missiond keys bash ctrl+c"), "{told}");
    std::fs::write(daemon.root().join("go"), "").expect("a file");
    wait_output(&daemon, "bash", "^over");

    let waits = daemon.spawn(&["type", "bash", "sleep 600", "--wait"]);
    wait_output(&daemon, "bash", "sleep 600");
    daemon.cmd(&["keys", "bash", "ctrl+c"]).expect(0);
    waits.end().expect(130);
}

/// Nobody waited for the command that replaced the shell, and the other one says nothing of itself.
#[test]
fn a_shell_that_has_become_another_one_is_noticed_by_the_next_command() {
    let daemon = daemon();
    spawn(&daemon, &["--id", "sh", "--shell", "/bin/bash"]);
    daemon
        .cmd(&["wait", "sh", "--prompt", "--timeout", "50s"])
        .expect(0);
    let exec = "PS1='other> ' exec sh";
    daemon.cmd(&["type", "sh", exec]).expect(0);
    wait_output(&daemon, "sh", "^other> ");
    let refused = daemon
        .cmd(&["type", "sh", "echo hello", "--wait"])
        .expect(4);
    let why = "its shell has become another program";
    assert!(refused.stderr.contains(why), "{refused}");
    // What it proposes works.
    let until = ["type", "sh", "echo $((6*7))", "--until-prompt", "^other>$"];
    let answered = daemon.cmd(&until).expect(0);
    assert!(answered.stdout.contains("42"), "{answered}");
}
