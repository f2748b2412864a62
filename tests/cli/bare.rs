//! `missiond` with no command, and the way to a daemon that is not there any more.

use crate::fake::{Home, answered, text_of};
use crate::living::Living;
use rustix::process::{Pid, Signal, kill_process};

const CTRL_C: &str = "\u{3}";

#[test]
fn on_a_terminal_it_shows_the_slots_or_how_to_begin() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let (said, code) = answered(home, &[], "first steps:", "");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("no daemon answers"), "{said}");
    assert!(said.contains("missiond up -c slots.toml"), "{said}");

    home.run(&["up", "-c", &config]).exits(0);
    // The dashboard, until somebody leaves it.
    let (said, code) = answered(home, &[], "cat", CTRL_C);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("SLOT") && said.contains("cat"), "{said}");
    let (said, _) = answered(home, &["--json"], "]", "");
    assert!(said.contains("\"slot\":\"cat\""), "{said}");
}

/// Services have no terminal; and who names a config wants its daemon.
#[test]
fn not_on_a_terminal_or_with_a_config_it_is_run() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let ran = home.run(&[]).exits(2);
    assert!(ran.stderr.contains("no configuration"), "{ran:?}");
    let (said, code) = answered(home, &["-c", &config], "ready", CTRL_C);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("ended"), "{said}");
}

/// Whatever is typed after a daemon has gone, the advice leads back to it.
#[test]
fn the_advice_names_the_config_of_the_daemon_that_was_there() {
    let mut living = Living::new();
    let config = living.config("elsewhere/own.toml", "name = \"one\"");
    let home = &living.home;
    let up = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    let pid = i32::try_from(up["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let way = format!("missiond up -c {config}");
    for (arguments, code) in [(["status"], 3), (["pending"], 3), (["up"], 2)] {
        let ran = home.run(&arguments).exits(code);
        assert!(ran.stderr.contains(&way), "{ran:?}");
        assert!(!ran.stderr.contains("missiond init &&"), "{ran:?}");
    }
    let (said, _) = answered(home, &[], "first steps:", "");
    assert!(said.contains(&way), "{said}");
    home.run(&["up", "-c", &config]).exits(0);
    home.run(&["down", "--yes"]).exits(0);

    // The usual config comes first, if there is one.
    home.write(".config/missiond/slots.toml", "[daemon]\n");
    let ran = home.run(&["status"]).exits(3);
    let both = format!("start one with: missiond up\n  or the one that ran last: {way}");
    assert!(ran.stderr.contains(&both), "{ran:?}");
    // One that is gone is no way.
    std::fs::remove_file(&config).unwrap();
    let ran = home.run(&["status"]).exits(3);
    assert!(!ran.stderr.contains("own.toml"), "{ran:?}");
}

/// What an error says is meant to be typed: it is typed here.
#[test]
fn the_advice_about_a_command_of_claude_code_is_one_that_works() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let slot = "[[slot]]\nname = \"docs\"\nrole = \"docs\"\ncwd = \".\"\nautostart = false\n";
    let text = std::fs::read_to_string(&config).unwrap();
    home.write("slots.toml", &format!("{text}\n{slot}"));
    home.write("policies/docs.toml", "");
    home.run(&["up", "-c", &config]).exits(0);
    let ways: [&[&str]; 4] = [
        &["send", "docs", "/compact"],
        &["submit", "docs", "/compact"],
        &["ask", "docs", "/compact"],
        &["submit", "--role", "docs", "/compact"],
    ];
    for way in ways {
        let refused = home.run(way).exits(4);
        let advice = refused
            .stderr
            .lines()
            .find_map(|line| line.split_once("missiond send "));
        let (_, advised) = advice.unwrap_or_else(|| panic!("{refused:?}"));
        let mut words: Vec<&str> = advised.split_whitespace().collect();
        assert_eq!(words.pop(), Some("/compact"), "{refused:?}");
        let slot = words[0].replace("SLOT", "docs");
        let typed = [&["send", slot.as_str()], &words[1..], &["/compact"]].concat();
        let typed = home.run(&typed);
        // It does not run; that is all that is wrong by now.
        assert!(
            typed.stderr.contains("docs is not running"),
            "{way:?}: {typed:?}"
        );
    }
}

#[test]
fn a_socket_or_config_of_the_environment_is_meant_too() {
    let home = Home::new();
    let socket = text_of(&home.path("none.sock"));
    let mut command = home.command(&["status"]);
    let output = command.env("MISSIOND_SOCKET", &socket).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (said, _) = answered(&home, &["--socket", &socket], "first steps:", "");
    assert!(said.contains("none.sock"), "{said}");
}
