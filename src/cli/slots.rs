//! How slots are named on the command line: names, `@role`, `--all`.

use crate::cli::complete;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::dispatch::several_slots;
use crate::control::requests::Status;
use crate::core::model::Select;
use clap::Args;

/// For commands that look: no name means all.
#[derive(Debug, Clone, Default, Args)]
pub struct AnySlots {
    /// Slots by name, or @role for every slot of a role [default: all]
    #[arg(value_name = "SLOT", add = complete::slots())]
    slots: Vec<String>,
    /// Every slot
    #[arg(long, conflicts_with = "slots")]
    all: bool,
}

/// For commands that act: every slot only when it is said.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SomeSlots {
    /// Slots by name, or @role for every slot of a role
    #[arg(value_name = "SLOT", add = complete::slots())]
    slots: Vec<String>,
    /// Every slot
    #[arg(long)]
    all: bool,
}

impl AnySlots {
    pub fn select(self) -> Select {
        Select { slots: self.slots }
    }
}

impl SomeSlots {
    pub fn select(self) -> Select {
        Select { slots: self.slots }
    }

    /// The names that are meant; a single plain name needs no question.
    pub async fn names(self, context: &Context) -> Result<Vec<String>, Failure> {
        if let [name] = self.slots.as_slice()
            && !name.starts_with('@')
        {
            return Ok(self.slots);
        }
        let statuses = context.ask::<Status>(self.select()).await?;
        Ok(statuses.into_iter().map(|status| status.slot).collect())
    }
}

/// The slot that is meant by a name or by the `@role` of one slot, for a command that does without the daemon otherwise.
pub async fn one(context: &Context, name: String) -> Result<String, Failure> {
    if !name.starts_with('@') {
        return Ok(name);
    }
    let slots = vec![name.clone()];
    let statuses = context.ask::<Status>(Select { slots }).await?;
    let names: Vec<&str> = statuses.iter().map(|status| status.slot.as_str()).collect();
    match names.as_slice() {
        [name] => Ok((*name).to_owned()),
        several => Err(several_slots(&name, several).into()),
    }
}

/// These names, and those of the slots of each `@role`, for a command that does without the daemon otherwise.
pub async fn expanded(context: &Context, names: Vec<String>) -> Result<Vec<String>, Failure> {
    let (roles, mut names): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| name.starts_with('@'));
    if !roles.is_empty() {
        let statuses = context.ask::<Status>(Select { slots: roles }).await?;
        names.extend(statuses.into_iter().map(|status| status.slot));
    }
    Ok(names)
}
