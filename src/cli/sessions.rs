use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{redrawn, sanitise, table};
use crate::control::requests::{SessionInfo, Sessions as Request, SessionsParams};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table};

/// Lists the sessions, also ended ones that are kept for review.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session list
  missiond session list --owner orchestrator:planner
  missiond session list --watch
  missiond session list --json | jq -r '.[] | select(.is_alive).id'")]
pub struct SessionsArgs {
    /// Only those of this owner, and of owners whose name goes on after a colon
    #[arg(long, value_name = "PREFIX")]
    owner: Option<String>,
    /// Go on showing them, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

const NONE: &str = "no sessions; make one with: missiond session spawn";

impl SessionsArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = SessionsParams { owner: self.owner };
        if self.watch {
            let rows = async || {
                let sessions = context.ask::<Request>(params.clone()).await?;
                let table = match sessions.is_empty() {
                    true => NONE.to_owned(),
                    false => render(&sessions),
                };
                Ok(table.lines().map(str::to_owned).collect())
            };
            return redrawn::each_second(context, rows).await;
        }
        let sessions = context.ask::<Request>(params).await?;
        if context.out.json {
            return context.out.json(&sessions);
        }
        if sessions.is_empty() {
            return context.out.done(NONE);
        }
        context.out.line(render(&sessions))
    }
}

const HEADER: [&str; 8] = ["ID", "OWNER", "STATE", "UP", "PID", "CPU", "MEM", "COMMAND"];
/// The columns whose figures stand at the right.
const RIGHT: [usize; 4] = [3, 4, 5, 6];

fn render(sessions: &[SessionInfo]) -> String {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .force_no_tty()
        .enforce_styling()
        .set_header(HEADER.map(|name| Cell::new(name).add_attribute(Attribute::Bold)))
        .add_rows(sessions.iter().map(row));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index + 1 < HEADER.len() { 2 } else { 0 }));
        if RIGHT.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn row(session: &SessionInfo) -> [String; 8] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        session.id.clone(),
        session.owner.clone(),
        state(session),
        table::age(i64::try_from(session.uptime).unwrap_or(i64::MAX)),
        or_dash(session.pid.map(|pid| pid.to_string())),
        or_dash(session.cpu.map(table::percent)),
        or_dash(session.memory.map(table::megabytes)),
        sanitise::one_line(&session.command.join(" ")),
    ]
}

/// How it stands, in a few words.
pub fn state(session: &SessionInfo) -> String {
    match (
        session.is_alive,
        session.signal,
        session.exit_code,
        session.at_prompt,
    ) {
        (true, _, _, Some(true)) => "at its prompt".to_owned(),
        (true, ..) => "running".to_owned(),
        (false, Some(signal), ..) => format!("ended by signal {signal}{}", reason(session)),
        (false, None, Some(code), _) => format!("exit code {code}"),
        (false, None, None, _) => session.state.name().to_owned(),
    }
}

/// `: idle at its prompt for 5m`, if more is known than the signal.
fn reason(session: &SessionInfo) -> String {
    let why = session.last_error.as_deref();
    let why = why.filter(|why| !why.contains("signal"));
    why.map(|why| format!(": {}", sanitise::one_line(why)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_that_missiond_ended_says_why() {
        let shown = |last_error: Option<&str>| {
            let session = json!({
                "id": "a", "owner": "user", "owner_pid": null, "cols": 80, "rows": 24, "cwd": "/",
                "command": ["bash"], "shell": "bash", "created_at": "2026-01-01T10:00:00Z",
                "ends_at": null, "pid": null, "is_alive": false, "state": "exited",
                "exit_code": null, "signal": 1, "last_error": last_error, "uptime": 1,
                "at_prompt": false, "output_bytes": 0, "dropped_bytes": 0, "memory": null,
                "cpu": null, "read_bytes": null, "written_bytes": null, "log": "/l"
            });
            state(&serde_json::from_value(session).unwrap())
        };
        let idle = shown(Some("idle at its prompt for 5m"));
        assert_eq!(idle, "ended by signal 1: idle at its prompt for 5m");
        assert_eq!(shown(Some("crash: signal 1")), "ended by signal 1");
        assert_eq!(shown(None), "ended by signal 1");
    }
}
