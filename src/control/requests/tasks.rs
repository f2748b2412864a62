use super::submit::submitter;
use super::*;
use crate::core::text::excerpt;

/// The maximum bytes of a text in a list; whole texts would not fit into one answer.
const SHOWN: usize = 400;

request! {
    /// Shows the tasks.
    Tasks = "tasks", TasksParams => Vec<TaskStatus>;
    access: Granted("submit", OwnTasks);
    scope: Scope::View;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksParams {
    /// Only tasks in one of these states; empty means all tasks.
    #[serde(default)]
    pub states: Vec<TaskState>,
}

/// Lists the tasks. A slot sees only its own.
async fn answer(call: Call<'_>, params: TasksParams) -> Result<Vec<TaskStatus>, RpcError> {
    let own = match call.peer.origin {
        PeerOrigin::Outside => None,
        _ => Some(submitter(call.peer)),
    };
    let all = call.daemon().tasks.all();
    let wanted = all.iter().filter(|task| {
        let state = params.states.is_empty() || params.states.contains(&task.state);
        state && own.as_ref().is_none_or(|own| *own == task.by)
    });
    Ok(wanted.map(|task| in_short(task)).collect())
}

fn in_short(task: &TaskStatus) -> TaskStatus {
    let mut short = task.clone();
    short.truncated = cut(&mut short.text);
    if let Some(answer) = &mut short.answer {
        short.truncated |= cut(answer);
    }
    short
}

fn cut(text: &mut String) -> bool {
    let too_long = text.len() > SHOWN;
    if too_long {
        text.truncate(excerpt::head(text, SHOWN).len());
        text.push('…');
    }
    too_long
}
