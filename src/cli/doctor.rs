mod linger;
mod own_settings;

use crate::cli::context::{ANSWER_LIMIT, Context};
use crate::cli::failure::Failure;
use crate::cli::rehearse;
use crate::cli::sanitise;
use crate::cli::settle::{self, FailedSlot};
use crate::cli::target;
use crate::cli::trust;
use crate::config::{self, Config, LOG_FILE};
use crate::control::client::{CallError, Client};
use crate::control::requests::{Ping, Status};
use crate::core::claude::Version;
use crate::core::model::{Nothing, Select, SlotStatus};
use crate::core::policy::Asking;
use crate::core::settings::{DaemonConfig, Kind, SlotConfig};
use crate::core::text::diagnostic::Problem;
use crate::core::text::quoting::quoted;
use crate::daemon::{DaemonError, check_log_directory, check_socket_directory};
use crate::launch::rehearsed::{Acquaintance, acquaintance, how_to};
use crate::launch::{
    NoVersion, check_cwd, environment, installed_version, process_environment, resolve_program,
};
use crate::os::headroom;
use crate::os::paths::{Env, check_private_dir};
use crate::shim;
use crate::slot::sessions_dir;
use anstyle::{AnsiColor, Style};
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Looks for what would stop a slot, and says how to fix it.
///
/// It looks at the program, the config, the policies, what your own settings of Claude Code allow, the socket, the
/// logs, the limits of the machine, and the slots that fail while the daemon runs. Ends with 1 if it finds anything of the kind. With `--rehearse` the installed Claude Code is led through every state and dialog
/// in a throw-away home, with no account and no network, and it is told which of them missiond reads right. That
/// takes about a minute and is remembered for this version.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond doctor -c slots.toml
  missiond doctor --json
  missiond doctor --rehearse             before the first use of a new version
  missiond doctor --rehearse --claude ~/.local/bin/claude
  missiond doctor --rehearse --claude node ~/claude-code/cli.js")]
pub struct Doctor {
    /// Try every state and dialog on the installed program
    #[arg(long)]
    rehearse: bool,
    /// The program to rehearse, and its first arguments, where it is not the first slot's
    #[arg(long, value_name = "PROGRAM", num_args = 1.., requires = "rehearse",
        value_hint = clap::ValueHint::ExecutablePath)]
    claude: Vec<String>,
}

/// Below this a busy slot's recording may fill the disk within days.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;

/// The daemon's own, and for each slot its connection, logs, and a few clients.
const FILES_OF_DAEMON: u64 = 64;
const FILES_OF_SLOT: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum DoctorCheck {
    Ok,
    /// Slots run, but something may go wrong.
    Warn,
    /// A slot can't run.
    Fail,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    check: &'static str,
    health: DoctorCheck,
    detail: String,
    /// What to do, where the detail does not say it already.
    fix: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            check,
            health: DoctorCheck::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    fn warn(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            health: DoctorCheck::Warn,
            ..Finding::ok(check, detail)
        }
    }

    fn fail(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            health: DoctorCheck::Fail,
            ..Finding::ok(check, detail)
        }
    }

    fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }
}

impl Doctor {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.rehearse {
            return rehearse::run(context, &self.claude).await;
        }
        let findings = examine(context).await;
        let healthy = findings
            .iter()
            .all(|found| found.health != DoctorCheck::Fail);
        if context.out.json {
            let answer = json!({ "ok": healthy, "checks": findings });
            context.out.json(&answer)?;
        } else {
            findings
                .iter()
                .try_for_each(|finding| context.out.line(line(finding)))?;
        }
        if healthy {
            return Ok(());
        }
        Err(Failure::failed("something above would stop a slot"))
    }
}

