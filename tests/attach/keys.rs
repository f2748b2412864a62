//! The key that detaches, and those that do not.

use super::person::{Person, shell};

/// Shows each byte that it gets, and goes on to the next line for each `.`.
const SHOW_BYTES: &str = "stty raw -echo; while IFS= read -rN1 c; do printf '%q ' \"$c\"; done\r";

#[test]
fn it_detaches_in_every_encoding() {
    let daemon = shell();
    let presses: [&[u8]; 4] = [
        b"\x11",
        b"\x1b[113;5u",
        b"\x1b[113::113;5:1u",
        b"\x1b[27;5;113~",
    ];
    for press in presses {
        let mut person = Person::attach(&daemon, &["sh"], (100, 30));
        person.sees("$");
        let (first, rest) = press.split_at(1);
        person.types(first);
        person.types(rest);
        person.ends(0, "detached from sh");
    }
    let mut person = Person::attach(&daemon, &["sh", "--detach-keys", "ctrl-]"], (100, 30));
    person.sees("$");
    person.types(b"\x11\x11\x1d");
    person.ends(0, "detached from sh");
}

#[test]
fn pressed_twice_or_pasted_it_goes_to_the_program() {
    let daemon = shell();
    let mut person = Person::attach(&daemon, &["sh"], (100, 30));
    person.sees("$");
    person.types(SHOW_BYTES);
    // The shell has echoed the line and now shows every byte.
    person.sees("done");
    person.types("ab");
    person.sees("a b");
    person.types(b"\x11\x11");
    person.sees("a b $'\\021'");
    person.types(b"\x1b[200~x\x11y\x1b[201~z");
    person.sees("x $'\\021' y $'\\E' \\[ 2 0 1 \\~ z");
    person.types(b"\x1b[A");
    person.sees("z $'\\E' \\[ A");
    person.types(b"\x1b");
    person.sees("A $'\\E'");
    person.types(b"\x11");
    person.ends(0, "detached from sh");
}

#[test]
fn a_key_that_cannot_be_is_refused_before_anything_happens() {
    let daemon = shell();
    for key in ["q", "ctrl-m", "alt-q"] {
        let mut person = Person::attach(&daemon, &["sh", "--detach-keys", key], (100, 30));
        assert_eq!(person.ended(), 2, "{key}");
    }
}
