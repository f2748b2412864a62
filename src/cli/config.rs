use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::target;
use crate::config::{self, Config as Loaded};
use crate::control;
use crate::core::policy;
use crate::core::settings;
use crate::core::settings::{DaemonConfig, Kind, SlotConfig};
use crate::core::text::diagnostic::ConfigError;
use crate::core::text::diagnostic::{Problem, render};
use crate::core::text::secrets;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Checks slots.toml and its policies, shows them, prints the schema.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond config check -c slots.toml    every fault, with its line and what would be right
  missiond config show --json
  missiond config schema > slots.schema.json    for an editor: `#:schema ./slots.schema.json` as the first line
  missiond config schema api    every request of the control socket, its parameters and its answer")]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Load everything as the daemon would, and say what is wrong with it
    Check,
    /// Print what is in force: defaults filled in, paths whole
    Show,
    /// Print the JSON schema of a file or of the control socket, for editors and programs
    Schema {
        #[arg(value_enum, default_value = "slots")]
        file: Described,
    },
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Described {
    /// slots.toml
    Slots,
    /// policies/<role>.toml
    Policy,
    /// The requests of the control socket
    Api,
}

impl ConfigArgs {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command {
            ConfigVerb::Check => {
                let (file, config) = loaded(context)?;
                check(context, &file, &config)
            }
            ConfigVerb::Show => show(context, &loaded(context)?.1),
            ConfigVerb::Schema { file } => schema(context, file),
        }
    }
}

fn loaded(context: &Context) -> Result<(PathBuf, Loaded), Failure> {
    let file = target::config_file(context)?;
    match config::load(&file) {
        Ok(config) => Ok((file, config)),
        Err(error) => Err(faults(context, &file, &error)?),
    }
}

fn schema(context: &Context, file: Described) -> Result<(), Failure> {
    let schema = match file {
        Described::Slots => settings::schema(),
        Described::Policy => policy::schema(),
        Described::Api => control::schema(),
    };
    if context.out.json {
        return context.out.json(&schema);
    }
    context.out.raw(format!("{schema:#}\n").as_bytes())
}

fn check(context: &Context, file: &Path, config: &Loaded) -> Result<(), Failure> {
    let roles: BTreeSet<&str> = config.slots.iter().map(|slot| slot.role.as_str()).collect();
    if context.out.json {
        let slots: Vec<&str> = config.slots.iter().map(|slot| slot.name.as_str()).collect();
        return context.out.json(&json!({
            "ok": true, "file": file, "slots": slots, "roles": roles, "problems": [],
        }));
    }
    let roles: Vec<&str> = roles.into_iter().collect();
    let slots = config.slots.len();
    context.out.done(format!(
        "{}: good; {slots} slot{}, roles: {}",
        file.display(),
        if slots == 1 { "" } else { "s" },
        roles.join(", ")
    ))
}

/// What slots.toml would say if nothing in it were left out.
#[derive(Serialize)]
struct WrittenConfig<'a> {
    daemon: &'a DaemonConfig,
    notify: toml::Table,
    sessions: toml::Table,
    slot: Vec<toml::Table>,
}

fn show(context: &Context, config: &Loaded) -> Result<(), Failure> {
    let no_form = |error| Failure::failed(format!("this config has no TOML form: {error}"));
    let slots = config.slots.iter().map(shown);
    let written = WrittenConfig {
        daemon: &config.daemon,
        notify: masked(&config.notify).map_err(no_form)?,
        sessions: masked(&config.sessions).map_err(no_form)?,
        slot: slots.collect::<Result<_, _>>().map_err(no_form)?,
    };
    if context.out.json {
        return context.out.json(&written);
    }
    let text = toml::to_string_pretty(&written).map_err(no_form)?;
    context
        .out
        .foreign(&format!("# {}\n{text}", config.file.display()))
}

/// A slot with its secrets masked. A shell slot takes no keys that are for Claude Code.
fn shown(slot: &SlotConfig) -> Result<toml::Table, toml::ser::Error> {
    let mut keys = masked(slot)?;
    if slot.kind != Kind::Claude {
        keys.retain(|key, _| !settings::FOR_CLAUDE.contains(&key));
    }
    Ok(keys)
}

/// A part of the config with its secrets masked.
fn masked(part: &impl Serialize) -> Result<toml::Table, toml::ser::Error> {
    let mut keys = toml::Table::try_from(part)?;
    for (name, value) in &mut keys {
        mask(name, value);
    }
    Ok(keys)
}

fn mask(name: &str, value: &mut toml::Value) {
    match value {
        toml::Value::String(text) => *text = secrets::mask_named(name, text),
        toml::Value::Array(items) => {
            // The value of an option is the argument behind its name.
            let mut option = None;
            for item in items {
                let next = item.as_str().filter(|item| item.starts_with("--"));
                let next = next.map(str::to_owned);
                mask(option.as_deref().unwrap_or(name), item);
                option = next;
            }
        }
        toml::Value::Table(table) => {
            for (name, value) in table.iter_mut() {
                mask(name, value);
            }
        }
        _ => {}
    }
}

/// Shows every fault; what is left to say is how many.
fn faults(context: &Context, file: &Path, error: &ConfigError) -> Result<Failure, Failure> {
    let problems = &error.problems;
    if context.out.json {
        let problems: Vec<Value> = problems.iter().map(Problem::to_json).collect();
        context.out.json(&json!({
            "ok": false, "file": file, "problems": problems,
        }))?;
    } else {
        context.out.aside(render(problems, true));
        context.out.aside("");
    }
    let count = problems.len();
    let plural = if count == 1 { "fault" } else { "faults" };
    Ok(Failure::usage(format!(
        "{count} {plural} in {}",
        file.display()
    )))
}
