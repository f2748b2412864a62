//! The open calls as a text. The shim keeps it while the program runs, so that the next daemon knows which calls were judged.

use super::{Calls, OpenAsk};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    calls: Vec<OpenAsk>,
    /// No call is missing.
    whole: bool,
}

impl Calls {
    /// How often the open calls have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The open calls, in about `most` bytes: first those that wait for a person, newest first, then the others. A call whose
    /// input is too long is kept without it.
    pub fn note(&self, most: usize) -> String {
        let mut calls: Vec<&OpenAsk> = self.open.iter().rev().collect();
        calls.sort_by_key(|open| open.allowed);
        let (mut kept, mut room) = (Vec::new(), most);
        for open in calls {
            let without_input = || OpenAsk {
                input: Value::Null,
                ..open.clone()
            };
            let fits = |open: &OpenAsk| length(open) <= room;
            let call = Some(open.clone()).filter(fits);
            let Some(call) = call.or_else(|| Some(without_input()).filter(fits)) else {
                continue;
            };
            room -= length(&call);
            kept.push(call);
        }
        let whole = kept.len() == self.open.len() && !self.missed_may_wait;
        kept.reverse();
        let kept = Kept { calls: kept, whole };
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// Restores the note that an earlier daemon has left about the running program. Without a note, calls that nobody here has
    /// judged may wait for a person; in any case such calls may end.
    pub fn take_up(&mut self, note: Option<&str>) {
        let kept = note.and_then(|note| serde_json::from_str::<Kept>(note).ok());
        self.missed = true;
        self.missed_may_wait = !kept.as_ref().is_some_and(|kept| kept.whole);
        for open in kept.into_iter().flat_map(|kept| kept.calls) {
            if open.input.is_object() {
                // A second call with the same id raises an alarm at the gate, not here.
                let _ = self.judged(open.id.as_deref(), &open.tool, &open.input);
            }
            self.open(open);
        }
    }
}

fn length(open: &OpenAsk) -> usize {
    serde_json::to_string(open).map_or(usize::MAX, |text| text.len() + 1)
}
