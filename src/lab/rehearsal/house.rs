//! The environment of one start of the program: a separate home, the scripted model, the hooks, the slot's settings.

use super::endpoint::Endpoint;
use super::home::{Home, HomeOptions};
use super::hooks::Hooks;
use super::play::Company;
use super::scenes::{OLD_FILE, Opening};
use crate::config;
use crate::core::policy::SettingsRules;
use crate::core::settings::SlotConfig;
use crate::launch::{self, SessionStart};
use crate::shim::ShimSpec;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use uuid::Uuid;

const NAME: &str = "rehearsal";

/// The environment, until it is dropped. Everything in it is removed.
#[derive(Debug)]
pub struct House {
    pub endpoint: Endpoint,
    pub hooks: Hooks,
    slot: SlotConfig,
    /// The last field, so that it is removed after everything else has ended.
    home: Home,
}

impl House {
    pub fn build(opening: Opening, command: &[String]) -> io::Result<House> {
        let options = HomeOptions {
            trusted: Vec::new(),
            ask_about_key: opening == Opening::ApiKey,
        };
        let home = Home::create(&std::env::temp_dir(), &options)?;
        let cwd = home.path().join("work");
        fs::create_dir(&cwd)?;
        fs::write(cwd.join(OLD_FILE), "before\n")?;
        if opening != Opening::Trust {
            home.trust(&cwd)?;
        }
        let endpoint = Endpoint::start()?;
        let slot = slot(&home, &cwd, command, &endpoint)?;
        let hooks = Hooks::listen(&hook_socket(&home))?;
        Ok(House {
            endpoint,
            hooks,
            slot,
            home,
        })
    }

    pub fn cwd(&self) -> &Path {
        &self.slot.cwd
    }

    /// Makes Claude Code trust the folder from now on.
    pub fn trust(&self) -> io::Result<()> {
        self.home.trust(self.cwd())
    }

    /// The specification for a shim, with the same arguments, settings and environment as a slot.
    pub fn spec(&self, company: &Company) -> Result<ShimSpec, String> {
        let socket = hook_socket(&self.home);
        let settings = self.home.path().join("settings.json");
        // No process locks it, because the rehearsal itself listens.
        let lock = self.home.path().join("rehearsal.lock");
        let hook = launch::hook_command(&company.missiond, &socket, &lock, NAME);
        let version = Some(company.version);
        let text =
            launch::settings_json(&hook, &SettingsRules::default(), &self.slot.mode, version)
                .to_string();
        fs::write(&settings, text).map_err(|error| error.to_string())?;
        let id = Uuid::new_v4();
        let session = SessionStart::New(id);
        let mut argv = company.command.clone();
        argv.extend(launch::claude_args(&self.slot, session, &settings, version));
        Ok(ShimSpec {
            slot: NAME.to_owned(),
            argv,
            cwd: self.slot.cwd.clone(),
            env: launch::environment(&self.slot, &socket, []),
            cols: self.slot.cols,
            rows: self.slot.rows,
            // One recording for each start: the output of an earlier program is not on this one's screen.
            recording: self.home.path().join(format!("{id}.cast")),
            socket: self.home.path().join("shim.sock"),
            limits: Default::default(),
            cgroup: None,
            keeper: crate::shim::ShimKeeper::default(),
            cap: None,
        })
    }
}

fn hook_socket(home: &Home) -> PathBuf {
    home.path().join("hooks.sock")
}

/// A slot from a slots.toml, with every default.
fn slot(
    home: &Home,
    cwd: &Path,
    command: &[String],
    endpoint: &Endpoint,
) -> io::Result<SlotConfig> {
    let environment = home.environment(&endpoint.url());
    let environment: Table = environment
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let mut slot = Table::new();
    slot.insert("name".into(), NAME.into());
    slot.insert("role".into(), NAME.into());
    slot.insert("cwd".into(), cwd.to_string_lossy().as_ref().into());
    slot.insert("command".into(), command.to_vec().into());
    slot.insert("env".into(), environment.into());
    let mut file = Table::new();
    file.insert("slot".into(), Value::Array(vec![slot.into()]));
    let policies = home.path().join("policies");
    fs::create_dir(&policies)?;
    fs::write(policies.join(format!("{NAME}.toml")), "")?;
    let path = home.path().join("slots.toml");
    fs::write(&path, file.to_string())?;
    let config = config::load(&path).map_err(io::Error::other)?;
    config
        .slots
        .into_iter()
        .next()
        .ok_or_else(|| io::Error::other("no slot"))
}
