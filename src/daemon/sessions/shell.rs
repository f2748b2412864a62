//! Chooses the program of a session, and makes bash and zsh report whether they are at the prompt.
//!
//! Both read a file of ours in place of the user's own, which that file reads first. Then marks (OSC 133) are put
//! around the prompt and before each command. The marks are invisible. Each contains a token that only this shell has,
//! so that no other program can forge them.

use super::request::wrong;
use crate::core::model::{RpcError, SpawnParams};
use crate::core::settings::{Shell, ShellMarks};
use crate::os::files;
use crate::os::paths;
use crate::session::SessionRecord;
use crate::slot::SlotContext;
use std::io;
use std::path::{Path, PathBuf};

/// The shells to try if neither the request nor the daemon's environment names one.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// Sets the program, its arguments and the marks.
pub(super) fn fill_in(
    record: &mut SessionRecord,
    params: SpawnParams,
    context: &SlotContext,
) -> Result<(), RpcError> {
    let named = params.run.shell.is_some();
    let shell = params
        .run
        .shell
        .or_else(|| variable(record, context, "SHELL").map(str::to_owned))
        .filter(|shell| named || is_usable(shell))
        .unwrap_or_else(default_shell);
    if shell.is_empty() {
        return Err(wrong("the shell is empty").next("leave it out for your own"));
    }
    if params.command.first().is_some_and(String::is_empty) {
        return Err(wrong("the command is empty").next("leave it out for a shell"));
    }
    if let Some(line) = params.line {
        if !params.command.is_empty() {
            return Err(wrong("a line for a shell and a command were given").next("leave one out"));
        }
        return line_in(record, shell, params.run.login, line);
    }
    let shown = match params.command.as_slice() {
        [] => vec![shell.clone()],
        words => words.to_vec(),
    };
    record.terms.command = shown.clone();
    let interactive = params.command.is_empty() || params.command.len() == 1 && !params.run.login;
    match (interactive, Shell::of(&shown[0])) {
        (true, Some(kind)) => mark(record, &shown[0], kind, params.run.login, context),
        (true, None) if params.run.login => record.command = vec![shown[0].clone(), "-l".into()],
        (false, _) if params.run.login => record.command = in_login_shell(shell, shown),
        _ if named && !params.command.is_empty() => {
            return Err(wrong("a shell and a command were given")
                .next("add --login to run the command in it, or leave one out"));
        }
        _ => record.command = shown,
    }
    Ok(())
}

/// Sets one line for the shell, to run with `-c`.
fn line_in(
    record: &mut SessionRecord,
    shell: String,
    login: bool,
    line: String,
) -> Result<(), RpcError> {
    if line.trim().is_empty() {
        return Err(wrong("the command is empty"));
    }
    record.terms.command = vec![shell.clone(), "-c".into(), line.clone()];
    record.command = vec![shell];
    record.command.extend(login.then(|| "-l".to_owned()));
    record.command.extend(["-c".to_owned(), line]);
    Ok(())
}

/// The value of a variable in the session.
fn variable<'a>(
    record: &'a SessionRecord,
    context: &'a SlotContext,
    name: &str,
) -> Option<&'a str> {
    let own = record.env.get(name).map(String::as_str);
    let daemons = || context.variable(name).filter(|_| !record.env_clear);
    own.or_else(daemons).filter(|value| !value.is_empty())
}

/// Tells whether this is a shell that can be used: accounts without logins have a program that only refuses.
fn is_usable(shell: &str) -> bool {
    let path = Path::new(shell);
    let name = path.file_name().and_then(|name| name.to_str());
    path.exists() && !matches!(name, None | Some("nologin" | "false" | "true"))
}

fn default_shell() -> String {
    let found = SHELLS.iter().find(|shell| Path::new(shell).exists());
    found.unwrap_or(&SHELLS[1]).to_string()
}

/// The command for a login shell, which reads its profile and then executes the command.
fn in_login_shell(shell: String, command: Vec<String>) -> Vec<String> {
    let name = shell.clone();
    let words = [shell, "-l".into(), "-c".into(), r#"exec "$@""#.into(), name];
    words.into_iter().chain(command).collect()
}

impl Shell {
    fn of(program: &str) -> Option<Shell> {
        match Path::new(program).file_name()?.to_str()? {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            _ => None,
        }
    }
}

fn mark(
    record: &mut SessionRecord,
    program: &str,
    shell: Shell,
    login: bool,
    context: &SlotContext,
) {
    let directory = context.shell_dir(&record.id);
    let token = uuid::Uuid::new_v4().simple().to_string();
    record.terms.marks = Some(ShellMarks { shell, token });
    let path = |path: PathBuf| path.display().to_string();
    match shell {
        // A login bash reads such a file in its POSIX mode only; the file leaves that mode at once.
        Shell::Bash if login => {
            record.command = vec![program.to_owned(), "--posix".into(), "-l".into()];
            replace_variable(record, context, "ENV", path(directory.join("login")));
        }
        Shell::Bash => {
            let file = path(directory.join("rc"));
            record.command = vec![program.to_owned(), "--rcfile".into(), file];
        }
        Shell::Zsh => {
            record.command = vec![program.to_owned()];
            record.command.extend(login.then(|| "-l".to_owned()));
            replace_variable(record, context, "ZDOTDIR", path(directory));
        }
    }
}

/// Points the shell to a file of ours, which restores the variable.
fn replace_variable(record: &mut SessionRecord, context: &SlotContext, name: &str, value: String) {
    let theirs = variable(record, context, name)
        .unwrap_or_default()
        .to_owned();
    record.env.insert(format!("MISSIOND_{name}"), theirs);
    record.env.insert(name.to_owned(), value);
}

/// Writes the files that the shell reads at its start.
pub(super) fn write(record: &SessionRecord, context: &SlotContext) -> io::Result<()> {
    let Some(marks) = &record.terms.marks else {
        return Ok(());
    };
    let directory = context.shell_dir(&record.id);
    paths::ensure_private_dir(&directory).map_err(io::Error::other)?;
    for (name, text) in texts(marks) {
        files::save(&directory.join(name), &text)?;
    }
    Ok(())
}

fn texts(marks: &ShellMarks) -> Vec<(&'static str, String)> {
    let with_token = |text: &str| text.replace("@TOKEN@", &marks.token);
    match marks.shell {
        Shell::Bash => {
            let marks = with_token(include_str!("marks.bash"));
            let rc = "if [ -r ~/.bashrc ]; then . ~/.bashrc || :; fi\n";
            let login = include_str!("login.bash");
            vec![
                ("rc", format!("{rc}{marks}")),
                ("login", format!("{login}{marks}")),
            ]
        }
        Shell::Zsh => {
            let marks = with_token(include_str!("marks.zsh"));
            let own = |file: &str| include_str!("own.zsh").replace("@FILE@", file);
            vec![
                (".zshenv", own(".zshenv")),
                (".zprofile", own(".zprofile")),
                (".zshrc", format!("{}{marks}", own(".zshrc"))),
            ]
        }
    }
}
