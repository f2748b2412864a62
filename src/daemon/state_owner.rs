//! The config that the state directory belongs to: slots of another config must not go on with its conversations.

use super::DaemonError;
use crate::core::settings::SlotConfig;
use crate::os::blocking;
use crate::os::files::{self, same_file};
use crate::slot::{SlotContext, has_conversations};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Has the path of the config, in the state directory.
const FILE: &str = "config.path";

/// Takes the state directory for this config. It is an error if a daemon of another config has left conversations there that
/// slots of this one would continue.
pub(super) async fn claim(
    context: &Arc<SlotContext>,
    slots: &[SlotConfig],
) -> Result<(), DaemonError> {
    let names: Vec<String> = slots.iter().map(|slot| slot.name.clone()).collect();
    let of = context.clone();
    let claimed = blocking::run(move || claimed(&of.state, &of.config, &names)).await;
    let claimed = claimed.map_err(|error| DaemonError::place("the state directory", error))?;
    claimed.map_err(|(theirs, slots)| DaemonError::StateOfAnother {
        slots: slots.join(", "),
        theirs,
        ours: context.config.clone(),
    })
}

fn claimed(state: &Path, ours: &Path, names: &[String]) -> Result<(), (PathBuf, Vec<String>)> {
    let file = state.join(FILE);
    let theirs = files::read_text(&file).map(|text| PathBuf::from(text.trim_end_matches('\n')));
    // A config that was moved no longer exists at its old path.
    let theirs = theirs
        .ok()
        .filter(|theirs| !same_file(theirs, ours) && theirs.exists());
    if let Some(theirs) = theirs {
        let left = names.iter().filter(|name| has_conversations(state, name));
        let left: Vec<String> = left.cloned().collect();
        if !left.is_empty() {
            return Err((theirs, left));
        }
    }
    // A path that is no text is not kept: then any config counts as this one.
    if let Some(ours) = ours.to_str()
        && let Err(error) = files::save(&file, &format!("{ours}\n"))
    {
        tracing::warn!("whose state this is can't be written down: {error}");
    }
    Ok(())
}
