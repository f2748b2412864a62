//! The environment of the demo: a temporary directory with everything in it, and a daemon.

use super::scenario::{self, DemoScene};
use super::{DemoError, DemoOptions, stand_in};
use crate::control::client::{CallError, Client};
use crate::control::requests::{Down, DownParams};
use crate::lab::rehearsal::{Endpoint, Home, HomeOptions};
use crate::os::paths::MAX_SOCKET;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use toml::Table;

/// The program in the slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageProgram {
    StandIn,
    /// An installed Claude Code, with a scripted endpoint instead of the model.
    Claude(PathBuf),
}

/// The timeout of the start. A daemon answers in a fraction of a second, unless the machine is very busy.
const START_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// The timeout of the end. Ending a slot takes at most its grace period of some seconds.
const END_LIMIT: Duration = Duration::from_secs(60);

/// The longest path of a socket below the demo's directory.
const LONGEST_BELOW: usize = "/run/missiond/shims/demo.reviewer.sock".len();

#[derive(Debug)]
pub struct DemoStage {
    root: PathBuf,
    missiond: PathBuf,
    daemon: Child,
    /// The endpoint instead of the model, and the home of Claude Code, for as long as the slots run.
    _company: Option<(Endpoint, Home)>,
}

impl DemoStage {
    /// Makes the directory and starts the daemon in it.
    pub fn set(options: &DemoOptions) -> io::Result<DemoStage> {
        let root = make_root()?;
        DemoStage::set_in(root.clone(), options).inspect_err(|_| {
            // The first error is reported; an error of the removal adds nothing to it.
            let _ = fs::remove_dir_all(root);
        })
    }

