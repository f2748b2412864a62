//! The columns of the table.

use super::super::state::Filter;
use crate::cli::table;
use crate::core::claude::reading::State;
use crate::core::model::SlotStatus;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The mark and the word of a state: they differ in shape, not only in colour.
pub fn marks(status: &SlotStatus, ascii: bool) -> (&'static str, &'static str) {
    match (Filter::of(status), status.state) {
        (Filter::Waits, _) if status.doubtful.is_some() => ("?", "DOUBT"),
        (Filter::Waits, _) => ("!", "ASKS"),
        (Filter::Down, State::Error) => ("x", "failed"),
        (Filter::Down, _) => ("x", "down"),
        (Filter::Idle, _) => (if ascii { "o" } else { "○" }, "idle"),
        (_, State::Starting) => (if ascii { "*" } else { "●" }, "starts"),
        (_, State::Responding) => (if ascii { "*" } else { "●" }, "writes"),
        (_, State::Thinking) => (if ascii { "*" } else { "●" }, "thinks"),
        _ => (if ascii { "*" } else { "●" }, "works"),
    }
}

/// The widths of the table's columns.
pub struct CardColumns {
    slot: usize,
    role: usize,
    what: usize,
    memory: bool,
}

const STATE: usize = 7;
const AGE: usize = 7;
const SMALL: usize = 5;
const MEMORY: usize = 6;

impl CardColumns {
    pub fn of(rows: &[&SlotStatus], width: usize) -> CardColumns {
        let widest = |name: fn(&SlotStatus) -> &str, most: usize| {
            let widths = rows.iter().map(|status| name(status).width());
            widths.max().unwrap_or(0).clamp(4, most)
        };
        let (slot, role) = (widest(|s| &s.slot, 16), widest(|s| &s.role, 10));
        let memory = width >= 100;
        let fixed = 3 + slot + role + STATE + AGE + 2 * SMALL + 6;
        let fixed = fixed + if memory { MEMORY } else { 0 };
        CardColumns {
            slot,
            role,
            what: width.saturating_sub(fixed + 1).max(8),
            memory,
        }
    }

    pub fn head(&self) -> String {
        let cells = ["SLOT", "ROLE", "STATE", "FOR", "WHAT", "CTX", "CPU", "MEM"];
        format!("   {}", self.line(cells))
    }

    pub fn row(&self, status: &SlotStatus, word: &str, age: &str) -> String {
        let percent = |value: Option<f32>| value.map_or("-".to_owned(), |v| format!("{v:.0}%"));
        let left = status.conversation.context_left;
        let used = left.map_or("-".to_owned(), |left| {
            format!("{}%", 100_u32.saturating_sub(left))
        });
        let memory = status.memory.map_or("-".to_owned(), table::megabytes);
        let (what, cpu) = (table::doing(status), percent(status.cpu));
        self.line([
            &status.slot,
            &status.role,
            word,
            age,
            &what,
            &used,
            &cpu,
            &memory,
        ])
    }

    fn line(&self, cells: [&str; 8]) -> String {
        let [slot, role, state, age, what, context, cpu, memory] = cells;
        let mut line = [
            left(slot, self.slot),
            left(role, self.role),
            left(state, STATE),
            right(age, AGE),
            format!(" {}", left(what, self.what)),
            right(context, SMALL - 1),
            right(cpu, SMALL - 1),
        ]
        .join(" ");
        if self.memory {
            line += &format!(" {}", right(memory, MEMORY));
        }
        line
    }
}

pub fn left(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let blank = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blank))
}

pub fn right(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let blank = width.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(blank))
}

/// Cuts a line to a width; two dots at its end say so.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let kept = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used + 2 <= width
    });
    let kept: String = kept.collect();
    format!("{kept}..")
}