async fn examine(context: &Context) -> Vec<Finding> {
    let file = match target::config_file(context) {
        Ok(file) => file,
        Err(failure) => {
            let config = Finding::fail("config", failure.message).fix("missiond init");
            return vec![config, usual_program(&context.env).await];
        }
    };
    let config = match config::load(&file) {
        Ok(config) => config,
        Err(error) => {
            let faults: Vec<String> = error.problems.iter().map(Problem::in_short).collect();
            let see = || {
                let file = quoted(&file.display().to_string());
                format!("see where: missiond config check -c {file}")
            };
            // A fault of a file as a whole has no line to see.
            let of_file =
                |problem: &Problem| problem.help.clone().filter(|_| problem.text.is_empty());
            let fixes: Option<Vec<String>> = error.problems.iter().map(of_file).collect();
            let fix = fixes.map_or_else(see, |fixes| fixes.join("\n"));
            return vec![Finding::fail("config", faults.join("\n")).fix(fix)];
        }
    };
    let env = Env::of_process();
    let mut findings = vec![loaded(&config), access_to(&config)];
    findings.extend(programs(&config, &env).await);
    findings.extend(own_settings::findings(&config, &env));
    findings.extend(modes(&config));
    findings.push(trusted(&config, &env));
    findings.push(socket(&env, &config.daemon));
    findings.extend(linger::linger(env.runtime_home.as_deref()));
    findings.push(logs(&env, &config.daemon));
    findings.push(state(&env, &config.daemon));
    findings.extend(ptys(config.slots.len() as u64));
    findings.push(open_files(config.slots.len() as u64));
    findings.extend(daemon(context, &file, &config).await);
    findings
}

/// Whether the daemon that runs is this config's, and which programs run that the config does not name.
async fn daemon(context: &Context, file: &Path, config: &Config) -> Vec<Finding> {
    let Ok(target) = target::of_config(context, file).await else {
        return Vec::new();
    };
    let mut client = match Client::connect_to(&target.socket, &target.wanted).await {
        Ok(client) => client,
        Err(CallError::NotRunning(_)) => {
            return left_behind(&context.env, config).into_iter().collect();
        }
        Err(error) => {
            let Failure { message, next, .. } = Failure::from(error);
            let fix = next.unwrap_or_default();
            return vec![Finding::fail("daemon", message).fix(fix)];
        }
    };
    let asked = client.call::<Status>(Select::default());
    let statuses = match tokio::time::timeout(ANSWER_LIMIT, asked).await {
        Ok(Ok(statuses)) => statuses,
        Ok(Err(error)) => return vec![Finding::warn("daemon", error.to_string())],
        Err(_) => return vec![Finding::warn("daemon", "it does not answer")],
    };
    let mut findings: Vec<Finding> = settle::of(&statuses).failed.iter().map(failing).collect();
    findings.insert(0, running(statuses));
    // What hampers it is worth a line; a daemon that ends just now has none.
    let pong = tokio::time::timeout(ANSWER_LIMIT, client.call::<Ping>(Nothing {})).await;
    let health = pong.ok().and_then(Result::ok).map(|pong| pong.health);
    let ill = health.unwrap_or_default().into_iter();
    findings.extend(ill.map(|one| Finding::warn("daemon", one.text).fix(one.remedy)));
    findings
}

/// A slot that has given up, or that ends and is started again.
fn failing(FailedSlot { slot, why }: &FailedSlot) -> Finding {
    let fix = format!("see what it said: missiond logs {slot}\nthen: missiond start {slot}");
    Finding::fail("slot", format!("{slot} fails: {why}")).fix(fix)
}

fn running(statuses: Vec<SlotStatus>) -> Finding {
    let removed = statuses.into_iter().filter(|status| status.removed);
    let removed: Vec<String> = removed.map(|status| status.slot).collect();
    if removed.is_empty() {
        return Finding::ok("daemon", "it runs with this config");
    }
    let names = removed.join(", ");
    let detail = format!("not in the config, and its program runs: {names}");
    let fix = format!("missiond stop {}, or put it back", removed.join(" "));
    Finding::warn("daemon", detail).fix(fix)
}

