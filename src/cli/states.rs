//! The states of a slot as words.

use crate::reading::State;

pub const ALL: [State; 8] = [
    State::Starting,
    State::Idle,
    State::Thinking,
    State::Responding,
    State::ToolRunning,
    State::Confirming,
    State::Error,
    State::Exited,
];

/// The word that JSON has for it.
pub fn name(state: State) -> &'static str {
    match state {
        State::Starting => "starting",
        State::Idle => "idle",
        State::Thinking => "thinking",
        State::Responding => "responding",
        State::ToolRunning => "tool_running",
        State::Confirming => "confirming",
        State::Error => "error",
        State::Exited => "exited",
    }
}

pub fn parse(word: &str) -> Result<State, String> {
    ALL.into_iter()
        .find(|state| name(*state) == word)
        .ok_or_else(|| format!("no such state; there are: {}", ALL.map(name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for state in ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), name(state));
            assert_eq!(parse(name(state)), Ok(state));
        }
        assert!(parse("busy").unwrap_err().contains("tool_running"));
    }
}
