use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::control::protocol::Fault;
use crate::launch::resolve_program;
use crate::paths::Env;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The example at the top of the project, which its tests load.
const SLOTS: &str = include_str!("../../slots.toml");

/// The line of the example that says where a slot works.
const CWD: &str = "cwd = \".\"";

const POLICIES: &[(&str, &str)] = &[
    ("reader.toml", include_str!("../../policies/reader.toml")),
    ("coder.toml", include_str!("../../policies/coder.toml")),
    (
        "reviewer.toml",
        include_str!("../../policies/reviewer.toml"),
    ),
];

/// Writes a first slots.toml with three slots and their policies; changes no file that is there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond init --cwd ~/src/app    into your configuration directory, for slots that work in ~/src/app
  missiond init ./fleet            into another directory")]
pub struct Init {
    /// Where to write [default: missiond's directory in $XDG_CONFIG_HOME]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// Where the slots work
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    cwd: PathBuf,
}

impl Init {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let env = Env::of_process();
        let dir = match self.dir {
            Some(dir) => env.cwd.join(dir),
            None => env
                .config_dir()
                .map_err(|error| Failure::failed(error.to_string()))?,
        };
        let cwd = self.cwd.canonicalize().map_err(|error| {
            Failure::usage(format!("--cwd {}: {error}", self.cwd.display()))
                .next("name a directory that is there")
        })?;
        let written = write_all(&dir, &cwd)?;
        report(context, &dir, &written)
    }
}

/// The policies first, so that a slots.toml that is there is whole. Policies that are there stay.
fn write_all(dir: &Path, cwd: &Path) -> Result<Vec<PathBuf>, Failure> {
    let slots = dir.join("slots.toml");
    if slots.exists() {
        let refused = Blame::Fault(Fault::Refused);
        let message = format!("{} is there already", slots.display());
        return Err(Failure::new(refused, message)
            .next("it is left as it is; name another directory, or move it away"));
    }
    let policies = dir.join("policies");
    fs::create_dir_all(&policies).map_err(|error| unwritten(&policies, &error))?;
    let files = POLICIES
        .iter()
        .map(|(name, text)| (policies.join(name), (*text).to_owned()))
        .chain([(slots, slots_text(cwd))]);
    let mut written = Vec::new();
    for (file, text) in files {
        if write_new(&file, &text)? {
            written.push(file);
        }
    }
    Ok(written)
}

fn slots_text(cwd: &Path) -> String {
    let quoted = toml::Value::String(cwd.display().to_string());
    SLOTS.replace(CWD, &format!("cwd = {quoted}"))
}

/// False where the file is there.
fn write_new(file: &Path, text: &str) -> Result<bool, Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unwritten(file, &error)),
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can't be written: {error}", path.display()))
}

fn report(context: &Context, dir: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    let path = std::env::var("PATH").ok();
    let claude = resolve_program("claude", path.as_deref(), dir);
    if context.out.json {
        return context.out.json(&json!({
            "dir": dir, "written": written, "claude": claude.ok(),
        }));
    }
    for file in written {
        context.out.done(format!("wrote {}", file.display()))?;
    }
    if let Err(missing) = claude {
        context.out.note(missing);
    }
    let slots = dir.join("slots.toml");
    context.out.done(format!(
        "next: look through them, then: missiond up -c {}",
        slots.display()
    ))
}
