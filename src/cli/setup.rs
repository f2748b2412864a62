pub mod made;
mod unit;

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::{completions, consent};
use crate::core::model::Fault;
use crate::os::paths::Env;
use clap_complete::env::Shells;
use made::{FileChange, MadeFiles};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs the systemd user unit and the completions of your shell.
///
/// It shows what it will write, and asks; a script says --yes. A file that is there already and that missiond has not written
/// is never changed. `missiond uninstall` removes what this has made. Done again, it writes only what has changed, such as
/// the path of the program.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond setup --dry-run      only show what it would do
  missiond setup --yes
  missiond setup --linger       slots also run while you are not logged in")]
pub struct Setup {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do it without a question
    #[arg(short, long)]
    yes: bool,
    /// Have the system keep your programs after your last logout (loginctl enable-linger)
    #[arg(long)]
    linger: bool,
    /// The shell to complete in [default: that of $SHELL]
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["bash", "zsh", "fish"]))]
    shell: Option<String>,
}

/// What is to be done.
#[derive(Debug, Serialize)]
struct Plan {
    files: Vec<PlannedFile>,
    /// Commands, each with its arguments.
    commands: Vec<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct PlannedFile {
    path: PathBuf,
    change: FileChange,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct SetupAnswer<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    done: bool,
}

impl Setup {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut made = MadeFiles::load(&context.env)?;
        let plan = self.plan(context, &made)?;
        if plan.is_empty() {
            return finish(context, &plan, false, "everything is set up already");
        }
        show(context, &plan);
        if self.dry_run {
            return finish(context, &plan, false, "nothing was done");
        }
        self.consented(context)?;
        for file in &plan.files {
            made.write(&file.path, &file.text)?;
        }
        made.save(&context.env)?;
        plan.commands.iter().try_for_each(|line| run(line))?;
        if self.linger {
            made.linger = true;
            made.save(&context.env)?;
        }
        finish(
            context,
            &plan,
            true,
            "done; undo it with: missiond uninstall",
        )?;
        self.advise(context);
        Ok(())
    }

    fn plan(&self, context: &Context, made: &MadeFiles) -> Result<Plan, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
        let mut wanted = Vec::new();
        let has_systemd = is_in_path("systemctl");
        if has_systemd {
            let config = context
                .named_config()
                .map(|file| context.env.cwd.join(file));
            let path = std::env::var("PATH").unwrap_or_default();
            let text = unit::text(&program, config.as_deref(), &path)?;
            wanted.push((unit::file(&context.env)?, text));
        }
        if let Some(shell) = self.shell() {
            let script = completions::script(&shell, &program)?;
            wanted.extend(place_of(&shell, &context.env).map(|place| (place, script)));
        }
        let mut files = Vec::new();
        for (path, text) in wanted {
            match made.change(&path, &text)? {
                FileChange::None => {}
                change => files.push(PlannedFile { path, change, text }),
            }
        }
        let mut commands = Vec::new();
        let is_unit = |file: &PlannedFile| file.path.extension().is_some_and(|it| it == "service");
        if files.iter().any(is_unit) {
            commands.push(words("systemctl --user daemon-reload"));
            commands.push(words("systemctl --user enable missiond.service"));
        }
        if self.linger && !made.linger {
            commands.push(words("loginctl enable-linger"));
        }
        Ok(Plan { files, commands })
    }

    fn shell(&self) -> Option<String> {
        let of_user = || {
            let shell = PathBuf::from(std::env::var_os("SHELL")?);
            let name = shell.file_name()?.to_str()?.to_owned();
            Shells::builtins().completer(&name).map(|_| name)
        };
        self.shell.clone().or_else(of_user)
    }

    fn consented(&self, context: &Context) -> Result<(), Failure> {
        let refused = |text: &str| Failure::new(Blame::Fault(Fault::Refused), text);
        if self.yes {
            return Ok(());
        }
        if !consent::can_be_asked(context) {
            return Err(refused("nothing was done: nobody is here to ask")
                .next("do it: missiond setup --yes\nor only look: missiond setup --dry-run"));
        }
        match consent::given("do this? [y/N] ")? {
            true => Ok(()),
            false => Err(refused("nothing was done")),
        }
    }

    fn advise(&self, context: &Context) {
        let note = |text: &str| context.out.note(text);
        match is_in_path("systemctl") {
            true => note("start the daemon: systemctl --user start missiond.service"),
            false => note("there is no systemd here: start the daemon with missiond up"),
        }
        if !self.linger && is_in_path("loginctl") {
            note("to have slots run while you are not logged in: missiond setup --linger");
        }
        if self.shell().as_deref() == Some("zsh") {
            note(
                "for zsh, put this before compinit in ~/.zshrc: fpath+=(~/.local/share/zsh/site-functions)",
            );
        }
    }
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.commands.is_empty()
    }
}

/// Where a shell looks for completions of its user.
fn place_of(shell: &str, env: &Env) -> Option<PathBuf> {
    let (config, data) = (env.config_home.as_ref()?, env.data_home.as_ref()?);
    match shell {
        "bash" => Some(data.join("bash-completion/completions/missiond")),
        "zsh" => Some(data.join("zsh/site-functions/_missiond")),
        "fish" => Some(config.join("fish/completions/missiond.fish")),
        _ => None,
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn show(context: &Context, plan: &Plan) {
    for file in &plan.files {
        let what = match file.change {
            FileChange::New => "write",
            FileChange::Again | FileChange::None => "write again",
        };
        context.out.note(format!("{what} {}", file.path.display()));
        // Of a script nobody reads more than its place.
        if file.path.extension().is_some_and(|it| it == "service") {
            for line in file.text.lines() {
                context.out.note(format!("  │ {line}"));
            }
        }
    }
    for line in &plan.commands {
        context.out.note(format!("run {}", line.join(" ")));
    }
}

fn finish(context: &Context, plan: &Plan, done: bool, text: &str) -> Result<(), Failure> {
    match context.out.json {
        true => context.out.json(&SetupAnswer { plan, done }),
        false => context.out.done(text),
    }
}

/// Whether a program of this name can be found.
pub fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| is_program(&place.join(program)))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = file.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Runs a command of the plan; its own words say what is wrong.
pub fn run(line: &[String]) -> Result<(), Failure> {
    let shown = line.join(" ");
    let [program, arguments @ ..] = line else {
        return Ok(());
    };
    let ran = Command::new(program).args(arguments).output();
    let ran = ran.map_err(|error| Failure::failed(format!("cannot run `{shown}`: {error}")))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
    Err(Failure::failed(format!("`{shown}` has failed: {said}"))
        .next("the files are written; when that is put right, run it by hand"))
}
