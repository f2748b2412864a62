//! What the person does: a request to the daemon, and what came of it in one line.

use super::feed::FeedNews;
use super::state::Action;
use crate::cli::context::{ANSWER_LIMIT, call};
use crate::cli::sanitise;
use crate::cli::target::Target;
use crate::control::client::{CallError, Client};
use crate::control::requests::{Confirm, Interrupt, Restart, Send, SendParams, Start, Stop};
use crate::core::model::{ConfirmParams, Done, OneSlot, Select};
use std::time::Duration;
use tokio::sync::mpsc;

/// Ending and starting a program takes this long at most.
const PROGRAM_LIMIT: Duration = Duration::from_secs(90);

/// Does it, and tells what came of it. Actions that need the terminal are not for here.
pub async fn act(target: Target, action: Action, news: mpsc::Sender<FeedNews>) {
    let dialogs = answered(&action);
    let told = match attempt(&target, action).await {
        Ok(told) => FeedNews::Done(sanitise::one_line(&told)),
        Err(error) => {
            let why = sanitise::one_line(&in_words(error));
            FeedNews::NotDone { why, dialogs }
        }
    };
    // A dashboard that has ended needs no answer.
    let _ = news.send(told).await;
}

/// The dialogs that an action answers.
fn answered(action: &Action) -> Vec<String> {
    let asks = match action {
        Action::Answer(params) => std::slice::from_ref(params),
        Action::AnswerAll(asks) => asks,
        _ => &[],
    };
    asks.iter().filter_map(|ask| ask.dialog.clone()).collect()
}

fn in_words(error: CallError) -> String {
    let CallError::Rpc(error) = error else {
        return error.to_string();
    };
    let next = error.next.map(|next| format!("; {next}"));
    format!("refused: {}{}", error.message, next.unwrap_or_default())
}

async fn attempt(target: &Target, action: Action) -> Result<String, CallError> {
    let mut client = Client::connect_to(&target.socket, &target.wanted).await?;
    let select = |slot: String| Select { slots: vec![slot] };
    let limit = Some(PROGRAM_LIMIT);
    match action {
        Action::Answer(params) => answer(&mut client, params).await,
        Action::AnswerAll(asks) => {
            let mut told = Vec::new();
            for params in asks {
                let slot = params.slot.clone();
                let came = answer(&mut client, params).await;
                told.push(came.unwrap_or_else(|error| format!("{slot}: {}", in_words(error))));
            }
            Ok(told.join(" · "))
        }
        Action::Send { slot, text } => {
            let params = SendParams {
                slot,
                text,
                wait: false,
                timeout_ms: None,
                shell: false,
                slash: false,
                id: Some(uuid::Uuid::new_v4().to_string()),
            };
            let sent = call::<Send>(&mut client, params, limit).await?;
            Ok(format!("message to {}: {}", sent.slot, sent.state))
        }
        Action::Interrupt(slot) => {
            let told = call::<Interrupt>(&mut client, OneSlot { slot }, limit).await?;
            Ok(format!("{}: {}", told.slot, told.effect))
        }
        Action::Start(slot) => done(
            "start",
            call::<Start>(&mut client, select(slot), limit).await?,
        ),
        Action::Stop(slot) => done(
            "stop",
            call::<Stop>(&mut client, select(slot), limit).await?,
        ),
        Action::Restart(slot) => done(
            "restart",
            call::<Restart>(&mut client, select(slot), limit).await?,
        ),
        Action::Attach(_) | Action::Command(_) | Action::Suspend | Action::Quit => {
            Ok(String::new())
        }
    }
}

async fn answer(client: &mut Client, mut params: ConfirmParams) -> Result<String, CallError> {
    params.id = Some(uuid::Uuid::new_v4().to_string());
    let given = call::<Confirm>(client, params, Some(ANSWER_LIMIT)).await?;
    let mut told = format!("{}: {}", given.slot, given.chosen);
    if let Some(rule) = given.rule {
        told += &format!(", rule added: {rule}");
    }
    if let Some(why) = given.this_once {
        told += &format!(", this once: {why}");
    }
    Ok(told)
}

fn done(verb: &str, slots: Vec<Done>) -> Result<String, CallError> {
    let told = slots.into_iter().map(|slot| match slot.error {
        Some(error) => format!("{}: {}", slot.slot, error.message),
        None => format!("{verb} {}: {}", slot.slot, slot.state.name()),
    });
    Ok(told.collect::<Vec<_>>().join(" · "))
}
