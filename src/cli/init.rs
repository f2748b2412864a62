use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::trust;
use crate::core::claude::Version;
use crate::core::model::Fault;
use crate::core::policy::{policy_for_stacks, stacks_of};
use crate::launch::{NoVersion, installed_version, process_environment, resolve_program};
use crate::os::paths::Env;
use crate::os::trusted_file::{self, Trusted};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The example at the top of the project, which its tests load.
const SLOTS: &str = include_str!("../../slots.toml");

/// The line of the example that says where a slot works, and the one that names the program.
const CWD: &str = "cwd = \".\"";
const COMMAND: &str = "command = [\"claude\"]";
/// How the part of the example that is about one slot begins.
const SLOT: &str = "\n[[slot]]";

/// A role with its policy.
struct NewRole {
    name: &'static str,
    what: &'static str,
    policy: &'static str,
}

const ROLES: [NewRole; 3] = [
    NewRole {
        name: "reader",
        what: "answers questions about the code, changes nothing",
        policy: include_str!("../../policies/reader.toml"),
    },
    NewRole {
        name: "coder",
        what: "writes code and runs the tests",
        policy: include_str!("../../policies/coder.toml"),
    },
    NewRole {
        name: "reviewer",
        what: "reads what was written, and runs the tests itself",
        policy: include_str!("../../policies/reviewer.toml"),
    },
];

/// Writes a first slots.toml, with a policy for each role.
///
/// It looks at the slots' directory (Cargo.toml, package.json, pyproject.toml, go.mod, Makefile, compose.yaml and others)
/// and adds the rules that such a project needs.
/// It changes no file that is there, unless --force is given.
/// On a terminal it asks what no flag says; with a flag, or from a script, it asks nothing.
/// Claude Code works in a folder only after somebody has said that they trust it. If it would ask about the slots'
/// directory, you are asked once; --trust says it beforehand. `up` gives your word to Claude Code's own question.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond init                                asks where the slots work and which roles there are
  missiond init --cwd ~/src/app --trust        the same, and you trust what is in ~/src/app
  missiond init --cwd ~/src/app                into your configuration directory, for ~/src/app
  missiond init ./fleet --roles reader,coder   into another directory, with two slots")]
pub struct Init {
    /// Where to write [default: missiond's directory in $XDG_CONFIG_HOME]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// Where the slots work [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,

    /// Which roles get a slot [default: reader,coder,reviewer]
    #[arg(long, value_name = "ROLE", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(ROLES.map(|role| role.name)))]
    roles: Vec<String>,

    /// The program that the slots run
    #[arg(long, value_name = "PROGRAM", default_value = "claude", value_hint = clap::ValueHint::ExecutablePath)]
    claude: String,

    /// Say that you trust what is in the slots' directory: `up` then answers Claude Code's question about it
    #[arg(long)]
    trust: bool,

    /// Replace files that are there; each is kept beside the new one as FILE.old
    #[arg(long)]
    force: bool,
}

impl Init {
    pub async fn run(mut self, context: &Context) -> Result<(), Failure> {
        let env = Env::of_process();
        let dir = match &self.dir {
            // As a person would write it, without `.` in the middle.
            Some(dir) => env.cwd.join(dir).components().collect(),
            None => env
                .config_dir()
                .map_err(|error| Failure::failed(error.to_string()))?,
        };
        self.refuse_to_replace(&dir)?;
        refuse_where_others_write(&dir, &env)?;
        let asks = self.asks(context);
        if asks {
            self.ask(&mut std::io::stdin().lock(), &mut std::io::stdout())?;
        }
        let cwd = self.work_directory()?;
        let trust = self.trust(asks, &cwd)?;
        self.claude = self.program(&env.cwd);
        let written = self.write_all(&dir, &cwd)?;
        if trust == Trust::Given {
            trust::agree(&env, [cwd.clone()])?;
        }
        let found = find(&self.claude, &env.cwd).await;
        report(context, &dir, &written, &found, trust)
    }

