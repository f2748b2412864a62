use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, reconnect, sanitise};
use crate::control::requests::Confirm as Request;
use crate::core::model::ConfirmParams;

/// Answers the dialog that a slot shows.
///
/// The answer is chosen by its meaning or its label, never by its position. yes, y, no, n and always, with any
/// punctuation behind them, have their meaning, and are never the beginning of a label; at a question a yes is taken only if
/// an option has that very label. A label may be shortened to its first words if no other label begins with them, but not if
/// the option may allow more than is asked (`Yes, and …` of a permission). A word that is no option is refused (exit code 4),
/// and so is `always` where no permission is asked for. In a list a label may have commas of its own. A no to a permission
/// dialog is always pressed as Esc. With --dialog it goes only to the dialog that you have seen: if another one is up by now,
/// nothing is pressed (exit code 4). Where the slot is doubtful, since its screen shows something else than the other
/// witnesses say, all but a no needs --anyway. If a rule denies the call, as one that came after the dialog, all but a no needs
/// --against-rule.
///
/// Each answer has an id, one of your own with --id or one that is made. The same id is given once: repeated, also after
/// the daemon was killed, the command has the same answer, and presses no key. A daemon that is killed meanwhile may be
/// away for 30 s.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond confirm coder yes
  missiond confirm coder always                 yes, and add a narrow rule to the role's policy, if one would help
  missiond confirm coder no --reason 'Use the staging database'
  missiond confirm coder 'Dark mode' --dialog 4f2a9c
  missiond confirm coder 'Cheese, Ham'          where several can be chosen: ticks both, and submits
  missiond confirm coder --text 'Neither: use the system setting'")]
pub struct Confirm {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// yes, always, no, the label of an option, or several labels with commas between them
    #[arg(
        required_unless_present = "text",
        conflicts_with = "text",
        add = complete::answers()
    )]
    answer: Option<String>,
    /// Answers a question in your own words, where it has a line for them
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// The dialog that is meant, as `pending` shows it
    #[arg(long, value_name = "ID")]
    dialog: Option<String>,
    /// What Claude is told with a no
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Press it though the slot is doubtful: you have looked at `missiond why`
    #[arg(long)]
    anyway: bool,
    /// Say yes though a rule denies the call by now; the audit has the rule
    #[arg(long)]
    against_rule: bool,
    /// Your own id of the answer: with the same id it is given once [default: made up]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Confirm {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = ConfirmParams {
            slot: self.slot,
            answer: self.answer,
            text: self.text,
            dialog: self.dialog,
            reason: self.reason,
            anyway: self.anyway,
            against_rule: self.against_rule,
            id: self.id.or_else(|| Some(uuid::Uuid::new_v4().to_string())),
        };
        let answer = reconnect::ask_once::<Request>(context, params).await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        let chosen = sanitise::one_line(&answer.chosen);
        context.out.done(format!("{}: {chosen}", answer.slot))?;
        if let Some(rule) = answer.rule {
            let rule = sanitise::one_line(&rule);
            context.out.done(format!("  rule added: {rule}"))?;
        }
        if let Some(why) = answer.this_once {
            let why = sanitise::one_line(&why);
            context.out.done(format!("  this once: {why}"))?;
        }
        Ok(())
    }
}
