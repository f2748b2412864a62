//! The tasks on the disk: a file for each, so that a change costs one small write.

use crate::core::model::TaskStatus;
use crate::os::{files, paths};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
}

/// The tasks that the last daemon left.
#[derive(Debug, Default)]
pub struct Left {
    pub tasks: Vec<TaskStatus>,
    /// Files that could not be read, as text.
    pub faults: Vec<String>,
}

impl Store {
    /// Opens the directory, which is made if it is missing, and reads its tasks.
    pub fn open(directory: PathBuf) -> io::Result<(Store, Left)> {
        paths::ensure_private_dir(&directory).map_err(io::Error::other)?;
        let store = Store { directory };
        let left = store.load()?;
        Ok((store, left))
    }

    /// Reads all tasks. A file that can't be read is set aside and reported.
    fn load(&self) -> io::Result<Left> {
        let Left {
            mut tasks,
            mut faults,
        } = Left::default();
        for entry in std::fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(task) if self.file(&task.id) == path => tasks.push(task),
                Ok(task) => faults.push(set_aside(
                    &path,
                    &format!("its content has the id {}", task.id),
                )),
                Err(error) => faults.push(set_aside(&path, &error.to_string())),
            }
        }
        Ok(Left { tasks, faults })
    }

    pub fn save(&self, task: &TaskStatus) -> io::Result<()> {
        let text = serde_json::to_string(task).map_err(io::Error::other)?;
        files::save(&self.file(&task.id), &text)
    }

    pub fn remove(&self, id: &str) -> io::Result<()> {
        std::fs::remove_file(self.file(id))
    }

    fn file(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}

fn read(path: &Path) -> io::Result<TaskStatus> {
    let text = files::read_text(path)?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

fn set_aside(path: &Path, why: &str) -> String {
    let aside = path.with_extension("broken");
    let (from, to) = (path.display(), aside.display());
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("{from} can't be read ({why}); it is kept as {to}"),
        Err(error) => format!("{from} can't be read ({why}) nor set aside: {error}"),
    }
}
