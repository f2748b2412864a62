use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::setup::made::MadeFiles;
use crate::cli::{consent, setup, target};
use crate::config;
use crate::core::model::Fault;
use crate::os::paths::Env;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Removes what `setup` has made, and asks for the rest.
///
/// It names each file first, and asks. Files that `setup` has written are removed if nobody has changed them since. The config
/// with its policies, the logs and the state are asked about one by one; a script has to name them (--config-files, --logs,
/// --state). In the directories of others only missiond's own files are removed. Worktrees of slots and conversations of Claude
/// Code stay. It is refused (exit code 4) while a daemon runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond uninstall --dry-run
  missiond uninstall
  missiond uninstall --yes --logs --state   keeps the config")]
pub struct Uninstall {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Remove what setup has made, without a question
    #[arg(short, long)]
    yes: bool,
    /// Also slots.toml and the policies beside it
    #[arg(long)]
    config_files: bool,
    /// Also the logs, recordings and the audit
    #[arg(long)]
    logs: bool,
    /// Also what missiond keeps between its starts
    #[arg(long)]
    state: bool,
}

/// A kind of files beside those of `setup`.
#[derive(Debug, Serialize)]
struct RemovableFiles {
    what: &'static str,
    files: Vec<PathBuf>,
    #[serde(skip)]
    directory: PathBuf,
    #[serde(skip)]
    is_named: bool,
}

#[derive(Debug, Default, Serialize)]
struct Removed {
    removed: Vec<PathBuf>,
    /// Written by `setup` and changed since, or not asked for.
    kept: Vec<PathBuf>,
}

impl Uninstall {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let made = MadeFiles::load(&context.env)?;
        let rest = self.rest(context);
        let mut outcome = Removed::default();
        if self.dry_run {
            show(context, &made, &rest);
            outcome.kept = made.files.keys().cloned().collect();
            outcome
                .kept
                .extend(rest.into_iter().flat_map(|one| one.files));
            return self.finish(context, &outcome);
        }
        nobody_runs(context).await?;
        if !made.is_empty() {
            show(context, &made, &[]);
            self.consented(context)?;
            remove_made(made, &mut outcome, &context.env)?;
        }
        for one in rest {
            match self.is_wanted(context, &one)? {
                true => remove_rest(&one, &mut outcome)?,
                false => outcome.kept.extend(one.files),
            }
        }
        self.finish(context, &outcome)
    }

    /// The files of the config, the logs and the state, as far as there are any.
    fn rest(&self, context: &Context) -> Vec<RemovableFiles> {
        let mut rest = Vec::new();
        if let Ok(file) = target::config_file(context) {
            let file = context.env.cwd.join(file);
            rest.extend(config_of(&file, self.config_files));
            let logs = config::load_daemon(&file).map(|daemon| daemon.logs);
            rest.extend(logs.ok().map(|logs| logs_in(&logs, self.logs)));
        }
        if let Ok(state) = context.env.state_dir() {
            rest.push(RemovableFiles {
                what: "state",
                files: files_below(&state),
                directory: state,
                is_named: self.state,
            });
        }
        rest.retain(|one| !one.files.is_empty());
        rest
    }

    fn consented(&self, context: &Context) -> Result<(), Failure> {
        let refused = |text: &str| Failure::new(Blame::Fault(Fault::Refused), text);
        if self.yes {
            return Ok(());
        }
        if !consent::can_be_asked(context) {
            return Err(refused("nothing was removed: nobody is here to ask").next(
                "do it: missiond uninstall --yes\nor only look: missiond uninstall --dry-run",
            ));
        }
        match consent::given("remove this? [y/N] ")? {
            true => Ok(()),
            false => Err(refused("nothing was removed")),
        }
    }

    fn is_wanted(&self, context: &Context, rest: &RemovableFiles) -> Result<bool, Failure> {
        if rest.is_named || self.yes || !consent::can_be_asked(context) {
            return Ok(rest.is_named);
        }
        let (count, directory) = (rest.files.len(), rest.directory.display());
        let what = rest.what;
        consent::given(&format!(
            "remove the {what} too, {count} files in {directory}? [y/N] "
        ))
    }

    fn finish(&self, context: &Context, outcome: &Removed) -> Result<(), Failure> {
        if context.out.json {
            return context.out.json(outcome);
        }
        for file in &outcome.removed {
            context.out.done(format!("removed {}", file.display()))?;
        }
        if self.dry_run {
            return context.out.done("nothing was removed");
        }
        let directories: BTreeSet<&Path> =
            outcome.kept.iter().filter_map(|it| it.parent()).collect();
        for directory in directories {
            context
                .out
                .note(format!("kept: files in {}", directory.display()));
        }
        if let Ok(program) = std::env::current_exe() {
            let program = program.display();
            context.out.note(format!(
                "the program itself is {program}: remove it as it was installed"
            ));
        }
        Ok(())
    }
}

