use super::*;
use super::by_connection as answer;

request! {
    /// Subscribes: after the answer come notifications, first the snapshot, then what happens.
    Events = "events", EventsParams => Nothing;
    access: Granted("events", Slots);
    names: Either;
}
