use crate::cli::context::Context;
use crate::cli::failure::Failure;
use clap_complete::env::Shells;
use std::path::Path;

/// Prints what a shell needs to complete commands and live names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(missiond completions bash)
  missiond completions fish > ~/.config/fish/completions/missiond.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

impl Completions {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let script = script(&self.shell, Path::new("missiond"))?;
        context.out.raw(script.as_bytes())
    }
}

/// What a shell reads to ask this program for completions.
pub fn script(shell: &str, program: &Path) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(shell)
        .ok_or_else(|| Failure::usage(format!("no completions for {shell}")))?;
    let program = program.display().to_string();
    let mut script = Vec::new();
    completer
        .write_registration("COMPLETE", "missiond", "missiond", &program, &mut script)
        .map_err(|error| Failure::failed(format!("cannot write the script: {error}")))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}
