//! The identity of dialogs. The reader distinguishes dialogs by what they show, which changes with the size of the terminal, and
//! is the same for two dialogs if only their end is visible. The gate knows which call each one asks about.

use crate::core::claude::reading::Dialog;
use crate::core::text::hex;
use sha2::{Digest, Sha256};

/// The id of the current dialog.
#[derive(Debug, Default)]
pub(super) struct Identity {
    up: Option<NamedDialog>,
}

#[derive(Debug)]
struct NamedDialog {
    /// The id from the reader.
    read: String,
    /// The call that it asks about, by Claude Code's own id.
    call: Option<String>,
    /// The id that users see.
    id: String,
}

impl Identity {
    /// Gives the current dialog its id. `resized` if the program has just redrawn its screen for another size: a dialog about the
    /// same call is then the same dialog, however it is drawn.
    pub fn name(&mut self, dialog: Option<&mut Dialog>, resized: bool) {
        let Some(dialog) = dialog else {
            self.up = None;
            return;
        };
        let read = std::mem::take(&mut dialog.id);
        let call = dialog.request.clone().filter(|id| !id.is_empty());
        let named = match self.up.take() {
            Some(up) if up.read == read => up.goes_on(call),
            Some(up) if resized && call.is_some() && up.call == call => NamedDialog { read, ..up },
            _ => NamedDialog {
                id: read.clone(),
                read,
                call,
            },
        };
        dialog.id = named.id.clone();
        self.up = Some(named);
    }
}

impl NamedDialog {
    /// The reader considers the dialog the same. If it asks about another call, it is another dialog.
    fn goes_on(self, call: Option<String>) -> NamedDialog {
        match (&self.call, &call) {
            (Some(before), Some(now)) if before != now => {
                let tag = hex::encode(&Sha256::digest(now)[..4]);
                let id = format!("{}-{tag}", self.read);
                NamedDialog { id, call, ..self }
            }
            _ => NamedDialog {
                call: call.or(self.call),
                ..self
            },
        }
    }
}