/// Programs of slots that left the config while no daemon runs.
fn left_behind(env: &Env, config: &Config) -> Option<Finding> {
    let name = &config.daemon.name;
    let sessions = sessions_dir(&env.state_dir().ok()?.join(name));
    let is_known = |slot: &String| {
        let is_session = sessions.join(format!("{slot}.json")).exists();
        is_session || config.slots.iter().any(|known| known.name == *slot)
    };
    let living = shim::Handle::all(&env.state_dir().ok()?.join(name)).ok()?;
    let slots = living.iter().map(|shim| shim.slot().to_owned());
    let found: Vec<String> = slots.filter(|slot| !is_known(slot)).collect();
    if found.is_empty() {
        return None;
    }
    let (names, words) = (found.join(", "), found.join(" "));
    let detail =
        format!("no daemon runs, and these programs run that the config does not name: {names}");
    let fix = format!("missiond up takes them up; then: missiond stop {words}, or put them back");
    Some(Finding::warn("daemon", detail).fix(fix))
}

fn loaded(config: &Config) -> Finding {
    let slots: Vec<&str> = config.slots.iter().map(|slot| slot.name.as_str()).collect();
    let detail = format!(
        "{}: {}; policies in {}",
        config.file.display(),
        slots.join(", "),
        config.daemon.policies.display()
    );
    Finding::ok("config", detail)
}

/// A config that somebody else could change is not loaded at all.
fn access_to(config: &Config) -> Finding {
    let policies = match config.policies.len() {
        0 => String::new(),
        1 => " and its policy".to_owned(),
        several => format!(" and its {several} policies"),
    };
    let detail = format!("only you and root can change the config{policies}");
    Finding::ok("access", detail)
}

/// Each slot may have a PATH of its own; those that fare alike share a line.
async fn programs(config: &Config, env: &Env) -> Vec<Finding> {
    let mut findings: Vec<(Vec<&str>, Finding)> = Vec::new();
    for slot in &config.slots {
        let finding = program(slot, env, &config.daemon).await;
        let alike = findings.iter_mut().find(|(_, other)| *other == finding);
        match alike {
            Some((slots, _)) => slots.push(&slot.name),
            None => findings.push((vec![&slot.name], finding)),
        }
    }
    findings
        .into_iter()
        .map(|(slots, finding)| Finding {
            detail: format!("{}: {}", slots.join(", "), finding.detail),
            ..finding
        })
        .collect()
}

/// What a slot would run if nothing is written about it: somebody new wants to know before there is a config.
async fn usual_program(env: &Env) -> Finding {
    let variables = process_environment();
    let path = variables.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.as_str());
    match resolve_program("claude", path, &env.cwd) {
        Ok(program) => versioned(&program, &[], &variables, &env.cwd, env).await,
        Err(error) => Finding::fail("program", error.to_string()).fix(
            "npm install -g @anthropic-ai/claude-code; to see missiond without it: missiond demo",
        ),
    }
}

async fn program(slot: &SlotConfig, env: &Env, daemon: &DaemonConfig) -> Finding {
    let socket = daemon.socket_in(env).unwrap_or_default();
    let mut variables = environment(slot, &socket, process_environment());
    // A running daemon would take what is tried here for a part of its slot.
    variables.retain(|(name, _)| !name.starts_with("MISSIOND_"));
    let path = variables.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.as_str());
    let command = slot.command.first().map_or("", String::as_str);
    let found = check_cwd(&slot.cwd).and_then(|()| resolve_program(command, path, &slot.cwd));
    let program = match found {
        Ok(program) => program,
        Err(error) => return unable("program", &error.to_string()),
    };
    if let Err(why) = shim::check_program(&program) {
        return Finding::fail("program", why)
            .fix("name another program in `command`, or repair this one");
    }
    if slot.kind == Kind::Shell {
        return Finding::ok("program", program.display().to_string());
    }
    let first = slot.command.get(1..).unwrap_or_default();
    versioned(&program, first, &variables, &slot.cwd, env).await
}

