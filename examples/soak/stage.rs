//! The daemon that is measured, with its slots, in a directory of its own.

use crate::place;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A small program. Once it has read a line it fills all that is kept of its output, then it writes for ever.
const BUSY: &str = "trap '' INT; read line; \
    seq 60000 | sed 's/$/ of what a busy program writes/'; echo filled >filled; i=0; while :; do i=$((i+1)); \
    echo \"line $i of what a busy program writes\"; [ $((i % 200)) = 0 ] && sleep 0.5; done";

/// What runs in slot `crowd`: waits for a file, then opens connections and keeps them.
const CROWD: &str =
    "trap '' INT; while [ ! -e flood ]; do sleep 0.1; done; rm flood; exec \"$SOAK\" flood";

/// What runs in slot `neighbour`.
const NEIGHBOUR: &str = "trap '' INT; exec \"$SOAK\" neighbour";

/// Longest wait for any one fact.
const PATIENCE: Duration = Duration::from_secs(120);

/// Memory of a process in kB: its own with its share of what it has in common with others, and all that it has mapped.
#[derive(Clone, Copy)]
pub struct Memory {
    pub pss: u64,
    pub rss: u64,
}

impl Memory {
    fn of(pid: u32) -> Result<Memory> {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let field = |name: &str| -> Result<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let figure = line.and_then(|line| line.split_whitespace().next());
            Ok(figure.with_context(|| format!("no {name}"))?.parse()?)
        };
        Ok(Memory {
            pss: field("Pss:")?,
            rss: field("Rss:")?,
        })
    }
}

pub struct Stage {
    daemon: Mutex<Child>,
    pid: u32,
    program: PathBuf,
    // Last, so that it is removed when everything else has ended.
    root: tempfile::TempDir,
}

impl Stage {
    /// A daemon with two slots: one that will open so many connections, and its neighbour.
    pub fn start(connections: usize) -> Result<Stage> {
        let own = std::env::current_exe()?;
        let program = place::missiond_beside()?;
        let root = place::directory("soak", &program)?;
        write_config(root.path(), 0)?;
        let daemon = missiond(&program, root.path())
            .arg("run")
            .env("SOAK", &own)
            .env("SOAK_PROGRAM", &program)
            .env("SOAK_FLOOD", connections.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(root.path().join("daemon.log"))?)
            .spawn()?;
        let stage = Stage {
            pid: daemon.id(),
            daemon: Mutex::new(daemon),
            program,
            root,
        };
        stage.wait_for_slots(2)?;
        Ok(stage)
    }

    pub fn socket(&self) -> PathBuf {
        self.root.path().join("run/missiond/missiond.sock")
    }

    fn work(&self, slot: &str) -> PathBuf {
        self.root.path().join("work").join(slot)
    }

