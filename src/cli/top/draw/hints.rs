//! What the keys do now, and the page that lists them.

use crate::cli::columns::wrapped;
use crate::cli::sanitise;
use crate::cli::top::lists::Tab;
use crate::cli::top::prompt::Prompt;
use crate::cli::top::state::{Dashboard, Mode, needs_person};
use crate::core::claude::reading::DialogKind;
use crate::core::model::SlotStatus;

/// What the keys do now; what is needed to leave stands first.
pub fn keys(dashboard: &Dashboard, width: u16, ascii: bool) -> [String; 2] {
    let asks = dashboard.current().filter(|status| needs_person(status));
    let lines = match (dashboard.mode(), asks) {
        (Mode::Prompt(prompt), _) => {
            return prompt_lines(prompt, width.into(), ascii);
        }
        (Mode::Gone, _) => [" Esc goes on", ""],
        (Mode::Help(_), _) => [" any key: back", " j/k scroll"],
        (Mode::Whole(_), _) => [
            " Esc: back   j/k, Space: scroll",
            " y yes, once   n no   N no, because   a always",
        ],
        _ if dashboard.list_to_show() == Some(Tab::Sessions) => [
            " ? help   q leave   Enter attach   L output   X X close",
            " Tab tasks   Esc slots   j/k move   w next waiting   : command",
        ],
        _ if dashboard.list_to_show().is_some() => [
            " ? help   q leave   Enter the whole task   X X cancel",
            " Tab slots   j/k move   w next waiting   : command",
        ],
        (_, Some(status)) => [
            answer_keys(status),
            " ? help   q leave   Enter attach   w next waiting   v terminal   s send   i stop",
        ],
        (_, None) => [
            " ? help   q leave   Enter attach   s send   i interrupt   L log",
            " j/k move   w next waiting   f only   / filter   : command   Tab sessions, tasks",
        ],
    };
    lines.map(str::to_owned)
}

/// The keys that answer what this slot asks.
fn answer_keys(status: &SlotStatus) -> &'static str {
    let dialog = status.dialog.as_ref();
    let is_call = dialog.is_some_and(|dialog| dialog.kind == DialogKind::Permission);
    let rule = status
        .always
        .as_ref()
        .and_then(|always| always.rule.as_ref());
    match (is_call, rule.is_some()) {
        (true, true) => " y yes, once   n no   N no, because   a always   A all alike   e whole",
        (true, false) => " y yes, once   n no   N no, because   A all alike   e whole",
        (false, _) => " o options   t own words   n no   e whole",
    }
}

/// The line that is written, its end in sight, and what Enter does.
fn prompt_lines(prompt: &Prompt, width: usize, ascii: bool) -> [String; 2] {
    let line_end = if ascii { "\\n" } else { "⏎" };
    let text = sanitise::request(prompt.text()).replace('\n', line_end);
    let room = width.saturating_sub(prompt.label().len() + 6).max(8);
    let rows = wrapped(&text, room);
    let last = rows.last().map(String::as_str).unwrap_or_default();
    let dots = if rows.len() > 1 { ".." } else { "" };
    [
        format!(" {}: {dots}{last}_", prompt.label()),
        format!(" Enter {}, Esc leaves", prompt.enter()),
    ]
}

pub const HELP: [&str; 21] = [
    "The table shows every slot, those that wait for you first.",
    "",
    "j k, arrows     move                 g G       first, last",
    "w               next that waits      f         only: waits, works …",
    "/               filter by name       Esc       all again",
    "Tab             sessions, tasks; there X X closes or cancels, Enter shows",
    "",
    "y               yes, this once       n         no",
    "N               no, with a reason    a         yes, and a rule for it",
    "A               the same answer to all slots that ask the same",
    "o               choose an option     t         answer in your own words",
    "e               the whole request: yes works once its end was on the screen",
    "",
    "Enter           attach; ctrl-q comes back",
    "v               terminal or ask      L         follow the log",
    "s               send a message       i         interrupt the turn",
    "R R             restart              X X       stop           S  start",
    ":               any command of missiond, such as  :history coder",
    "q               leave; slots and daemon go on",
    "",
    "any key: back",
];
