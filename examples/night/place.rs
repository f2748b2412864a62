//! Where the night takes place: a home, a config, an endpoint, and the daemon.

use super::program::program_at;
use anyhow::{Context, ensure};
use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The version that the tests install.
const PINNED: &str = "2.1.325";

/// Asks about what makes a file, allows what makes a directory, denies the rest of what writes.
const POLICY: &str =
    "allow = [\"Bash(mkdir *)\"]\nask = [\"Bash(touch *)\"]\ndeny = [\"Bash(rm *)\"]\n";

const COUNTS: &str = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done";

/// A message that was given to `missiond send`, and the client that waits for its answer.
pub struct Sent {
    pub text: String,
    /// What the endpoint answers to it, if no person decides on that.
    pub answer: Option<String>,
    pub client: Child,
}

pub struct Place {
    root: tempfile::TempDir,
    program: PathBuf,
    daemon: Child,
    pub endpoint: Endpoint,
    pub home: Home,
    pub claudes: Vec<String>,
    pub shells: Vec<String>,
    /// What a person has stopped.
    pub stopped: BTreeSet<String>,
    pub sent: Vec<Sent>,
    /// The text of every message so far.
    pub messages: BTreeSet<String>,
    /// Those whose client has printed an answer.
    pub answered: BTreeSet<String>,
    /// Those of them whose answer missiond has read in the transcript.
    pub written: BTreeSet<String>,
    /// The files that a person has allowed to be made.
    pub allowed: BTreeSet<String>,
    /// A file that fills the disk of the logs, while it is there.
    pub full: bool,
    log_disk: LogDisk,
    count: u32,
}