async fn nobody_runs(context: &Context) -> Result<(), Failure> {
    let found = target::find(context).await;
    let running = match found {
        Err(failure) if failure.blame == Blame::NoDaemon => return Ok(()),
        Err(failure) => return Err(failure),
        Ok(target) => context.try_target(&target).await.is_ok(),
    };
    match running {
        false => Ok(()),
        true => Err(Failure::new(
            Blame::Fault(Fault::Refused),
            "a daemon runs, so nothing was removed",
        )
        .next("end it and its slots first: missiond down")),
    }
}

fn show(context: &Context, made: &MadeFiles, rest: &[RemovableFiles]) {
    for file in made.files.keys() {
        context
            .out
            .note(format!("made by setup: {}", file.display()));
    }
    if made.linger {
        context
            .out
            .note("made by setup: your programs go on after your last logout (linger)");
    }
    for one in rest {
        let (count, directory) = (one.files.len(), one.directory.display());
        context
            .out
            .note(format!("{}: {count} files in {directory}", one.what));
    }
}

/// Removes what `setup` has written, unless somebody has changed it.
fn remove_made(made: MadeFiles, outcome: &mut Removed, env: &Env) -> Result<(), Failure> {
    let is_unit = |file: &Path| file.extension() == Some(OsStr::new("service"));
    let has_unit = made.files.keys().any(|file| is_unit(file));
    let has_systemd = has_unit && setup::is_in_path("systemctl");
    let systemctl = |words: &[&str]| {
        let line = ["systemctl", "--user"].iter().chain(words);
        let line: Vec<String> = line.map(|word| (*word).to_owned()).collect();
        setup::run(&line)
    };
    if has_systemd {
        systemctl(&["disable", "missiond.service"])?;
    }
    if made.linger {
        setup::run(&["loginctl".to_owned(), "disable-linger".to_owned()])?;
    }
    let mut left = MadeFiles::default();
    for (file, hash) in &made.files {
        let found = std::fs::read(file).unwrap_or_default();
        if made.is_own(file, &found) {
            remove(file, outcome)?;
        } else if file.exists() {
            left.files.insert(file.clone(), hash.clone());
            outcome.kept.push(file.clone());
        }
    }
    if has_systemd {
        systemctl(&["daemon-reload"])?;
    }
    left.save(env)
}

fn remove_rest(rest: &RemovableFiles, outcome: &mut Removed) -> Result<(), Failure> {
    rest.files
        .iter()
        .try_for_each(|file| remove(file, outcome))?;
    // Directories that hold something else stay; the deepest come first.
    let below = rest.files.iter().filter_map(|file| file.parent());
    let mut directories: BTreeSet<&Path> = below.collect();
    directories.insert(&rest.directory);
    for directory in directories.into_iter().rev() {
        let within = directory
            .ancestors()
            .take_while(|it| it.starts_with(&rest.directory));
        within.for_each(|it| drop(std::fs::remove_dir(it)));
    }
    Ok(())
}

fn remove(file: &Path, outcome: &mut Removed) -> Result<(), Failure> {
    match std::fs::remove_file(file) {
        Ok(()) => outcome.removed.push(file.to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(Failure::failed(format!(
                "cannot remove {}: {error}",
                file.display()
            )));
        }
    }
    Ok(())
}

/// The config and the policies that it names by their directory.
fn config_of(file: &Path, is_named: bool) -> Option<RemovableFiles> {
    let directory = file.parent()?.to_owned();
    let policies = config::load_daemon(file).map(|daemon| daemon.policies);
    let policies = policies
        .map(|policies| listed(&policies))
        .unwrap_or_default();
    let is_policy = |file: &PathBuf| file.extension() == Some(OsStr::new("toml"));
    let mut files: Vec<PathBuf> = policies.into_iter().filter(is_policy).collect();
    files.push(file.to_owned());
    Some(RemovableFiles {
        what: "config",
        files,
        directory,
        is_named,
    })
}

/// What missiond writes into a log directory, and nothing else that is there.
fn logs_in(directory: &Path, is_named: bool) -> RemovableFiles {
    let is_own = |file: &PathBuf| {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let base = name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit());
        [".log", ".events.jsonl", ".cast", "audit.jsonl", ".lock"]
            .iter()
            .any(|end| base.ends_with(end))
    };
    RemovableFiles {
        what: "logs",
        files: listed(directory).into_iter().filter(is_own).collect(),
        directory: directory.to_owned(),
        is_named,
    }
}

/// The plain files in a directory.
fn listed(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// All files below a directory of missiond's own; no link is followed.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let (mut files, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match is_directory {
                true => directories.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    files
}
