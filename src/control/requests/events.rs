use super::by_connection as answer;
use super::*;

request! {
    /// Subscribes to events: after the answer come notifications, first a snapshot, then each event.
    Events = "events", EventsParams => Nothing;
    access: Granted("events", Slots);
}

/// The slots, as in [`Select`], and whether their output is sent too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// Names, or `@role` for every slot of a role; empty means all slots.
    #[serde(default)]
    pub slots: Vec<String>,
    /// Also send the output of their programs.
    #[serde(default)]
    pub data: bool,
    /// Instead of a snapshot, send the events after this position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

impl From<Select> for EventsParams {
    fn from(select: Select) -> EventsParams {
        let Select { slots } = select;
        EventsParams {
            slots,
            ..EventsParams::default()
        }
    }
}