/// A program that is there, by its version.
async fn versioned(
    program: &Path,
    first: &[String],
    variables: &[(String, String)],
    cwd: &Path,
    env: &Env,
) -> Finding {
    let version = installed_version(program, first, variables, cwd).await;
    match version {
        Ok(version) => {
            let state = env.state_dir().unwrap_or_default();
            let mut command = vec![program.to_string_lossy().into_owned()];
            command.extend(first.iter().cloned());
            let known = acquaintance(&state, version, &command);
            judge_version(&command, version, known)
        }
        Err(why) => {
            let command: Vec<String> = std::iter::once(program.display().to_string())
                .chain(first.iter().cloned())
                .map(|word| quoted(&word))
                .collect();
            let command = command.join(" ");
            let fix = format!("try: {command} --version");
            match why {
                NoVersion::Fails(why) => {
                    let detail = format!("{command} --version fails: {}", sanitise::text(&why));
                    Finding::fail("program", detail).fix(fix)
                }
                NoVersion::Untold(why) => {
                    let detail = format!("{command} does not tell its version: {why}");
                    Finding::warn("program", detail).fix(fix)
                }
            }
        }
    }
}

fn judge_version(command: &[String], version: Version, known: Acquaintance) -> Finding {
    let is_known = known.is_known();
    let rehearsed = match known {
        Acquaintance::Driven => "yes, missiond was rehearsed with this version".to_owned(),
        Acquaintance::Rehearsed(last) => format!("yes, on {}", last.at),
        Acquaintance::Failed(last) => {
            format!(
                "on {}, and these failed: {}",
                last.at,
                last.failed.join(", ")
            )
        }
        Acquaintance::Stranger => "no".to_owned(),
    };
    let detail = format!("{}, {version}; rehearsed: {rehearsed}", command.join(" "));
    if is_known {
        return Finding::ok("program", detail);
    }
    Finding::warn("program", detail).fix(how_to(command))
}

/// Claude Code asks about a folder that it does not know before it works there.
/// The slots in which nobody is asked.
fn modes(config: &Config) -> Option<Finding> {
    let slots = config.slots.iter().filter(|slot| {
        slot.kind == Kind::Claude && Asking::in_mode(&slot.mode) == Asking::NotEvenIfTold
    });
    let slots: Vec<&str> = slots.map(|slot| slot.name.as_str()).collect();
    let detail = format!(
        "{}: in bypassPermissions Claude Code may run a call although a hook says ask, so what needs a person is denied",
        slots.join(", ")
    );
    let fix = "if you want to be asked, set another mode, such as mode = \"acceptEdits\"";
    (!slots.is_empty()).then(|| Finding::warn("mode", detail).fix(fix))
}

fn trusted(config: &Config, env: &Env) -> Finding {
    let untrusted = trust::untrusted(config, env);
    if untrusted.is_empty() {
        return Finding::ok("trust", "Claude Code asks about no slot's folder");
    }
    let detail = format!(
        "Claude Code does not trust these folders yet, and asks before it works there\n{}",
        trust::listed(&untrusted)
    );
    Finding::warn("trust", detail)
        .fix("if you trust what is in them: missiond up --trust, or missiond confirm SLOT yes at each question")
}

fn socket(env: &Env, daemon: &DaemonConfig) -> Finding {
    let socket = match daemon.socket_in(env) {
        Ok(socket) => socket,
        Err(error) => return unable("socket", &error.to_string()),
    };
    let runtime = env.runtime_dir().and_then(|dir| check_private_dir(&dir));
    if let Err(error) = runtime {
        return unable("socket", &error.to_string());
    }
    let dir = socket.parent().unwrap_or(Path::new("/"));
    match check_socket_directory(dir, env) {
        Err(DaemonError::Place { cause, next, .. }) if dir.exists() => Finding {
            fix: next,
            ..Finding::fail("socket", cause)
        },
        _ => Finding::ok("socket", socket.display().to_string()),
    }
}

