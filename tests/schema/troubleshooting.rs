//! docs/troubleshooting.md has every refusal and every cause with its fix, made from their tables.

use missiond::core::machine::Cause;
use missiond::core::machine::remedies::{CAUSES, REFUSALS};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const MARK: &str = "<!-- Made from the tables of refusals and causes; MISSIOND_WRITE_DOCS=1 cargo test --test schema writes it. -->\n";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md")
}

#[test]
fn the_page_of_troubles_says_what_the_tables_say() {
    let text = std::fs::read_to_string(page()).expect("the page");
    let (intro, listed) = text.split_once(MARK).expect("the mark in the page");
    let made = listing();
    if std::env::var_os("MISSIOND_WRITE_DOCS").is_some() {
        std::fs::write(page(), format!("{intro}{MARK}{made}")).expect("the page is written");
        return;
    }
    assert!(
        listed == made,
        "docs/troubleshooting.md is not what the tables say: MISSIOND_WRITE_DOCS=1 cargo test --test schema"
    );
}

fn listing() -> String {
    let mut page = "\n## A command was refused, or has failed\n\n".to_owned();
    page += "The name is `refusal` in JSON.\n\n| refusal | what it means | what to do |\n| --- | --- | --- |\n";
    for (refusal, remedy) in REFUSALS {
        let (name, meaning, fix) = (refusal.name(), remedy.meaning, remedy.fix);
        let _ = writeln!(page, "| `{name}` | {meaning} | {fix} |");
    }
    page += "\n## A slot has ended\n\nThe name is in `missiond status` and in the log. One that another start can cure is started again, with growing \
        delays; the others wait for you.\n\n| cause | started again | what it means | what to do |\n| --- | --- | --- | --- |\n";
    for (cause, remedy) in CAUSES {
        let again = match (cause, cause.is_curable()) {
            (Cause::CleanExit, _) => "if `restart` says so",
            (_, true) => "yes",
            (_, false) => "no",
        };
        let (name, meaning, fix) = (cause.name(), remedy.meaning, remedy.fix);
        let _ = writeln!(page, "| {name} | {again} | {meaning} | {fix} |");
    }
    page
}
