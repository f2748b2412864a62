use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{reach, reader};
use crate::mcp::{McpOptions, McpServer, registration};

/// Serves the daemon as tools of an MCP client, on stdio.
///
/// A Claude Code that leads others looks at the slots, sends them messages and hands out tasks with it. What needs a
/// person stays with a person unless --allow-confirm is given. Inside a slot it may do what `[mcp]` in the policy of
/// the slot's role grants, and nothing more.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  claude mcp add missiond -- missiond mcp
  missiond mcp --print-config -c slots.toml
  missiond mcp --read-only")]
pub struct Mcp {
    /// Only tools that change nothing
    #[arg(long)]
    read_only: bool,
    /// Also a tool that answers what a slot asks a person
    #[arg(long, conflicts_with = "read_only")]
    allow_confirm: bool,
    /// Print how Claude Code is told of this server, and end
    #[arg(long)]
    print_config: bool,
}

impl Mcp {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.print_config {
            return self.print(context);
        }
        let options = McpOptions {
            read_only: self.read_only,
            allow_confirm: self.allow_confirm,
        };
        let server = McpServer::new(reach::dial(context), options);
        let serving = async { server.serve().await.map_err(Failure::failed) };
        reader::while_read(serving).await
    }

    fn print(&self, context: &Context) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("this program's own path: {error}")))?;
        let arguments = self.arguments(context);
        let entry = registration::entry(&program, &arguments);
        if context.out.json {
            return context.out.json(&entry);
        }
        let pretty = serde_json::to_string_pretty(&entry).unwrap_or_default();
        let line = registration::command_line(&program, &arguments);
        context.out.line(format!(
            "# for Claude Code, as a command:\n{line}\n\n# or in .mcp.json of a project:\n{pretty}"
        ))
    }

    /// This command again, with the daemon that is meant here.
    fn arguments(&self, context: &Context) -> Vec<String> {
        let mut arguments = vec!["mcp".to_owned()];
        let here = |path: &std::path::Path| context.env.cwd.join(path).display().to_string();
        if let Some(socket) = context.named_socket() {
            arguments.extend(["--socket".to_owned(), here(&socket)]);
        } else if let Some(config) = context.named_config() {
            arguments.extend(["--config".to_owned(), here(config)]);
        }
        let flags = [
            ("--read-only", self.read_only),
            ("--allow-confirm", self.allow_confirm),
        ];
        let flags = flags.into_iter().filter(|(_, given)| *given);
        arguments.extend(flags.map(|(flag, _)| flag.to_owned()));
        arguments
    }
}
