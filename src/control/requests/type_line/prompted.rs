//! Waiting for the prompt of a program that does not report when a command is done: another shell, a debugger, an
//! interpreter.

use super::{TypeParams, type_line};
use crate::control::requests::search::regex;
use crate::control::written::extent;
use crate::core::model::{Person, RpcError, ScreenParams, SlotStatus};
use crate::slot::{SlotCommand, SlotHandle, TypedCommand};
use regex::Regex;
use std::time::Duration;

/// How long a line must stand to count as a prompt: what a program draws while it echoes a line is gone sooner.
const STANDS: Duration = Duration::from_millis(150);

/// A pattern of the line at the cursor when the program waits for input.
#[derive(Debug)]
pub(super) struct PromptPattern(Regex);

impl PromptPattern {
    /// A pattern that matches this line with any numbers in place of its own: `In [1]: ` also matches `In [2]: `.
    fn like(line: &str) -> Option<PromptPattern> {
        let mut pattern = String::new();
        let mut digits = false;
        for c in line.trim_end().chars() {
            let was_digit = std::mem::replace(&mut digits, c.is_ascii_digit());
            match (digits, was_digit) {
                (true, true) => {}
                (true, false) => pattern.push_str("[0-9]+"),
                (false, _) => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        let pattern = Regex::new(&format!("^{pattern}$")).ok();
        pattern
            .filter(|_| !line.trim().is_empty())
            .map(PromptPattern)
    }

    fn fits(&self, line: &str) -> bool {
        self.0.is_match(line) || self.0.is_match(line.trim_end())
    }

    /// The output of a command, without the echo of the typed line and without the prompt after it.
    pub fn without(&self, output: &str, typed: &str) -> String {
        let mut lines: Vec<&str> = output.lines().collect();
        if lines.last().is_some_and(|last| self.fits(last)) {
            lines.pop();
        }
        if lines
            .first()
            .is_some_and(|first| first.trim() == typed.trim())
        {
            lines.remove(0);
        }
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// The prompt to wait for, if it must be read from the screen: the request names it, or the program is not a shell with
/// prompt marks and shows a prompt now.
pub(super) async fn awaited_prompt(
    slot: &SlotHandle,
    params: &TypeParams,
) -> Result<Option<PromptPattern>, RpcError> {
    if let Some(pattern) = &params.until_prompt {
        return Ok(Some(PromptPattern(regex(pattern)?)));
    }
    let status = slot.status();
    let unmarked = status.session.is_some_and(|session| !session.marked);
    if !params.wait || !unmarked || status.state == crate::core::claude::reading::State::Exited {
        return Ok(None);
    }
    Ok(PromptPattern::like(&line_at_cursor(slot).await?))
}

/// Types a line and returns when the prompt is back and has stood for a moment.
pub(super) async fn type_until(
    slot: &SlotHandle,
    person: Person,
    text: &str,
    prompt: &PromptPattern,
) -> Result<TypedCommand, RpcError> {
    let from = extent(slot).await?.total;
    let mut pulse = slot.watch_output();
    let mut status = slot.watch_status();
    let text = text.to_owned();
    pulse.mark_unchanged();
    type_line(slot, person, text).await?;
    let mut is_over = false;
    while !is_over {
        let over = async { status.wait_for(SlotStatus::is_over).await.is_ok() };
        tokio::select! {
            changed = pulse.changed() => if changed.is_err() { return Err(slot.gone()); },
            over = over => is_over = over,
        }
        while let Ok(Ok(())) = tokio::time::timeout(STANDS, pulse.changed()).await {}
        if prompt.fits(&line_at_cursor(slot).await?) {
            break;
        }
    }
    let to = extent(slot).await?.total;
    Ok(TypedCommand {
        exit_code: slot.status().exit_code.filter(|_| is_over),
        output: Some((from, to)),
    })
}

/// The row of the screen that has the cursor.
async fn line_at_cursor(slot: &SlotHandle) -> Result<String, RpcError> {
    let params = ScreenParams {
        slot: slot.status().slot,
        lines: None,
        ansi: false,
    };
    let screen = slot
        .request(|reply| SlotCommand::Screen { params, reply })
        .await?;
    let (row, _) = screen.cursor;
    Ok(screen.lines.get(row).cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_known_again_with_other_numbers() {
        let prompt = PromptPattern::like("In [9]: ").expect("a prompt");
        assert!(prompt.fits("In [10]: ") && prompt.fits("In [9]:"));
        assert!(!prompt.fits("In [9]: x") && !prompt.fits("Out[9]: "));
        assert!(PromptPattern::like("   ").is_none());
        assert!(PromptPattern::like("(gdb) ").is_some_and(|gdb| gdb.fits("(gdb) ")));
    }

    #[test]
    fn the_echo_and_the_prompt_are_no_output() {
        let prompt = PromptPattern::like(">>> ").expect("a prompt");
        let shown = "print(6 * 7)\n42\n>>> ";
        assert_eq!(prompt.without(shown, "print(6 * 7)"), "42\n");
        assert_eq!(prompt.without(">>> ", ""), "");
    }
}