    /// Whether the person trusts the slots' directory: by the flag, or asked at the terminal.
    fn trust(&self, asks: bool, cwd: &Path) -> Result<Trust, Failure> {
        if !trust::asks_about(cwd) {
            return Ok(Trust::NotNeeded);
        }
        let folder = [(cwd.to_owned(), self.wanted_roles())].into();
        let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout());
        match self.trust || asks && trust::ask(&folder, &mut input, &mut output)? {
            true => Ok(Trust::Given),
            false => Ok(Trust::Missing),
        }
    }

    fn wanted_roles(&self) -> Vec<String> {
        let wanted = ROLES.iter().filter(|role| self.is_wanted(role));
        wanted.map(|role| role.name.to_owned()).collect()
    }

    /// Somebody is there, and has not said it by a flag.
    fn asks(&self, context: &Context) -> bool {
        let flags = self.cwd.is_some() || !self.roles.is_empty() || self.trust;
        let silent = flags || context.out.json || context.out.quiet;
        !silent && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    fn ask(&mut self, input: &mut impl BufRead, output: &mut impl Write) -> Result<(), Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let here = here.display().to_string();
        let directory = |said: &str| {
            let directory = home_for_tilde(said);
            directory.is_dir().then_some(directory)
        };
        let question = "Where do the slots work?";
        let hint = "  that is no directory";
        self.cwd = Some(answer(input, output, (question, &here, hint), directory)?);
        for role in &ROLES {
            let question = format!("A {}, which {}?", role.name, role.what);
            if answer(input, output, (&question, "yes", "  yes or no?"), yes_or_no)? {
                self.roles.push(role.name.to_owned());
            }
        }
        match self.roles.is_empty() {
            true => Err(Failure::usage(
                "without a role there is no slot: nothing was written",
            )),
            false => Ok(()),
        }
    }

    fn work_directory(&self) -> Result<PathBuf, Failure> {
        let cwd = self.cwd.as_deref().unwrap_or(Path::new("."));
        let fault = |why: String| {
            let message = format!("the slots can't work in {}: {why}", cwd.display());
            Failure::usage(message).next("name a directory that is there: --cwd DIR")
        };
        let whole = cwd
            .canonicalize()
            .map_err(|error| fault(error.to_string()))?;
        match whole.is_dir() {
            true => Ok(whole),
            false => Err(fault("it is not a directory".to_owned())),
        }
    }

    /// The program as slots.toml names it: a path is meant from here, and not from where a slot works.
    fn program(&self, here: &Path) -> String {
        match self.claude.contains('/') {
            true => here
                .join(&self.claude)
                .components()
                .collect::<PathBuf>()
                .display()
                .to_string(),
            false => self.claude.clone(),
        }
    }

    fn refuse_to_replace(&self, dir: &Path) -> Result<(), Failure> {
        let slots = dir.join("slots.toml");
        if self.force || !slots.exists() {
            return Ok(());
        }
        let refused = Blame::Fault(Fault::Refused);
        let message = format!("{} is there already", slots.display());
        Err(Failure::new(refused, message)
            .next("it is left as it is; name another directory, move it away, or add --force"))
    }

    fn is_wanted(&self, role: &NewRole) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|name| name == role.name)
    }

    /// The policies first, so that a slots.toml that is there is whole. Policies that are there stay.
    fn write_all(&self, dir: &Path, cwd: &Path) -> Result<Vec<PathBuf>, Failure> {
        let policies = dir.join("policies");
        fs::create_dir_all(&policies).map_err(|error| unwritten(&policies, &error))?;
        let stacks = stacks_of(|mark| cwd.join(mark).exists());
        let wanted = ROLES.iter().filter(|role| self.is_wanted(role));
        let files = wanted
            .map(|role| {
                let text = policy_for_stacks(role.policy, role.name, &stacks);
                (policies.join(format!("{}.toml", role.name)), text)
            })
            .chain([(dir.join("slots.toml"), self.slots_text(cwd))]);
        let mut written = Vec::new();
        for (file, text) in files {
            if write_new(&file, &text, self.force)? {
                written.push(file);
            }
        }
        Ok(written)
    }

    /// The example, with the slots of the wanted roles only.
    fn slots_text(&self, cwd: &Path) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned());
        let mut parts = SLOTS.split(SLOT);
        let head = parts.next().unwrap_or_default();
        let head = head.replace(COMMAND, &format!("command = [{}]", quoted(&self.claude)));
        let is_of =
            |part: &str, role: &NewRole| part.contains(&format!("role = \"{}\"", role.name));
        let slots = parts.filter(|part| {
            let wanted = |role: &NewRole| self.is_wanted(role) && is_of(part, role);
            ROLES.iter().any(wanted)
        });
        let cwd = format!("cwd = {}", quoted(&cwd.display().to_string()));
        let slots = slots.map(|part| format!("{SLOT}{}", part.replace(CWD, &cwd)));
        std::iter::once(head).chain(slots).collect()
    }
}

