//! Printing for verbs that deal with several slots, each of which may succeed or not.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::sanitise;
use crate::core::model::{Cut, Done, dropped_messages};

/// One line per slot; the first failure is the command's, the others are told before it.
pub fn print(context: &Context, done: &[Done], what: &str) -> Result<(), Failure> {
    if context.out.json {
        context.out.json(&done)?;
    }
    let mut failures = Vec::new();
    for one in done {
        match &one.error {
            Some(error) => {
                let mut failure = Failure::from(error.clone());
                failure.message = format!("{}: {}", one.slot, failure.message);
                failures.push(failure);
            }
            None if !context.out.json => {
                let what = if one.already { "already running" } else { what };
                let cut = cut_in_words(&one.cut);
                context.out.done(format!("{}: {what}{cut}", one.slot))?;
            }
            None => {}
        }
    }
    settle(context, failures)
}

/// What was cut, behind what was done.
fn cut_in_words(cut: &Cut) -> String {
    let waited = match cut.waited.is_empty() {
        true => String::new(),
        false => format!(
            "; it ended {}",
            sanitise::one_line(&cut.waited.join(" and "))
        ),
    };
    let dropped = match cut.dropped.len() {
        0 => String::new(),
        count => format!("; {}", dropped_messages(count, &cut.dropped)),
    };
    format!("{waited}{dropped}")
}

/// Reports all failures but the first, which is returned.
pub fn settle(context: &Context, failures: Vec<Failure>) -> Result<(), Failure> {
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else {
        return Ok(());
    };
    failures.for_each(|other| other.report(context.out.json));
    Err(first)
}

/// Done where the command has succeeded; else with its own exit code.
pub fn as_the_command(exit_code: Option<i32>) -> Result<(), Failure> {
    match exit_code {
        None | Some(0) => Ok(()),
        Some(code) => {
            let text = format!("the command ended with exit code {code}");
            Err(Failure::new(Blame::Command(of_a_process(code)), text))
        }
    }
}

/// With the exit code of a command that missiond has ended, and the reason.
pub fn ended_by_missiond(exit_code: Option<i32>, why: &str) -> Failure {
    let code = exit_code.map_or(1, of_a_process);
    Failure::new(Blame::Ended(code), format!("the command was ended: {why}"))
}

fn of_a_process(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(1)
}
