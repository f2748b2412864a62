//! A message on the command line: words, or standard input.

use crate::cli::failure::Failure;
use crate::core::claude::keys::MAX_MESSAGE;
use std::io::Read;

/// Several words are joined by blanks, `-` alone reads standard input.
pub fn text(words: &[String]) -> Result<String, Failure> {
    let text = match words {
        [dash] if dash == "-" => from_stdin()?,
        words => words.join(" "),
    };
    check(&text)?;
    Ok(text)
}

fn check(text: &str) -> Result<(), Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty")
            .next("write it behind the slot's name, or `-` there to read standard input"));
    }
    if text.len() > MAX_MESSAGE {
        return Err(too_long());
    }
    Ok(())
}

fn too_long() -> Failure {
    Failure::usage(format!(
        "the message has more than {MAX_MESSAGE} bytes, the most that can be sent"
    ))
    .next("put it into a file and ask Claude to read that")
}

/// The newline at the end is the shell's, not the message's.
fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One more than allowed, and the newline: enough to see that it is too long.
    std::io::stdin()
        .lock()
        .take(MAX_MESSAGE as u64 + 2)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
    if bytes.len() > MAX_MESSAGE + 1 {
        return Err(too_long());
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8 text"))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
