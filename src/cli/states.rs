//! The states of a slot as words on the command line.

use crate::core::claude::reading::State;

pub fn parse(word: &str) -> Result<State, String> {
    let known = State::ALL.into_iter().find(|state| state.name() == word);
    known.ok_or_else(|| {
        let words = State::ALL.map(State::name).join(", ");
        format!("no such state; there are: {words}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
            assert_eq!(parse(state.name()), Ok(state));
        }
        assert!(parse("busy").unwrap_err().contains("tool_running"));
    }
}