impl Place {
    pub fn new(claudes: usize, shells: usize, claude: Option<&Path>) -> anyhow::Result<Place> {
        let target = target()?;
        let program = target.join("missiond");
        ensure!(
            program.exists(),
            "{} is not there: build it first",
            program.display()
        );
        // Short, since the path of a socket has at most 107 bytes.
        let root = tempfile::Builder::new().prefix("night").tempdir()?;
        let claude = match claude {
            Some(given) => given.to_owned(),
            None => installed(&target)?,
        };
        let endpoint = Endpoint::start()?;
        let names = |prefix: &str, count| (0..count).map(|n| format!("{prefix}{n}")).collect();
        let (claudes, shells): (Vec<_>, Vec<_>) =
            (names("claude", claudes), names("shell", shells));
        for private in ["run", "state", "home", "logs", "policies"] {
            DirBuilder::new()
                .mode(0o700)
                .create(root.path().join(private))?;
        }
        let log_disk = LogDisk::mount(&root.path().join("logs"))?;
        let mut trusted = Vec::new();
        for slot in claudes.iter().chain(&shells) {
            let work = root.path().join("work").join(slot);
            fs::create_dir_all(&work)?;
            trusted.push(work);
        }
        let options = HomeOptions {
            trusted,
            ..HomeOptions::default()
        };
        let home = Home::create(root.path(), &options)?;
        let config = config(
            root.path(),
            &claude,
            &home.environment(&endpoint.url()),
            &claudes,
            &shells,
        );
        fs::write(root.path().join("slots.toml"), config)?;
        fs::write(root.path().join("policies/night.toml"), POLICY)?;
        let daemon = start(&program, root.path())?;
        let mut place = Place {
            root,
            program,
            daemon,
            endpoint,
            home,
            claudes,
            shells,
            stopped: BTreeSet::new(),
            sent: Vec::new(),
            messages: BTreeSet::new(),
            answered: BTreeSet::new(),
            written: BTreeSet::new(),
            allowed: BTreeSet::new(),
            full: false,
            log_disk,
            count: 0,
        };
        place.wait_for_daemon()?;
        Ok(place)
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn slots(&self) -> Vec<String> {
        self.claudes.iter().chain(&self.shells).cloned().collect()
    }

    pub fn has_small_disk(&self) -> bool {
        self.log_disk != LogDisk::Usual
    }

    pub fn can_freeze_disk(&self) -> bool {
        self.log_disk == LogDisk::Freezes
    }

    /// Freezes the disk of the logs for the time of `work`.
    pub fn while_frozen(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let logs = self.root().join("logs");
        let freezes = |how: &str| does(Command::new("fsfreeze").arg(how).arg(&logs));
        ensure!(freezes("-f"), "the disk can't be frozen");
        let worked = work();
        ensure!(freezes("-u"), "the disk stays frozen");
        worked
    }

    pub fn next(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    pub fn work(&self, slot: &str) -> PathBuf {
        self.root().join("work").join(slot)
    }

    pub fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }

    /// `missiond` with these arguments, not started yet.
    pub fn missiond(&self, arguments: &[&str]) -> Command {
        let mut command = program_at(&self.program, self.root());
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let output = self.missiond(arguments).stdin(Stdio::null()).output();
        output.with_context(|| arguments.join(" "))
    }

    pub fn status(&self) -> anyhow::Result<Vec<Value>> {
        let output = self.run(&["status", "--json"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "status: {} {said}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Kills the daemon as a crash would, and starts the next.
    pub fn crash(&mut self) -> anyhow::Result<()> {
        self.daemon.kill()?;
        self.daemon.wait()?;
        self.daemon = start(&self.program, self.root())?;
        self.wait_for_daemon()
    }

    pub fn wait_for_daemon(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.daemon.try_wait()? {
                let said = fs::read_to_string(self.root().join("daemon.stderr"))?;
                anyhow::bail!("the daemon ended by itself ({status}):\n{said}");
            }
            match self.status() {
                Ok(_) => return Ok(()),
                Err(error) => ensure!(Instant::now() < end, "no daemon answers: {error}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn end(mut self) {
        for mut sent in self.sent.drain(..) {
            let _ = sent.client.kill();
            let _ = sent.client.wait();
        }
        let _ = self.run(&["down", "--yes"]);
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if self.has_small_disk() {
            let _ = Command::new("umount")
                .arg(self.root().join("logs"))
                .status();
        }
    }
}

fn start(program: &Path, root: &Path) -> anyhow::Result<Child> {
    let file = root.join("daemon.stderr");
    let stderr = File::options().create(true).append(true).open(file)?;
    let mut command = program_at(program, root);
    command.arg("run").stdin(Stdio::null());
    Ok(command.stdout(stderr.try_clone()?).stderr(stderr).spawn()?)
}

/// The directory of the program that cargo builds beside this one.
fn target() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let examples = own.parent().context("it lies in a directory")?;
    Ok(examples.parent().context("it lies in target")?.to_owned())
}

fn installed(target: &Path) -> anyhow::Result<PathBuf> {
    let packages = target
        .parent()
        .context("it lies in target")?
        .join(format!("claude-code/{PINNED}/node_modules/@anthropic-ai"));
    let entries = fs::read_dir(&packages).with_context(|| {
        format!("no Claude Code {PINNED}: run cargo test once, or give --claude")
    })?;
    let programs = entries.flatten().map(|entry| entry.path().join("claude"));
    let mut programs = programs.filter(|program| program.is_file());
    programs.next().context("no Claude Code: give --claude")
}

/// What can be done to the disk of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogDisk {
    /// This user may not mount one.
    Usual,
    /// 64 MB, which can be filled.
    Small,
    /// The same, which can also be frozen: then nobody can write to it.
    Freezes,
}

impl LogDisk {
    fn mount(directory: &Path) -> anyhow::Result<LogDisk> {
        let image = directory.with_extension("img");
        File::create(&image)?.set_len(64 << 20)?;
        let made = does(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&image).arg(directory);
        if made && does(&mut mount) {
            fs::set_permissions(directory, PermissionsExt::from_mode(0o700))?;
            return Ok(LogDisk::Freezes);
        }
        let mut mount = Command::new("mount");
        let options = ["-t", "tmpfs", "-o", "size=64m,mode=0700", "night"];
        match does(mount.args(options).arg(directory)) {
            true => Ok(LogDisk::Small),
            false => Ok(LogDisk::Usual),
        }
    }
}

/// Whether the command does what it should.
fn does(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn config(
    root: &Path,
    claude: &Path,
    environment: &[(String, String)],
    claudes: &[String],
    shells: &[String],
) -> String {
    let environment: toml::Table = environment
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let command = toml::Value::from(vec![claude.display().to_string()]);
    let mut text = format!(
        "[daemon]\nlogs = \"logs\"\npolicies = \"policies\"\n\n[defaults]\nenv = {}\n",
        toml::Value::Table(environment)
    );
    for name in claudes.iter().chain(shells) {
        let cwd = root.join("work").join(name);
        let kind = match claudes.contains(name) {
            true => format!("command = {command}"),
            false => format!("kind = \"shell\"\ncommand = [\"sh\", \"-c\", {COUNTS:?}]"),
        };
        text += &format!(
            "\n[[slot]]\nname = {name:?}\nrole = \"night\"\ncwd = {:?}\nrestart = \"always\"\n{kind}\n",
            cwd.display().to_string()
        );
    }
    text
}
