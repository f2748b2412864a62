//! Checks before the start of the child. portable-pty itself would run the program in the home directory if `cwd` is missing, and
//! report success for one that can't be executed.

use super::ShimSpec;
use crate::os::files;
use rustix::fs::Access;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many scripts may be each other's interpreter; the kernel follows no more.
const MAX_INTERPRETERS: usize = 4;

/// Why this can't be started.
pub(super) fn check(spec: &ShimSpec) -> Result<(), String> {
    let program = spec.argv.first().ok_or("no program is given")?;
    absolute("the recording", &spec.recording)?;
    absolute("the socket", &spec.socket)?;
    if spec.cols == 0 || spec.rows == 0 {
        return Err(format!(
            "a terminal of {} columns and {} rows shows nothing: both must be at least 1",
            spec.cols, spec.rows
        ));
    }
    directory(&spec.cwd)?;
    check_program(Path::new(program))
}

fn absolute(what: &str, path: &Path) -> Result<(), String> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(format!(
        "{what} {} must be an absolute path",
        path.display()
    ))
}

fn directory(path: &Path) -> Result<(), String> {
    absolute("the working directory", path)?;
    let shown = path.display();
    let metadata = std::fs::metadata(path)
        .map_err(|fault| format!("the working directory {shown} can't be used: {fault}"))?;
    if !metadata.is_dir() {
        return Err(format!("the working directory {shown} is no directory"));
    }
    rustix::fs::access(path, Access::EXEC_OK)
        .map_err(|fault| format!("the working directory {shown} can't be entered: {fault}"))
}

/// Why this file can't be executed. A script needs its interpreter.
pub fn check_program(program: &Path) -> Result<(), String> {
    executable(program, MAX_INTERPRETERS)
}

fn executable(path: &Path, interpreters_left: usize) -> Result<(), String> {
    absolute("the program", path)?;
    let shown = path.display();
    let metadata = std::fs::metadata(path)
        .map_err(|fault| format!("the program {shown} can't be run: {fault}"))?;
    if !metadata.is_file() {
        return Err(format!("the program {shown} is no file"));
    }
    rustix::fs::access(path, Access::EXEC_OK)
        .map_err(|fault| format!("the program {shown} is not executable: {fault}"))?;
    match interpreter(path) {
        Some(_) if interpreters_left == 0 => Err(format!(
            "the program {shown} is a script in a chain of more than {MAX_INTERPRETERS} interpreters"
        )),
        Some(interpreter) => executable(&interpreter, interpreters_left - 1)
            .map_err(|fault| format!("{shown} is a script, and its interpreter fails: {fault}")),
        None => Ok(()),
    }
}

/// The program in a script's first line; `None` for a file that can be executed but not read.
fn interpreter(path: &Path) -> Option<PathBuf> {
    // As much as the kernel reads.
    let mut beginning = Vec::with_capacity(256);
    files::open(path)
        .ok()?
        .take(256)
        .read_to_end(&mut beginning)
        .ok()?;
    let line = beginning
        .strip_prefix(b"#!")?
        .split(|&b| b == b'\n')
        .next()?;
    let name = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn spec(dir: &Path, program: &Path) -> ShimSpec {
        ShimSpec {
            slot: "a".into(),
            argv: vec![program.to_str().unwrap().into()],
            cwd: dir.into(),
            env: Vec::new(),
            cols: 80,
            rows: 24,
            recording: dir.join("a.cast"),
            socket: dir.join("a.sock"),
            limits: Default::default(),
            cgroup: None,
            keeper: crate::shim::ShimKeeper::default(),
            cap: None,
        }
    }

    fn script(path: &Path, content: &str, mode: u32) {
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_refusal_names_its_cause() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        script(&at("plain"), "echo", 0o644);
        script(&at("lost"), "#!/no/such/interpreter -x\n", 0o755);
        script(&at("good"), "#! /bin/sh\n", 0o755);
        let self_run = format!("#!{}\n", at("loop").display());
        script(&at("loop"), &self_run, 0o755);
        let refusal = |program: &str| check(&spec(dir.path(), &at(program))).unwrap_err();

        assert_eq!(check(&spec(dir.path(), &at("good"))), Ok(()));
        assert!(refusal("nothing").contains("nothing can't be run: No such file"));
        assert!(refusal("plain").contains("plain is not executable: Permission denied"));
        assert!(refusal("").contains("is no file"));
        assert!(refusal("lost").contains("/no/such/interpreter can't be run: No such file"));
        assert!(refusal("loop").contains("chain"));

        let good = spec(dir.path(), Path::new("/bin/sh"));
        let with = |change: fn(&mut ShimSpec)| {
            let mut changed = good.clone();
            change(&mut changed);
            check(&changed).unwrap_err()
        };
        assert!(with(|s| s.cwd = "/no/such".into()).contains("/no/such can't be used"));
        assert!(with(|s| s.cwd = "/bin/sh".into()).contains("is no directory"));
        assert!(with(|s| s.cwd = ".".into()).contains("absolute"));
        assert!(with(|s| s.argv.clear()).contains("no program"));
        assert!(with(|s| s.argv[0] = "sh".into()).contains("absolute"));
        assert!(with(|s| s.rows = 0).contains("0 rows"));
        assert!(with(|s| s.socket = "x.sock".into()).contains("absolute"));
    }
}
