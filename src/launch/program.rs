//! Checks before a spawn, so that a slot that can't run is refused with the reason.

use crate::core::claude::Version;
use crate::os::headroom;
use rustix::fs::{Access, access};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// Why a slot's program can't be started, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error(
        "there is no program `{program}` in PATH ({path}): install it, or write its full path in `command`"
    )]
    NotInPath { program: String, path: String },
    #[error("there is no program {}: check `command` in slots.toml", .0.display())]
    Missing(PathBuf),
    #[error("{} is a directory: name the program inside it in `command`", .0.display())]
    Directory(PathBuf),
    #[error("{} can't be executed: make it executable, or name another program in `command`", .0.display())]
    NotExecutable(PathBuf),
    #[error("the slot's directory {} is not there: make it, or change `cwd`", .0.display())]
    NoCwd(PathBuf),
    #[error("the slot's `cwd` {} is not a directory", .0.display())]
    CwdIsFile(PathBuf),
    #[error("the slot can't work in {}: {why}", .cwd.display())]
    CwdOutOfReach { cwd: PathBuf, why: String },
}

/// The program's full path: relative to `cwd` if it has a slash, otherwise the first executable in `path`, which is the
/// slot's own PATH.
pub fn resolve_program(
    program: &str,
    path: Option<&str>,
    cwd: &Path,
) -> Result<PathBuf, ProgramError> {
    if program.contains('/') {
        return executable(&cwd.join(program));
    }
    let path = path.unwrap_or_default();
    let candidates = path.split(':').map(|dir| cwd.join(dir).join(program));
    let mut refused = None;
    for candidate in candidates {
        match executable(&candidate) {
            Ok(found) => return Ok(found),
            Err(ProgramError::NotExecutable(file)) => {
                refused.get_or_insert(ProgramError::NotExecutable(file));
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| ProgramError::NotInPath {
        program: program.into(),
        path: path.into(),
    }))
}

fn executable(file: &Path) -> Result<PathBuf, ProgramError> {
    match fs::metadata(file) {
        Err(_) => Err(ProgramError::Missing(file.into())),
        Ok(found) if found.is_dir() => Err(ProgramError::Directory(file.into())),
        // A shell in between would not help: the kernel decides what runs.
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            Err(ProgramError::NotExecutable(file.into()))
        }
        Ok(_) => Ok(file.components().collect()),
    }
}

/// Checks the slot's directory. A missing one must prevent the start: the spawn itself would silently use the home
/// directory.
pub fn check_cwd(cwd: &Path) -> Result<(), ProgramError> {
    match fs::metadata(cwd) {
        Ok(found) if !found.is_dir() => Err(ProgramError::CwdIsFile(cwd.into())),
        Ok(_) => access(cwd, Access::EXEC_OK).map_err(|error| out_of_reach(cwd, &error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ProgramError::NoCwd(cwd.into()))
        }
        Err(error) => Err(out_of_reach(cwd, &error)),
    }
}

fn out_of_reach(cwd: &Path, error: &io::Error) -> ProgramError {
    ProgramError::CwdOutOfReach {
        cwd: cwd.into(),
        why: error.to_string(),
    }
}

/// The timeout of a version request, which takes well under a second.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// The maximum bytes of output that are read. A version is one short line; further output is ignored.
const VERSION_OUTPUT: u64 = 4096;

/// Why a program did not report its version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoVersion {
    /// It can't be run, or ends with an error: a slot would not start either.
    #[error("{0}")]
    Fails(String),
    /// It runs, and prints no version.
    #[error("{0}")]
    Untold(String),
}

/// Asks a program (with its first arguments, as in `node cli.js`) for its version, in the environment in which it will
/// run.
pub async fn installed_version(
    program: &Path,
    args: &[String],
    env: &[(String, String)],
    cwd: &Path,
) -> Result<Version, NoVersion> {
    let mut command = Command::new(program);
    command
        .args(args)
        .arg("--version")
        .env_clear()
        .envs(env.iter().cloned())
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let answer = match tokio::time::timeout(VERSION_LIMIT, first_output(command)).await {
        Err(_) => {
            let seconds = VERSION_LIMIT.as_secs();
            return Err(NoVersion::Untold(format!("no answer within {seconds} s")));
        }
        Ok(Err(error)) => {
            return Err(NoVersion::Fails(format!(
                "it can't be run: {}",
                headroom::why_not_made(&error)
            )));
        }
        Ok(Ok(answer)) => answer,
    };
    let VersionAnswer {
        status,
        stdout,
        stderr,
    } = answer;
    match Version::parse(&stdout) {
        Some(version) => Ok(version),
        None if status.success() => {
            let said = stdout.trim();
            Err(NoVersion::Untold(format!(
                "it says {said:?}, which is not a version"
            )))
        }
        None => {
            let words = format!("{}\n{}", stderr.trim(), stdout.trim());
            Err(NoVersion::Fails(format!("{status}\n{}", words.trim())))
        }
    }
}

struct VersionAnswer {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

async fn first_output(mut command: Command) -> io::Result<VersionAnswer> {
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(beginning(stdout), beginning(stderr))?;
    let status = child.wait().await?;
    Ok(VersionAnswer {
        status,
        stdout,
        stderr,
    })
}

/// Reads the beginning of the output. The pipe is then closed, so that the program does not wait for a reader.
async fn beginning(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(VERSION_OUTPUT).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