/// A config that others could change would not be loaded: this is said before anything is written.
fn refuse_where_others_write(dir: &Path, env: &Env) -> Result<(), Failure> {
    let Err(exposed) = trusted_file::check_place(dir, &Trusted::of_process()) else {
        return Ok(());
    };
    let message = format!("a config in {} would not be safe: {exposed}", dir.display());
    let refused = Failure::new(Blame::Fault(Fault::Refused), message);
    Err(match exposed.fix(&dir.join("slots.toml"), env) {
        Some(fix) => refused.next(fix),
        None => refused,
    })
}

/// What a person's line means, or what is usual where it is empty; asked again with a hint where it means nothing.
pub(super) fn answer<T>(
    input: &mut impl BufRead,
    output: &mut impl Write,
    (question, usual, hint): (&str, &str, &str),
    meaning: impl Fn(&str) -> Option<T>,
) -> Result<T, Failure> {
    let gone = |error| Failure::failed(format!("the terminal is gone: {error}"));
    loop {
        write!(output, "{question} [{usual}] ")
            .and_then(|()| output.flush())
            .map_err(gone)?;
        let mut line = String::new();
        // Ctrl-D: whoever leaves has not agreed to anything.
        if input.read_line(&mut line).map_err(gone)? == 0 {
            return Err(Failure::failed("no answer: nothing was written"));
        }
        let said = match line.trim() {
            "" => usual,
            said => said,
        };
        if let Some(meant) = meaning(said) {
            return Ok(meant);
        }
        writeln!(output, "{hint}").map_err(gone)?;
    }
}

pub(super) fn yes_or_no(said: &str) -> Option<bool> {
    match said.to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

/// A shell would have done it, had it been a flag.
fn home_for_tilde(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

/// False where the file is there and stays.
fn write_new(file: &Path, text: &str, force: bool) -> Result<bool, Failure> {
    if force && file.exists() {
        fs::rename(file, free_name(file)).map_err(|error| unwritten(file, &error))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unwritten(file, &error)),
    }
}

/// `FILE.old`, and `FILE.old2` and so on where there is one already.
fn free_name(file: &Path) -> PathBuf {
    let named = |number: String| PathBuf::from(format!("{}.old{number}", file.display()));
    let numbers = (2..).map(|number: u32| number.to_string());
    let mut names = std::iter::once(String::new()).chain(numbers).map(named);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| named(String::new()))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can't be written: {error}", path.display()))
}

/// Whether Claude Code may work in the slots' directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// It trusts the directory already.
    NotNeeded,
    /// The person does, and `up` tells Claude Code.
    Given,
    /// Nobody has said so.
    Missing,
}

/// The program with its version, or why there is none.
type Found = Result<(PathBuf, Result<Version, NoVersion>), String>;

async fn find(program: &str, cwd: &Path) -> Found {
    let env = process_environment();
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_str());
    let program = resolve_program(program, path, cwd).map_err(|error| error.to_string())?;
    let version = installed_version(&program, &[], &env, cwd).await;
    Ok((program, version))
}

