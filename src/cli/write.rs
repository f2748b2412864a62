use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::{Write as Request, WriteParams};
use crate::core::claude::keys::MAX_MESSAGE;
use std::io::Read;

/// Writes bytes to the terminal of a slot or session, unchecked.
///
/// Where a dialog is open in a slot of Claude Code, they are refused (exit code 4), since they would answer it: use
/// confirm, or --into-dialog. What is written there is kept in the audit as your verdict.
/// Known escapes: \e \r \n \t \\ and \xHH. A line is entered with \r.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond write shell 'ls -l\\r'
  missiond write coder '\\e[A'
  missiond write coder '\\x03'
  missiond write shell - < bytes")]
pub struct Write {
    /// The slot or session
    #[arg(add = complete::slots())]
    slot: String,
    /// The bytes, with escapes; `-` reads them from standard input, as they are
    #[arg(allow_hyphen_values = true)]
    bytes: String,
    /// Also into a dialog that is open; it is your verdict
    #[arg(long)]
    into_dialog: bool,
}

impl Write {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let bytes = match self.bytes.as_str() {
            "-" => from_stdin()?,
            text => unescape(text)?,
        };
        if bytes.is_empty() {
            return Err(Failure::usage("there is nothing to write"));
        }
        let params = WriteParams {
            slot: self.slot,
            bytes,
            into_dialog: self.into_dialog,
            keyboard: None,
        };
        let done = context.ask::<Request>(params).await?;
        done::print(context, &[done], "written")
    }
}

fn from_stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_MESSAGE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
    if bytes.len() > MAX_MESSAGE {
        return Err(Failure::usage(format!(
            "more than {MAX_MESSAGE} bytes at once"
        )));
    }
    Ok(bytes)
}

/// All of it is understood before any of it is sent.
fn unescape(text: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, length) = escape(&rest[at + 1..]).ok_or_else(|| unknown(&rest[at..]))?;
        bytes.push(byte);
        rest = &rest[at + 1 + length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// The byte that is meant after a backslash, and how many characters say so.
fn escape(text: &str) -> Option<(u8, usize)> {
    let byte = match text.as_bytes().first()? {
        b'e' => 0x1b,
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        b'\\' => b'\\',
        b'x' => {
            let digits = text
                .get(1..3)
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
            return Some((u8::from_str_radix(digits, 16).ok()?, 3));
        }
        _ => return None,
    };
    Some((byte, 1))
}

fn unknown(escape: &str) -> Failure {
    let shown: String = escape.chars().take(4).collect();
    Failure::usage(format!("unknown escape at `{shown}`; nothing was sent"))
        .next(r"known are \e \r \n \t \xHH and \\ for a backslash")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_bytes() {
        assert_eq!(
            unescape(r"a\e[A\r\n\t\\\x00\xFf é").unwrap(),
            b"a\x1b[A\r\n\t\\\x00\xff \xc3\xa9"
        );
        assert_eq!(unescape("").unwrap(), b"");
    }

    #[test]
    fn a_wrong_escape_is_refused() {
        for wrong in [r"\", r"\q", r"a\x", r"\x1", r"\xg0", r"\x+1", r"\xé0"] {
            let failure = unescape(wrong).unwrap_err();
            assert_eq!(failure.blame.exit_code(), 2, "{wrong}");
        }
    }
}
