//! The table of `status`. Pure: the time and the width come in.

use crate::cli::columns::Columns;
use crate::cli::sanitise;
use crate::core::claude::reading::{Dialog, DialogKind, State};
use crate::core::model::SlotStatus;
use chrono::{DateTime, Utc};
use comfy_table::{Attribute, Cell, Color, Row};

const COLUMNS: Columns<'static> = Columns {
    header: &[
        "SLOT", "ROLE", "STATE", "FOR", "DOING", "CPU", "MEM", "RESTARTS", "PID",
    ],
    right: &[3, 5, 6, 7, 8],
    gives_way: 4,
};

/// For a terminal that is narrower than this: what a slot does matters more than what it uses.
const WIDE: u16 = 100;
const NARROW: Columns<'static> = Columns {
    header: &["SLOT", "ROLE", "STATE", "FOR", "DOING", "RESTARTS", "PID"],
    right: &[3, 5, 6],
    gives_way: 4,
};

/// Those that need a person first, then the busy, the idle and the dead; by name within.
pub fn sort(statuses: &mut [SlotStatus]) {
    statuses.sort_by_cached_key(|status| {
        let name = status.slot.clone();
        (urgency(status.state), natural(&status.slot), name)
    });
}

/// The parts of a name, its numbers as numbers: `sh2` comes before `sh10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let end = behind.find(|c| !is_digit(c)).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(end);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

fn urgency(state: State) -> u8 {
    match state {
        State::Confirming => 0,
        State::Error => 1,
        State::Starting | State::Thinking | State::Responding | State::ToolRunning => 2,
        State::Idle => 3,
        State::Exited => 4,
    }
}

/// With colours always: whoever prints it takes them out where they are not wanted.
pub fn render(statuses: &[SlotStatus], now: DateTime<Utc>, width: Option<u16>) -> String {
    let wide = width.is_none_or(|width| width >= WIDE);
    let columns = if wide { COLUMNS } else { NARROW };
    columns.render(statuses.iter().map(|status| row(status, now, wide)), width)
}

fn row(status: &SlotStatus, now: DateTime<Utc>, wide: bool) -> Row {
    let pid = status.pid.map_or("-".into(), |pid| pid.to_string());
    let used = [
        Cell::new(status.cpu.map_or("-".into(), percent)),
        Cell::new(status.memory.map_or("-".into(), megabytes)),
    ];
    let first = [
        Cell::new(&status.slot),
        Cell::new(&status.role),
        coloured(Cell::new(status.state.name()), status.state),
        Cell::new(age(now.signed_duration_since(status.since).num_seconds())),
        Cell::new(doing(status)),
    ];
    let last = [Cell::new(status.restarts), Cell::new(pid)];
    let used = used.into_iter().filter(|_| wide);
    Row::from(first.into_iter().chain(used).chain(last))
}

/// Of one core.
pub fn percent(cpu: f32) -> String {
    format!("{cpu:.0}%")
}

/// Memory as tables show it.
pub fn megabytes(bytes: u64) -> String {
    format!("{}M", bytes / 1_000_000)
}

fn coloured(cell: Cell, state: State) -> Cell {
    match state {
        State::Confirming => cell.fg(Color::Yellow),
        State::Error => cell.fg(Color::Red),
        State::Idle => cell.add_attribute(Attribute::Dim),
        State::Exited => cell.fg(Color::DarkGrey),
        State::Starting | State::Thinking | State::Responding | State::ToolRunning => cell,
    }
}

/// What it does or waits for, and what a person should know about it, in one line.
pub fn doing(status: &SlotStatus) -> String {
    let waits = || status.dialog.as_ref().map(question);
    let said = status.doing.clone().or_else(waits);
    let mut parts: Vec<String> = said
        .or_else(|| status.last_error.clone())
        .into_iter()
        .collect();
    if let Some(login) = status.conversation.login {
        parts.push(format!("login {}", login.name()));
    }
    if let Some(command) = &status.foreground {
        parts.push(format!("runs {command}"));
    }
    if status.background > 0 {
        parts.push(format!("{} in the background", status.background));
    }
    if let Some(holder) = &status.keyboard {
        parts.push(format!("{} has the keyboard", holder.via));
    }
    if status.queued > 0 {
        parts.push(format!("{} queued", status.queued));
    }
    if let Some(stopped) = &status.stopped {
        parts.insert(0, stopped.clone());
    }
    if status.removed {
        parts.insert(0, "removed from the config".into());
    }
    if status.changed {
        parts.push(new_settings(&status.new_settings));
    }
    if parts.is_empty() && status.state == State::Exited && status.exit_code.is_none() {
        return "not started".into();
    }
    if parts.is_empty() {
        return "-".into();
    }
    sanitise::one_line(&parts.join(" · "))
}