    /// How long a command takes that must succeed.
    pub fn takes(&self, arguments: &[&str]) -> Result<Duration> {
        let begun = Instant::now();
        self.output(arguments)?;
        Ok(begun.elapsed())
    }

    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = missiond(&self.program, self.root.path());
        let output = command.args(arguments).stdin(Stdio::null()).output()?;
        ensure!(
            output.status.success(),
            "missiond {}: {}: {}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// Waits for a fact; an error that it has at the end is the reason.
    fn wait(&self, what: &str, mut fact: impl FnMut() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = fact();
            if matches!(found, Ok(true)) {
                return Ok(());
            }
            if Instant::now() > end {
                found.with_context(|| format!("waited in vain for {what}"))?;
                anyhow::bail!("waited in vain for {what}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn pids(&self) -> Result<Vec<u32>> {
        let status: Vec<Value> = serde_json::from_slice(&self.output(&["status", "--json"])?)?;
        let pids = status.iter().filter_map(|slot| slot["pid"].as_u64());
        Ok(pids.map(u32::try_from).collect::<Result<_, _>>()?)
    }

    fn wait_for_slots(&self, count: usize) -> Result<()> {
        self.wait(&format!("{count} slots that run"), || {
            Ok(self.pids()?.len() == count)
        })
    }

    /// So many slots of a small program, beside the two.
    pub fn add_slots(&self, count: usize) -> Result<()> {
        write_config(self.root.path(), count)?;
        self.takes(&["reload"])?;
        self.wait_for_slots(count + 2)
    }

    pub fn memory(&self) -> Result<Memory> {
        Memory::of(self.pid).context("the daemon has ended")
    }

    /// Memory of all shims together, in kB.
    pub fn shims(&self) -> Result<u64> {
        let mut sum = 0;
        for pid in self.pids()? {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let fields = stat.rsplit(')').next().context("no fields")?;
            let parent = fields.split_whitespace().nth(1).context("no parent")?;
            sum += Memory::of(parent.parse()?)?.pss;
        }
        Ok(sum)
    }

    /// Returns once slot `crowd` has all its connections.
    pub fn begin_flood(&self) -> Result<()> {
        let work = self.work("crowd");
        let flooded = work.join("flooded");
        if flooded.exists() {
            fs::remove_file(&flooded)?;
        }
        fs::write(work.join("flood"), "")?;
        self.wait("the connections", || Ok(flooded.exists()))
    }

    /// How long the hook of slot `neighbour` takes for one tool call, by its own clock.
    pub fn tool_call(&self) -> Result<Duration> {
        let work = self.work("neighbour");
        let took = work.join("took");
        fs::write(work.join("call"), "")?;
        self.wait("the tool call", || Ok(took.exists()))?;
        let told = fs::read_to_string(&took)?;
        fs::remove_file(&took)?;
        let micros = told
            .parse()
            .with_context(|| format!("the hook said {told}"))?;
        Ok(Duration::from_micros(micros))
    }

    /// The small programs write from now on. Returns once all that is kept of their output is full: what is needed from
    /// then on is not needed for more of it.
    pub fn let_write(&self, slots: usize) -> Result<()> {
        for slot in 0..slots {
            self.takes(&["write", &format!("s{slot}"), "\\r"])?;
        }
        let filled = |slot| self.work(&format!("s{slot}")).join("filled").exists();
        self.wait("the slots to have written", || Ok((0..slots).all(filled)))
    }

    /// Ends everything; how long that took. What does not end by itself is killed.
    pub fn down(&self) -> Result<Duration> {
        let took = self.takes(&["down", "--yes"]);
        let mut daemon = self.daemon.lock().expect("no panic");
        if took.is_err() {
            daemon.kill()?;
            let log = fs::read_to_string(self.root.path().join("daemon.log"))?;
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            eprintln!("--- the end of the daemon's log\n{last}");
        }
        daemon.wait()?;
        self.kill_what_is_left()?;
        took
    }

    /// Shims outlive a daemon that was killed.
    fn kill_what_is_left(&self) -> Result<()> {
        for entry in fs::read_dir("/proc")?.flatten() {
            let pid = entry.file_name().to_string_lossy().parse().ok();
            let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
                continue;
            };
            let cwd = fs::read_link(entry.path().join("cwd"));
            if cwd.is_ok_and(|cwd| cwd.starts_with(self.root.path())) {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        Ok(())
    }
}

/// With an environment in which nothing of this machine is but settings of the allocator.
fn missiond(program: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    let allocator = |name: &str| name.starts_with("MALLOC_") || name.starts_with("MIMALLOC_");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(std::env::vars().filter(|(name, _)| allocator(name)))
        .env("HOME", root)
        .env("XDG_RUNTIME_DIR", root.join("run"))
        .env("XDG_STATE_HOME", root.join("state"))
        .env("MISSIOND_CONFIG", root.join("slots.toml"))
        .current_dir(root);
    command
}

fn write_config(root: &Path, slots: usize) -> Result<()> {
    let mut config = String::from("[daemon]\nlogs = \"logs\"\npolicies = \"policies\"\n");
    let small = (0..slots).map(|slot| (format!("s{slot}"), BUSY));
    let two = [("crowd", CROWD), ("neighbour", NEIGHBOUR)];
    let two = two.map(|(name, script)| (name.to_owned(), script));
    for (name, script) in two.into_iter().chain(small) {
        let cwd = root.join("work").join(&name);
        fs::create_dir_all(&cwd)?;
        let cwd = toml::Value::from(cwd.display().to_string());
        let script = toml::Value::from(script);
        config += &format!(
            "\n[[slot]]\nname = \"{name}\"\nrole = \"r\"\nkind = \"shell\"\ncwd = {cwd}\n\
             command = [\"/bin/sh\", \"-c\", {script}]\n"
        );
    }
    fs::write(root.join("slots.toml"), config)?;
    Ok(())
}
