use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::table;
use crate::control::scope::Scope;
use crate::web::{Device, Devices, PAIRING};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::io;

#[derive(Debug, clap::Subcommand)]
pub enum DeviceVerb {
    Pair(Pair),
    /// List the paired devices
    Devices,
    /// Forget a device: its token is refused from now on
    Revoke {
        /// The name that it was paired with
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Pair a device: the page that opens with the code stays signed in when its tab is closed.
///
/// It prints a code, which is good once and for ten minutes. Open the address of `missiond web --port PORT` with `#k=CODE`
/// behind it. The device keeps a token until it expires or is revoked; on this machine only its SHA-256 sum is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond web pair --name phone
  missiond web pair --name wall --scope view --days 365")]
pub struct Pair {
    /// What the device is called, in the list and in the audit
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it may do: view, answer, steer or keys; each includes those before it
    #[arg(long, value_name = "SCOPE", default_value_t = Scope::Answer)]
    scope: Scope,
    /// It is forgotten after so many days
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
}

impl DeviceVerb {
    pub fn run(self, context: &Context, devices: &Devices) -> Result<(), Failure> {
        match self {
            DeviceVerb::Pair(pair) => pair.run(context, devices),
            DeviceVerb::Devices => list(context, devices),
            DeviceVerb::Revoke { name } => {
                match devices.revoke(&name, Utc::now()).map_err(failed)? {
                    true => context.out.done(format!("{name} is forgotten")),
                    false => Err(Failure::usage(format!("no device `{name}`"))
                        .next("see them: missiond web devices")),
                }
            }
        }
    }
}

impl Pair {
    fn run(self, context: &Context, devices: &Devices) -> Result<(), Failure> {
        let life = TimeDelta::days(self.days.into());
        let code = devices.pair(&self.name, self.scope, life, Utc::now());
        let code = code.map_err(|error| {
            Failure::usage(format!("{} is not paired: {error}", self.name))
                .next("see the devices: missiond web devices; forget one: missiond web revoke NAME")
        })?;
        if context.out.json {
            return context.out.json(&json!({
                "name": self.name,
                "scope": self.scope,
                "days": self.days,
                "code": code.text(),
                "code_expires_s": PAIRING.num_seconds(),
            }));
        }
        context.out.line(code.text())?;
        context.out.note(format!(
            "The code is good once, for {} minutes, with the scope `{}`. Open the address of `missiond web --port PORT` with \
             #k=CODE behind it.",
            PAIRING.num_minutes(),
            self.scope
        ));
        Ok(())
    }
}

fn list(context: &Context, devices: &Devices) -> Result<(), Failure> {
    let now = Utc::now();
    let all = devices.all(now).map_err(failed)?;
    if context.out.json {
        let one = |device: &Device| {
            json!({
                "name": device.name, "scope": device.scope, "made": device.made, "until": device.until,
                "last_used": device.last_used, "paired": device.is_paired(),
            })
        };
        return context.out.json(&all.iter().map(one).collect::<Vec<_>>());
    }
    if all.is_empty() {
        return context
            .out
            .done("no devices; pair one with: missiond web pair --name NAME");
    }
    for device in &all {
        let ago = |time: DateTime<Utc>| table::age((now - time).num_seconds());
        let used = match device.last_used {
            _ if !device.is_paired() => "its code is not used yet".to_owned(),
            Some(time) => format!("used {} ago", ago(time)),
            None => "not used yet".to_owned(),
        };
        let left = table::age((device.until - now).num_seconds());
        let (name, scope) = (&device.name, device.scope.name());
        let line = format!("{name:<16} {scope:<6}  {used}, good for {left}");
        context.out.line(line)?;
    }
    Ok(())
}

fn failed(error: io::Error) -> Failure {
    Failure::failed(error.to_string())
}