/// These errors say what is wrong and, behind a colon or on the next line, what to do about it.
fn unable(check: &'static str, error: &str) -> Finding {
    let parts = error.split_once('\n').or_else(|| error.rsplit_once(": "));
    match parts {
        Some((detail, fix)) if !fix.contains("os error") => {
            Finding::fail(check, detail).fix(fix.trim())
        }
        _ => Finding::fail(check, error),
    }
}

fn logs(env: &Env, daemon: &DaemonConfig) -> Finding {
    if let Err(DaemonError::Place { cause, next, .. }) =
        check_log_directory(&daemon.logs, env, &[LOG_FILE])
    {
        return Finding {
            fix: next,
            ..Finding::fail("logs", cause)
        };
    }
    let logs = daemon.logs.display();
    // It is made when the daemon starts: what counts is the directory in which it will be.
    let there = nearest_there(&daemon.logs);
    let space = match statvfs(&there) {
        Err(_) => return Finding::ok("logs", logs.to_string()),
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
    };
    if headroom::is_disk_full(&there) {
        return full("logs", &daemon.logs);
    }
    let detail = format!("{logs}, {} MiB free", space / (1024 * 1024));
    if space < LITTLE_SPACE {
        let fix = "make room: recordings grow with what is shown";
        return Finding::warn("logs", detail).fix(fix);
    }
    Finding::ok("logs", detail)
}

/// Where the daemon keeps its records of the slots.
fn state(env: &Env, daemon: &DaemonConfig) -> Finding {
    let dir = match env.state_dir() {
        Ok(dir) => dir.join(&daemon.name),
        Err(error) => return unable("state", &error.to_string()),
    };
    if let Err(error) = check_private_dir(&dir) {
        return unable("state", &error.to_string());
    }
    let there = nearest_there(&dir);
    if let Err(error) = access(&there, Access::WRITE_OK | Access::EXEC_OK) {
        let detail = format!("{}: {error}", there.display());
        return Finding::fail("state", detail).fix(
            "see to it that you can write it, or set XDG_STATE_HOME to a directory of your own",
        );
    }
    match headroom::is_disk_full(&there) {
        true => full("state", &dir),
        false => Finding::ok("state", dir.display().to_string()),
    }
}

fn full(check: &'static str, dir: &Path) -> Finding {
    let detail = format!("the disk of {} is full", dir.display());
    Finding::fail(check, detail).fix("make room on it")
}

fn nearest_there(dir: &Path) -> PathBuf {
    let there = dir.ancestors().find(|dir| dir.exists());
    there.unwrap_or(Path::new("/")).to_owned()
}

/// Linux counts them; elsewhere there is nothing to say.
fn ptys(slots: u64) -> Option<Finding> {
    let read = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?;
        text.trim().parse().ok()
    };
    let free = read("max")?.saturating_sub(read("nr")?);
    let detail = format!("{free} terminals free, {slots} needed");
    Some(if free < slots {
        Finding::fail("terminals", detail).fix("sudo sysctl kernel.pty.max=4096")
    } else {
        Finding::ok("terminals", detail)
    })
}

fn open_files(slots: u64) -> Finding {
    let needed = FILES_OF_DAEMON + FILES_OF_SLOT * slots;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let detail = format!("{limit} open files allowed, about {needed} needed");
    if limit < needed {
        return Finding::fail("files", detail).fix(format!("ulimit -n {}", needed * 2));
    }
    Finding::ok("files", detail)
}

fn line(finding: &Finding) -> String {
    let (word, colour) = match finding.health {
        DoctorCheck::Ok => ("ok  ", AnsiColor::Green),
        DoctorCheck::Warn => ("warn", AnsiColor::Yellow),
        DoctorCheck::Fail => ("fail", AnsiColor::Red),
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let detail = finding.detail.replace('\n', "\n                ");
    let fixes = finding.fix.iter().flat_map(|fix| fix.lines());
    let fix: String = fixes
        .map(|fix| format!("\n                fix: {fix}"))
        .collect();
    format!("{style}{word}{style:#}  {:<10}{detail}{fix}", finding.check)
}
