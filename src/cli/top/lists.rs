//! The tabs beside the slots: sessions and tasks, as rows of text. Pure.

use crate::cli::sessions;
use crate::cli::table;
use crate::control::requests::SessionInfo;
use crate::core::model::TaskStatus;
use chrono::{DateTime, Utc};

/// What the table shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Slots,
    Sessions,
    Tasks,
}

impl Tab {
    pub const ALL: [Tab; 3] = [Tab::Slots, Tab::Sessions, Tab::Tasks];

    pub fn name(self) -> &'static str {
        match self {
            Tab::Slots => "slots",
            Tab::Sessions => "sessions",
            Tab::Tasks => "tasks",
        }
    }

    fn next(self) -> Tab {
        match self {
            Tab::Slots => Tab::Sessions,
            Tab::Sessions => Tab::Tasks,
            Tab::Tasks => Tab::Slots,
        }
    }
}

/// What the daemon has told for a tab.
#[derive(Debug)]
pub enum Listed {
    Sessions(Vec<SessionInfo>),
    Tasks(Vec<TaskStatus>),
}

/// A session or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    pub id: String,
    pub state: String,
    pub age: String,
    /// Whose it is, or whom it is for.
    pub who: String,
    pub text: String,
    /// All that is known of it, for the panel below the table.
    pub details: Vec<(&'static str, String)>,
    /// A person should look at it.
    pub is_urgent: bool,
}

/// The tabs, with the row under the cursor.
#[derive(Debug, Default)]
pub struct Lists {
    tab: Tab,
    sessions: Vec<SessionInfo>,
    tasks: Vec<TaskStatus>,
    chosen: Option<String>,
}

impl Lists {
    pub fn tab(&self) -> Tab {
        self.tab
    }

    pub fn turn(&mut self) {
        self.tab = self.tab.next();
        self.chosen = None;
    }

    pub fn show_slots(&mut self) {
        self.tab = Tab::Slots;
    }

    pub fn take(&mut self, listed: Listed) {
        match listed {
            Listed::Sessions(sessions) => self.sessions = sessions,
            Listed::Tasks(mut tasks) => {
                // What goes on comes first, then the newest.
                tasks.sort_by_key(|task| (task.state.is_final(), std::cmp::Reverse(task.seq)));
                self.tasks = tasks;
            }
        }
    }

    pub fn rows(&self, now: DateTime<Utc>) -> Vec<ListRow> {
        match self.tab {
            Tab::Slots => Vec::new(),
            Tab::Sessions => self.sessions.iter().map(|one| session(one, now)).collect(),
            Tab::Tasks => self.tasks.iter().map(|one| task(one, now)).collect(),
        }
    }

    fn ids(&self) -> Vec<&str> {
        match self.tab {
            Tab::Slots => Vec::new(),
            Tab::Sessions => self.sessions.iter().map(|one| one.id.as_str()).collect(),
            Tab::Tasks => self.tasks.iter().map(|one| one.id.as_str()).collect(),
        }
    }

    /// The row under the cursor.
    pub fn cursor(&self) -> usize {
        let chosen = self.chosen.as_deref();
        let at = self.ids().iter().position(|id| Some(*id) == chosen);
        at.unwrap_or(0)
    }

    pub fn chosen(&self) -> Option<String> {
        self.ids().get(self.cursor()).map(|id| (*id).to_owned())
    }

    pub fn step(&mut self, by: isize) {
        let last = self.ids().len().saturating_sub(1);
        let to = self.cursor().saturating_add_signed(by).min(last);
        self.chosen = self.ids().get(to).map(|id| (*id).to_owned());
    }
}

fn age(since: DateTime<Utc>, now: DateTime<Utc>) -> String {
    table::age(now.signed_duration_since(since).num_seconds())
}

fn session(session: &SessionInfo, now: DateTime<Utc>) -> ListRow {
    let text = session.command.join(" ");
    ListRow {
        id: session.id.clone(),
        state: sessions::state(session),
        age: age(session.created_at, now),
        who: session.owner.clone(),
        details: vec![
            ("runs", text.clone()),
            ("in", session.cwd.display().to_string()),
            ("output", format!("{} bytes", session.output_bytes)),
        ],
        text,
        is_urgent: false,
    }
}

fn task(task: &TaskStatus, now: DateTime<Utc>) -> ListRow {
    let mut details = vec![("text", task.text.clone())];
    details.extend(task.error.clone().map(|why| ("why", why)));
    details.extend(task.answer.clone().map(|answer| ("answer", answer)));
    ListRow {
        id: task.id.clone(),
        state: task.state.name().to_owned(),
        age: age(task.submitted_at, now),
        who: match &task.slot {
            Some(slot) => slot.clone(),
            None => task.to.clone(),
        },
        text: task.text.clone(),
        details,
        is_urgent: task.state == crate::core::model::TaskState::NeedsPerson,
    }
}
