//! The configs of the user's daemons, and the files that those daemons write.

use crate::config;
use crate::os::daemon_lock::Holder;
use crate::os::paths::Env;
use std::path::PathBuf;
use std::time::SystemTime;

/// The configs of all daemons of this user, those that run and those that have run, and when each was last written.
pub type Configs = Vec<(PathBuf, Option<SystemTime>)>;

pub fn configs(env: &Env) -> Configs {
    let holders = env.all_locks().into_iter();
    let configs = holders.filter_map(|lock| Some(Holder::read(&lock)?.config));
    let mut configs: Vec<PathBuf> = configs.collect();
    configs.sort();
    configs.dedup();
    let written = |config: &PathBuf| std::fs::metadata(config).and_then(|file| file.modified());
    let with_time = |config: PathBuf| {
        let written = written(&config).ok();
        (config, written)
    };
    configs.into_iter().map(with_time).collect()
}

/// The files that the daemons of these configs read and write. No slot of any daemon may write them, since that would
/// be a way to change the rules of another daemon. For a config that can't be read, only its own path is known.
pub fn files_of(configs: &Configs) -> Vec<PathBuf> {
    let files = |(config, _): &(PathBuf, _)| match config::load_daemon(config) {
        Ok(daemon) => daemon.own_files(config).to_vec(),
        Err(_) => vec![config.clone()],
    };
    configs.iter().flat_map(files).collect()
}
