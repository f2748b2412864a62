//! A yes of the person before something that can't be taken back.

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use std::io::{BufRead, IsTerminal, Write};

/// Whether there is a person to ask: a script says its yes beforehand.
pub fn can_be_asked(context: &Context) -> bool {
    !context.out.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the person; anything but a yes is a no.
pub fn given(question: &str) -> Result<bool, Failure> {
    ask(question).map_err(|error| Failure::failed(format!("no answer can be read: {error}")))
}

fn ask(question: &str) -> std::io::Result<bool> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes)))
}
