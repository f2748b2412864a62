use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise, sessions, table};
use crate::control::requests::{Info as Request, SessionInfo};
use crate::core::model::OneSlot;
use crate::os::local_time;

/// Shows a session, with what its processes use of the machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session info build
  missiond session info build --json | jq .exit_code")]
pub struct Info {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
}

impl Info {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let info = context.ask::<Request>(OneSlot { slot: self.id }).await?;
        if context.out.json {
            return context.out.json(&info);
        }
        for (name, value) in lines(&info) {
            context
                .out
                .line(format!("{name:<9} {}", sanitise::one_line(&value)))?;
        }
        Ok(())
    }
}

fn lines(info: &SessionInfo) -> Vec<(&'static str, String)> {
    let uptime = table::age(i64::try_from(info.uptime).unwrap_or(i64::MAX));
    let owner = match info.owner_pid {
        Some(pid) => format!("{} (ends with process {pid})", info.owner),
        None => info.owner.clone(),
    };
    let mut lines = vec![
        ("id", info.id.clone()),
        ("owner", owner),
        ("state", sessions::state(info)),
        ("command", info.command.join(" ")),
        ("cwd", info.cwd.display().to_string()),
        ("size", format!("{}x{}", info.cols, info.rows)),
        ("created", local_time::clock(info.created_at)),
        ("uptime", uptime),
    ];
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let dropped = match info.dropped_bytes {
        0 => String::new(),
        dropped => format!(", {dropped} older ones dropped"),
    };
    lines.push(("output", format!("{} bytes{dropped}", info.output_bytes)));
    lines.extend(info.pid.map(|pid| ("pid", pid.to_string())));
    lines.extend(info.ends_at.map(|at| ("ends", local_time::clock(at))));
    lines.extend(info.cpu.map(|cpu| ("cpu", format!("{cpu:.1} %"))));
    lines.extend(info.memory.map(|memory| ("memory", mb(memory))));
    if let (Some(read), Some(written)) = (info.read_bytes, info.written_bytes) {
        lines.push((
            "disk",
            format!("{} read, {} written", mb(read), mb(written)),
        ));
    }
    let network = info.network.map(|traffic| {
        let (received, sent) = (mb(traffic.received), mb(traffic.sent));
        format!("{received} received, {sent} sent")
    });
    lines.extend(
        network
            .or_else(|| info.network_unknown.clone())
            .map(|network| ("network", network)),
    );
    lines.extend(info.last_error.clone().map(|why| ("why", why)));
    lines
}
