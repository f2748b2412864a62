//! Serves the scripted endpoint and prints the environment of a Claude Code that uses it, until it is ended:
//! `cargo run --example rehearsal_home -- DIRECTORY`. DIRECTORY/work is the trusted working directory.

use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(directory) = std::env::args().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("usage: rehearsal_home DIRECTORY"));
    };
    let work = directory.join("work");
    std::fs::create_dir_all(&work)?;
    let endpoint = Endpoint::start()?;
    let options = HomeOptions {
        trusted: vec![work],
        ..HomeOptions::default()
    };
    let home = Home::create(&directory, &options)?;
    for (name, value) in home.environment(&endpoint.url()) {
        println!("{name}={value}");
    }
    loop {
        std::thread::park();
    }
}
