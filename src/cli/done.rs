//! Printing for verbs that deal with several slots, each of which may succeed or not.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::control::protocol::Done;

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
                context.out.done(format!("{}: {what}", one.slot))?;
            }
            None => {}
        }
    }
    settle(context, failures)
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
            let code = u8::try_from(code).unwrap_or(1);
            Err(Failure::new(Blame::Command(code), text))
        }
    }
}
