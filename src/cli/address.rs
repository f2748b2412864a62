//! Who a task is for, and its text: `--role R TEXT…` or `SLOT TEXT…`.

use crate::cli::failure::Failure;
use crate::cli::{complete, message};
use crate::control::requests::SubmitParams;

#[derive(Debug, clap::Args)]
pub struct Addressed {
    /// The role: the first slot of it that is free gets the task
    #[arg(long, add = complete::roles())]
    role: Option<String>,
    /// Give it out again, this many times at most, when its slot ends under it
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// A name of your own for the task; the same task under the same name is submitted once [default: made up]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The slot or @role, unless there is --role, and then the text; several words are joined by blanks, `-`
    /// alone reads standard input
    #[arg(required = true, value_name = "[SLOT] TEXT", add = complete::slots())]
    words: Vec<String>,
}

/// The id of a task that has none: so a daemon that is killed meanwhile does not get it twice.
fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..12].to_owned()
}

impl Addressed {
    pub fn params(self) -> Result<SubmitParams, Failure> {
        let (slot, words) = match (&self.role, self.words.as_slice()) {
            (Some(role), words) => (format!("@{}", role.trim_start_matches('@')), words),
            (None, [slot, words @ ..]) => (slot.clone(), words),
            (None, []) => (String::new(), [].as_slice()),
        };
        if words.is_empty() {
            return Err(Failure::usage("there is no text, or nobody it is for")
                .next("missiond task submit SLOT TEXT, or missiond task submit --role ROLE TEXT"));
        }
        Ok(SubmitParams {
            slot,
            text: message::text(words)?,
            retries: self.retries,
            id: Some(self.id.unwrap_or_else(new_id)),
            timeout_ms: None,
        })
    }
}