fn new_settings(names: &[String]) -> String {
    let what = "new settings at its next start";
    match names {
        [] => what.to_owned(),
        names => format!("{what}: {}", names.join(", ")),
    }
}

/// A dialog in a few words: `Bash: cargo test`, else its first line.
pub fn question(dialog: &Dialog) -> String {
    let shown = dialog.input.as_ref().and_then(|input| {
        ["command", "file_path", "url", "question"]
            .iter()
            .find_map(|key| input.get(*key)?.as_str())
    });
    let about = shown.or_else(|| dialog.text.lines().find(|line| !line.trim().is_empty()));
    let about = sanitise::one_line(about.unwrap_or("(no text)"));
    match &dialog.tool {
        Some(tool) => format!("{tool}: {about}"),
        None => about,
    }
}

/// `12s`, `1m04s`, `41m`, `2h05m`, `3d04h`: never more than two units.
pub fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..600 => format!("{minutes}m{:02}s", seconds % 60),
        600..3600 => format!("{minutes}m"),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// The line below the table: how to help those that wait.
pub fn call_for_help(statuses: &[SlotStatus], target: &str) -> Option<String> {
    let waiting: Vec<&SlotStatus> = statuses
        .iter()
        .filter(|status| status.state == State::Confirming)
        .collect();
    match waiting.as_slice() {
        [] => None,
        [one] => Some(format!("1 slot needs you: {}", answer_command(one, target))),
        several => Some(format!(
            "{} slots need you: missiond pending{target}",
            several.len()
        )),
    }
}

/// The line below the table about slots that are in the config no more.
pub fn removed(statuses: &[SlotStatus], target: &str) -> Option<String> {
    let running = statuses.iter().filter(|status| status.pid.is_some());
    let removed = running.filter(|status| status.removed);
    let names: Vec<&str> = removed.map(|status| status.slot.as_str()).collect();
    let are = match names.as_slice() {
        [] => return None,
        [_] => "is",
        _ => "are",
    };
    let (listed, words) = (names.join(", "), names.join(" "));
    Some(format!(
        "{listed} {are} not in the config: nothing is answered by rule there; \
         end with: missiond stop{target} {words}, or put back and: missiond reload{target}"
    ))
}

