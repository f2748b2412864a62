//! The schema of the control socket, made from the table of requests: for programs that speak to the daemon without
//! this crate, and for the page that documents it.

use super::permission::Access;
use super::requests::{RequestEntry, requests};
use crate::core::model::envelope::{self, Lagged, Live};
use crate::core::model::{Event, RpcError};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

/// Every method with its params, its answer and who may call it; the notifications; the errors. Shared types are in
/// `$defs`.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let methods: Vec<Value> = requests()
        .map(|entry| method(entry, &mut generator))
        .collect();
    let notifications = json!([
        {
            "name": envelope::EVENT,
            "description": "Something that happened, or the status of a slot when a subscription begins.",
            "params": generator.subschema_for::<Event>(),
        },
        {
            "name": envelope::LIVE,
            "description": "The snapshot, or the replay of missed events, is complete: live events follow.",
            "params": generator.subschema_for::<Live>(),
        },
        {
            "name": envelope::LAGGED,
            "description": "The client read too slowly; its subscription has ended.",
            "params": generator.subschema_for::<Lagged>(),
        },
    ]);
    let error = generator.subschema_for::<RpcError>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "the control socket of missiond",
        "description": "JSON-RPC 2.0 on a unix socket, one object per line.",
        "version": env!("CARGO_PKG_VERSION"),
        "methods": methods,
        "notifications": notifications,
        "error_data": error,
        "$defs": generator.take_definitions(true),
    })
}

fn method(entry: &RequestEntry, generator: &mut SchemaGenerator) -> Value {
    let (access, grant) = match entry.access {
        Access::Anybody => ("anybody", None),
        Access::OwnSlot => ("own slot", None),
        Access::Granted(word, _) => ("granted", Some(word)),
        Access::PersonOnly => ("person", None),
    };
    json!({
        "name": entry.name,
        "description": entry.about.trim(),
        "access": access,
        "grant": grant,
        "scope": entry.scope,
        "names": entry.names.name(),
        "params": (entry.params)(generator),
        "result": (entry.answer)(generator),
    })
}
