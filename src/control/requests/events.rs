use super::by_connection as answer;
use super::*;

request! {
    /// Subscribes: after the answer come notifications, first the snapshot, then what happens.
    Events = "events", EventsParams => Nothing;
    access: Granted("events", Slots);
}

/// Which slots, as in [`Select`], and whether what they write is told too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// Names, or `@role` for every slot of a role; all slots where there is none.
    #[serde(default)]
    pub slots: Vec<String>,
    /// What their programs write is told too.
    #[serde(default)]
    pub data: bool,
    /// In place of a snapshot: what has happened behind this position.
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
