use crate::cli::complete;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::{Close as Request, CloseParams};

/// Ends a session, or all of an owner, and what is kept of it.
///
/// Its processes get TERM, and KILL five seconds later.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session close build
  missiond session close build --force
  missiond session close --owner orchestrator:planner")]
pub struct Close {
    #[command(flatten)]
    which: WhichToClose,
    /// KILL at once
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct WhichToClose {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: Option<String>,
    /// All of this owner, and of owners whose name goes on after a colon
    #[arg(long, value_name = "PREFIX")]
    owner: Option<String>,
}

impl Close {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let one = self.which.id.is_some();
        let params = CloseParams {
            slot: self.which.id,
            owner: self.which.owner,
            force: self.force,
        };
        let answer = context.ask::<Request>(params).await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        match answer.closed.as_slice() {
            [id] if one => context.out.done(format!("{id}: closed")),
            [_] => context.out.done("1 session closed"),
            closed => context
                .out
                .done(format!("{} sessions closed", closed.len())),
        }
    }
}