    fn set_in(root: PathBuf, options: &DemoOptions) -> io::Result<DemoStage> {
        for below in ["logs", "run", "state", "policies"] {
            DirBuilder::new().mode(0o700).create(root.join(below))?;
        }
        let trusted = furnish(&root)?;
        let company = match options.program {
            StageProgram::StandIn => None,
            StageProgram::Claude(_) => {
                Some((endpoint(&root)?, Home::create(&root, &known(trusted))?))
            }
        };
        let environment = match &company {
            Some((endpoint, home)) => home.environment(&endpoint.url()),
            None => environment(&root),
        };
        let slots = slots_toml(&root, &command(options), environment);
        fs::write(root.join("slots.toml"), slots)?;
        let daemon = spawn(&root, &options.missiond)?;
        let _company = company;
        Ok(DemoStage {
            root,
            missiond: options.missiond.clone(),
            daemon,
            _company,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The daemon's program.
    pub fn missiond(&self) -> &Path {
        &self.missiond
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The directory that has a directory for each slot.
    pub fn all_work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn work(&self, slot: &str) -> PathBuf {
        work(&self.root, slot)
    }

    /// Connects to the daemon, and waits while it starts.
    pub async fn client(&mut self) -> Result<Client, DemoError> {
        let end = tokio::time::Instant::now() + START_LIMIT;
        loop {
            let error = match Client::connect(&socket(&self.root)).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            if let Some(status) = self.daemon.try_wait()? {
                return Err(
                    io::Error::other(format!("the daemon ended as it started ({status})")).into(),
                );
            }
            if tokio::time::Instant::now() > end {
                return Err(error.into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends the daemon with its slots; with a signal if it does not answer.
    pub async fn end_daemon(&mut self) -> Result<(), DemoError> {
        if self.daemon.try_wait()?.is_none() {
            let asked = tokio::time::timeout(END_LIMIT, ask_to_end(&socket(&self.root))).await;
            if !matches!(asked, Ok(Ok(()))) {
                self.signal();
            }
        }
        match tokio::time::timeout(END_LIMIT, self.daemon.wait()).await {
            Ok(ended) => drop(ended?),
            Err(_) => self.daemon.kill().await?,
        }
        Ok(())
    }

    fn signal(&self) {
        let pid = self.daemon.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // The daemon may just have ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Removes the directory.
    pub fn remove(self) -> io::Result<()> {
        let root = self.root.clone();
        drop(self);
        fs::remove_dir_all(root)
    }
}

async fn ask_to_end(socket: &Path) -> Result<(), CallError> {
    let mut client = Client::connect(socket).await?;
    client.call::<Down>(DownParams { keep: false }).await?;
    Ok(())
}

/// Makes a directory in that for temporary files, unless a socket's path would be too long there.
fn make_root() -> io::Result<PathBuf> {
    let name = format!(
        "missiond-demo-{}",
        &uuid::Uuid::new_v4().simple().to_string()[..8]
    );
    let usual = std::env::temp_dir().join(&name);
    let fits = usual.as_os_str().len() + LONGEST_BELOW <= MAX_SOCKET;
    let root = if fits {
        usual
    } else {
        Path::new("/tmp").join(name)
    };
    let unmade = |error: io::Error| {
        let text = format!("{} can't be made: {error}", root.display());
        io::Error::new(error.kind(), text)
    };
    let made = DirBuilder::new().mode(0o700).create(&root);
    made.and_then(|()| root.canonicalize()).map_err(unmade)
}

fn socket(root: &Path) -> PathBuf {
    root.join("demo.sock")
}

fn work(root: &Path, slot: &str) -> PathBuf {
    root.join("work").join(slot)
}

/// Writes the files that the slots work on, and their policies.
fn furnish(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut trusted = Vec::new();
    for (slot, policy) in scenario::SLOTS {
        let work = work(root, slot);
        fs::create_dir_all(work.join("build"))?;
        fs::write(work.join("NOTES.md"), scenario::NOTES)?;
        let script = work.join("publish.sh");
        fs::write(&script, scenario::PUBLISH_SCRIPT)?;
        fs::set_permissions(&script, Permissions::from_mode(0o755))?;
        fs::write(root.join("policies").join(format!("{slot}.toml")), policy)?;
        trusted.push(work);
    }
    Ok(trusted)
}

fn endpoint(root: &Path) -> io::Result<Endpoint> {
    let endpoint = Endpoint::start()?;
    for (slot, _) in scenario::SLOTS {
        for DemoScene {
            slot: of,
            message,
            steps,
        } in scenario::scenes(&work(root, slot))
        {
            if of == *slot {
                endpoint.on(message, steps);
            }
        }
    }
    Ok(endpoint)
}

fn known(trusted: Vec<PathBuf>) -> HomeOptions {
    HomeOptions {
        trusted,
        ask_about_key: false,
    }
}

/// The variables that the stand-in needs.
fn environment(root: &Path) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    let home = root.join("home").display().to_string();
    let pairs = [
        ("HOME", home),
        ("PATH", path),
        ("LANG", "C.UTF-8".to_owned()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn command(options: &DemoOptions) -> Vec<String> {
    let shown = |path: &Path| path.display().to_string();
    match &options.program {
        StageProgram::StandIn => vec![shown(&options.missiond), stand_in::VERB.to_owned()],
        StageProgram::Claude(claude) => vec![shown(claude)],
    }
}

/// The configuration. No settings of the machine get into a slot.
fn slots_toml(root: &Path, command: &[String], environment: Vec<(String, String)>) -> String {
    let quoted = |path: &Path| toml::Value::String(path.display().to_string());
    let command = toml::Value::from(command.to_vec());
    let env: Table = environment
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let mut text = format!(
        "[daemon]\nname = \"demo\"\nsocket = {}\nlogs = \"logs\"\npolicies = \"policies\"\n\n\
         [defaults]\ncommand = {command}\nenv_clear = true\ncols = 100\nrows = 30\nrestart_delay = \"2s\"\n\n\
         [defaults.env]\n{env}",
        quoted(&socket(root)),
    );
    for (slot, _) in scenario::SLOTS {
        let cwd = quoted(&work(root, slot));
        text += &format!("\n[[slot]]\nname = \"{slot}\"\nrole = \"{slot}\"\ncwd = {cwd}\n");
    }
    text
}

/// Starts the daemon in a separate process group, so that Ctrl-C reaches only the demo, which then ends the daemon in
/// order.
fn spawn(root: &Path, missiond: &Path) -> io::Result<Child> {
    let log = crate::os::files::append(&root.join("logs/missiond.log"))?;
    let mut daemon = Command::new(missiond);
    daemon
        .args(["run", "-c"])
        .arg(root.join("slots.toml"))
        .env("HOME", root)
        .env("XDG_CONFIG_HOME", root)
        .env("XDG_RUNTIME_DIR", root.join("run"))
        .env("XDG_STATE_HOME", root.join("state"))
        .env("XDG_DATA_HOME", root.join("data"))
        .env_remove("MISSIOND_SLOT")
        .env_remove("MISSIOND_SOCKET")
        .env_remove("MISSIOND_CONFIG")
        .env_remove("NOTIFY_SOCKET")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
}