/// `yes` and `no` are clear for a permission; other dialogs, and what is doubtful, have to be read first.
fn answer_command(status: &SlotStatus, target: &str) -> String {
    let permission = status
        .dialog
        .as_ref()
        .is_some_and(|dialog| dialog.kind == DialogKind::Permission);
    if permission && status.doubtful.is_none() {
        format!("missiond confirm{target} {} yes|no", status.slot)
    } else {
        format!("missiond pending{target} {}", status.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::Login;
    use serde_json::json;

    fn status(slot: &str, role: &str, state: State, since: &str) -> SlotStatus {
        serde_json::from_value(json!({
            "slot": slot, "role": role, "kind": "claude", "state": state, "since": since,
            "started_at": null, "pid": 41822, "restarts": 0, "session_id": null, "task_id": null,
            "cwd": "/src", "dialog": null, "gate": "hook", "mode": null, "last_error": null,
            "owner": "missiond", "log": "/logs/x.log", "doing": null, "background": 0, "queued": 0,
            "changed": false
        }))
        .unwrap()
    }

    fn permission(command: &str) -> Dialog {
        serde_json::from_value(json!({
            "id": "d1", "kind": "permission", "tool": "Bash", "input": {"command": command},
            "text": "Do you want to proceed?", "options": [{"label": "Yes"}, {"label": "No"}],
            "selected": 0, "complete": true
        }))
        .unwrap()
    }

    fn sample() -> Vec<SlotStatus> {
        let mut exited = status("docs", "writer", State::Exited, "2026-01-01T09:58:00Z");
        exited.pid = None;
        exited.restarts = 3;
        exited.doing = Some("exit 1, retry in 8s (3 of 5)".into());
        let mut idle = status("coder-2", "coder", State::Idle, "2026-01-01T09:19:00Z");
        idle.background = 2;
        (idle.cpu, idle.memory) = (Some(3.4), Some(412_900_000));
        let mut waits = status(
            "reviewer",
            "reviewer",
            State::Confirming,
            "2026-01-01T09:59:48Z",
        );
        waits.dialog = Some(permission("cargo test\n--workspace"));
        let mut busy = status(
            "coder-1",
            "coder",
            State::ToolRunning,
            "2026-01-01T09:58:56Z",
        );
        busy.doing = Some("Edit src/\u{1b}auth.rs".into());
        vec![exited, idle, waits, busy]
    }

    fn plain(width: Option<u16>) -> String {
        let mut statuses = sample();
        sort(&mut statuses);
        let now = "2026-01-01T10:00:00Z".parse().unwrap();
        anstream::adapter::strip_str(&render(&statuses, now, width)).to_string()
    }

    #[test]
    fn names_with_numbers_are_in_the_order_of_the_numbers() {
        let names = ["sh10", "a", "sh2", "sh1b3", "sh", "sh1", "sh1b20"];
        let mut statuses: Vec<SlotStatus> = names
            .map(|name| {
                let idle = sample().swap_remove(1);
                SlotStatus {
                    slot: name.to_owned(),
                    ..idle
                }
            })
            .into();
        sort(&mut statuses);
        let sorted: Vec<&str> = statuses.iter().map(|status| status.slot.as_str()).collect();
        assert_eq!(sorted, ["a", "sh", "sh1", "sh1b3", "sh1b20", "sh2", "sh10"]);
    }

    #[test]
    fn a_slot_that_left_the_config_is_marked_and_told_of() {
        let mut statuses = sample();
        assert_eq!(removed(&statuses, ""), None);
        statuses[1].removed = true;
        let told = removed(&statuses, " -c x.toml").unwrap();
        assert!(told.starts_with("coder-2 is not in the config"), "{told}");
        assert!(told.contains("missiond stop -c x.toml coder-2"), "{told}");
        assert!(doing(&statuses[1]).starts_with("removed from the config · 2 in the background"));
    }

    #[test]
    fn what_waits_for_the_next_start_is_named() {
        let mut idle = sample().swap_remove(1);
        (idle.background, idle.changed) = (0, true);
        assert_eq!(doing(&idle), "new settings at its next start");
        idle.new_settings = vec!["cwd".into(), "mode".into()];
        assert_eq!(doing(&idle), "new settings at its next start: cwd, mode");
    }

    #[test]
    fn the_table_reads_well() {
        insta::assert_snapshot!(plain(None), @r"
        SLOT      ROLE      STATE           FOR  DOING                         CPU   MEM  RESTARTS    PID
        reviewer  reviewer  confirming      12s  Bash: cargo test --workspace    -     -         0  41822
        coder-1   coder     tool_running  1m04s  Edit src/\x1bauth.rs            -     -         0  41822
        coder-2   coder     idle            41m  2 in the background            3%  412M         0  41822
        docs      writer    exited        2m00s  exit 1, retry in 8s (3 of 5)    -     -         3      -
        ");
    }

    #[test]
    fn a_narrow_terminal_cuts_and_never_wraps() {
        let text = plain(Some(72));
        assert!(!text.contains("MEM") && plain(Some(WIDE)).contains("MEM"));
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("tool_running"), "{text}");
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 72, "{line}");
        }
    }

    #[test]
    fn a_long_name_gives_way_too() {
        let mut statuses = sample();
        statuses[0].slot = "a".repeat(64);
        let now = "2026-01-01T10:00:00Z".parse().unwrap();
        let text = render(&statuses, now, Some(80));
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("aaaa…") && text.contains("exit 1"), "{text}");
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
        }
    }

    #[test]
    fn colours_tell_the_state() {
        let now = "2026-01-01T10:00:00Z".parse().unwrap();
        let text = render(&sample(), now, None);
        assert!(text.contains("\u{1b}[38;5;11mconfirming"), "{text:?}");
    }

    #[test]
    fn the_last_line_says_how_to_help() {
        let mut statuses = sample();
        let one = call_for_help(&statuses, "").unwrap();
        assert_eq!(one, "1 slot needs you: missiond confirm reviewer yes|no");
        statuses[0].state = State::Confirming;
        let two = call_for_help(&statuses, " -c x").unwrap();
        assert_eq!(two, "2 slots need you: missiond pending -c x");
        assert_eq!(call_for_help(&statuses[1..2], ""), None);
        assert_eq!(
            call_for_help(&statuses[..1], "").unwrap(),
            "1 slot needs you: missiond pending docs"
        );
    }

    #[test]
    fn what_is_doubtful_is_to_be_read_first_and_a_lost_login_is_named() {
        let mut statuses = sample();
        statuses[2].doubtful = Some("the gate knows better".into());
        let one = call_for_help(&statuses, "").unwrap();
        assert_eq!(one, "1 slot needs you: missiond pending reviewer");
        statuses[3].conversation.login = Some(Login::Refused);
        assert_eq!(doing(&statuses[3]), r"Edit src/\x1bauth.rs · login refused");
    }

    #[test]
    fn ages_have_two_units_at_most() {
        let ages = [-5, 59, 64, 2460, 7500, 270_000].map(age);
        assert_eq!(ages, ["0s", "59s", "1m04s", "41m", "2h05m", "3d03h"]);
    }
}