fn report(
    context: &Context,
    dir: &Path,
    written: &[PathBuf],
    found: &Found,
    trust: Trust,
) -> Result<(), Failure> {
    let out = &context.out;
    if out.json {
        let version = found
            .as_ref()
            .ok()
            .and_then(|(_, version)| version.as_ref().ok());
        return out.json(&json!({
            "dir": dir, "written": written,
            "claude": found.as_ref().ok().map(|(program, _)| program),
            "version": version.map(Version::to_string),
            "trusted": trust != Trust::Missing,
        }));
    }
    for file in written {
        out.done(format!("wrote {}", file.display()))?;
    }
    match found {
        Ok((program, Ok(version))) => {
            out.done(format!("found {}, version {version}", program.display()))?
        }
        Ok((program, Err(why))) => out.note(format!(
            "{} does not tell its version: {why}",
            program.display()
        )),
        Err(missing) => out.note(format!(
            "{missing}\n  to install Claude Code: npm install -g @anthropic-ai/claude-code"
        )),
    }
    match trust {
        Trust::NotNeeded => {}
        Trust::Given => out.done("you trust the slots' directory: up tells Claude Code")?,
        Trust::Missing => out.note(
            "Claude Code does not trust the slots' directory yet: up asks you, or takes your word with --trust",
        ),
    }
    let flag = match context.env.config_dir() {
        Ok(usual) if usual == dir => String::new(),
        _ => format!(" -c {}", dir.join("slots.toml").display()),
    };
    out.done(format!(
        "next: look through the policies, then\n  missiond doctor{flag}\n  missiond up{flag}\n  missiond status"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        init: Init,
    }

    fn init(words: &str) -> Init {
        let words = std::iter::once("init").chain(words.split_whitespace());
        Line::try_parse_from(words).expect("good flags").init
    }

    #[test]
    fn only_the_wanted_roles_get_a_slot() {
        let all = init("").slots_text(Path::new("/src"));
        assert_eq!(all.matches("cwd = \"/src\"").count(), 3);
        let two =
            init("--roles reader,reviewer --claude /opt/claude").slots_text(Path::new("/src"));
        assert!(two.contains("name = \"reader\"") && two.contains("name = \"reviewer\""));
        assert!(!two.contains("name = \"coder\""));
        assert!(two.contains("command = [\"/opt/claude\"]"));
        assert!(toml::from_str::<toml::Table>(&two).is_ok(), "{two}");
    }

    #[test]
    fn what_means_nothing_is_asked_again_and_an_end_is_no_answer() {
        let mut first = init("");
        let (mut said, mut shown) = ("/no/such\n/tmp\nmaybe\ny\nn\nN\n".as_bytes(), Vec::new());
        first.ask(&mut said, &mut shown).expect("a terminal");
        assert_eq!(first.cwd, Some("/tmp".into()));
        assert_eq!(first.roles, ["reader"]);
        let shown = String::from_utf8(shown).expect("UTF-8");
        assert!(shown.contains("that is no directory"), "{shown}");
        assert!(shown.contains("yes or no?"), "{shown}");
        for answers in ["/tmp\nno\nno\nno\n", "/tmp\nyes\n", ""] {
            let refused = init("").ask(&mut answers.as_bytes(), &mut Vec::new());
            let refused = refused.expect_err(answers);
            assert!(
                refused.message.contains("nothing was written"),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_path_of_a_program_is_meant_from_here() {
        let here = Path::new("/home/me/app");
        assert_eq!(init("").program(here), "claude");
        assert_eq!(
            init("--claude ./bin/claude").program(here),
            "/home/me/app/bin/claude"
        );
        assert_eq!(init("--claude /opt/claude").program(here), "/opt/claude");
    }

    #[test]
    fn what_is_asked_has_an_answer_already() {
        let mut init = init("");
        let (mut said, mut shown) = ("/tmp\n\nno\n\n".as_bytes(), Vec::new());
        init.ask(&mut said, &mut shown).expect("a terminal");
        assert_eq!(init.cwd, Some("/tmp".into()));
        assert_eq!(init.roles, ["reader", "reviewer"]);
        let shown = String::from_utf8(shown).expect("UTF-8");
        assert!(
            shown.contains("A coder, which writes code and runs the tests? [yes]"),
            "{shown}"
        );
    }
}
