use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::{Write as Request, WriteParams};
use crate::core::claude::keys::{DOWN, ENTER, ESC, UP};

/// Presses keys in the terminal of a slot or session, unchecked.
///
/// Where a dialog is open in a slot of Claude Code, keys are refused (exit code 4), since they would answer it: use
/// confirm, or --into-dialog. What is pressed there is kept in the audit as your verdict.
/// Keys are single characters or names: enter, tab, esc, space, backspace, delete, up, down, left, right,
/// home, end, pageup, pagedown; with ctrl+, alt+ or shift+tab. All of them are understood before the
/// first is pressed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond keys coder esc
  missiond keys coder down down enter --into-dialog
  missiond keys coder ctrl+c")]
pub struct KeysArgs {
    /// The slot or session
    #[arg(add = complete::slots())]
    slot: String,
    /// The keys, one after another
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Also into a dialog that is open; it is your verdict
    #[arg(long)]
    into_dialog: bool,
}

/// The keys that have a name, and what a terminal sends for them.
const NAMED: [(&str, &[u8]); 15] = [
    ("enter", ENTER),
    ("tab", b"\t"),
    ("shift+tab", b"\x1b[Z"),
    ("esc", ESC),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("delete", b"\x1b[3~"),
    ("up", UP),
    ("down", DOWN),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("pageup", b"\x1b[5~"),
    ("pagedown", b"\x1b[6~"),
];

impl KeysArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for key in &self.keys {
            bytes.extend(pressed(key).ok_or_else(|| unknown(key))?);
        }
        let params = WriteParams {
            slot: self.slot,
            bytes,
            into_dialog: self.into_dialog,
            keyboard: None,
        };
        let done = context.ask::<Request>(params).await?;
        done::print(context, &[done], "pressed")
    }
}

fn pressed(key: &str) -> Option<Vec<u8>> {
    if let Some((_, bytes)) = NAMED.iter().find(|(name, _)| *name == key.to_lowercase()) {
        return Some(bytes.to_vec());
    }
    let with = |held: &str| {
        let rest = key
            .get(..held.len())?
            .eq_ignore_ascii_case(held)
            .then(|| &key[held.len()..])?;
        rest.strip_prefix(['+', '-'])
    };
    if let Some(letter) = with("ctrl") {
        return control(letter).map(|byte| vec![byte]);
    }
    if let Some(rest) = with("alt") {
        let mut bytes = vec![0x1b];
        bytes.extend(pressed(rest)?);
        return Some(bytes);
    }
    let mut characters = key.chars();
    let one = characters.next().filter(|c| !c.is_control())?;
    characters
        .next()
        .is_none()
        .then(|| one.to_string().into_bytes())
}

/// Ctrl takes the letters and a few signs to the first 32 codes.
fn control(letter: &str) -> Option<u8> {
    match letter.to_ascii_uppercase().as_bytes() {
        [byte @ b'@'..=b'_'] => Some(byte & 0x1f),
        b"SPACE" => Some(0),
        _ => None,
    }
}

fn unknown(key: &str) -> Failure {
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    Failure::usage(format!("unknown key `{key}`; nothing was pressed")).next(format!(
        "known are {}, ctrl+LETTER, alt+KEY and single characters",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_a_terminal_sends() {
        let sent = |key| pressed(key).unwrap();
        assert_eq!(sent("Enter"), b"\r");
        for key in ["ctrl+c", "ctrl-c", "Ctrl-C"] {
            assert_eq!(sent(key), b"\x03", "{key}");
        }
        assert_eq!(sent("ctrl+["), b"\x1b");
        assert_eq!(sent("alt+enter"), b"\x1b\r");
        assert_eq!(sent("é"), "é".as_bytes());
        assert_eq!(sent("+"), b"+");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for key in [
            "", "entre", "ctrl+", "ctrl+é", "ctrl+cc", "alt+", "\u{1b}", "ab",
        ] {
            assert_eq!(pressed(key), None, "{key:?}");
        }
    }
}
