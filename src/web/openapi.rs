//! `GET /api/openapi.json`: the description of the API, generated from the table of requests.

use crate::control::requests::{RequestEntry, requests};
use crate::control::scope::Scope;
use crate::core::model::{Event, RpcError};
use axum::Json;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The error statuses, which all have the same body.
const ERRORS: [(&str, &str); 10] = [
    ("400", "Wrong parameters, or an unknown name."),
    ("401", "No token, or a wrong one."),
    (
        "403",
        "Another host or page, a program inside a slot, another user, or a token of a smaller scope.",
    ),
    ("404", "No such request."),
    ("409", "Refused in this state, or a person is needed."),
    ("413", "The body is too long."),
    ("415", "The body is not JSON."),
    ("502", "It failed, or the daemon does not run."),
    ("503", "The daemon or this server is full."),
    ("504", "It took longer than its time limit."),
];

pub(super) async fn answer() -> Json<Value> {
    Json(openapi())
}

/// The document, in OpenAPI 3.1.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    paths.insert("/api/session".to_owned(), session());
    paths.insert("/api/ticket".to_owned(), ticket());
    paths.insert("/api/openapi.json".to_owned(), own());
    paths.insert("/api/events".to_owned(), events(&mut generator));
    paths.insert("/api/timeline".to_owned(), timeline());
    paths.insert("/api/past".to_owned(), past(&mut generator));
    for entry in requests() {
        if let Some(scope) = entry.scope {
            let path = format!("/api/{}", entry.name);
            paths.insert(path, request(entry, scope, &mut generator));
        }
    }
    let error = generator.subschema_for::<RpcError>();
    let mut schemas = generator.take_definitions(true);
    schemas.insert("HttpRefusal".to_owned(), refusal(&error.to_value()));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "missiond",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The requests of the control socket, over HTTP on loopback: missiond web.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "From POST /api/session, for a code that `missiond web` shows.",
                },
            },
        },
    })
}

fn refusal(error: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "error": error },
        "required": ["error"],
    })
}

fn request(entry: &RequestEntry, scope: Scope, generator: &mut SchemaGenerator) -> Value {
    json!({
        "post": {
            "operationId": entry.name,
            "summary": entry.about.trim(),
            "description": format!("Needs the scope `{scope}`."),
            "x-scope": scope,
            "requestBody": { "required": true, "content": as_json((entry.params)(generator).into()) },
            "responses": responses(as_json((entry.answer)(generator).into())),
        },
    })
}

fn session() -> Value {
    let code = json!({
        "type": "object",
        "properties": { "code": { "type": "string" } },
        "required": ["code"],
        "additionalProperties": false,
    });
    let token = json!({
        "type": "object",
        "properties": {
            "token": { "type": "string" },
            "scope": { "enum": Scope::ALL },
            "device": { "type": "string", "description": "The name of the device, if the code was for one." },
        },
        "required": ["token", "scope"],
    });
    json!({
        "post": {
            "operationId": "session",
            "summary": "Exchanges a code for a token; a code works once.",
            "security": [],
            "requestBody": { "required": true, "content": as_json(code) },
            "responses": responses(as_json(token)),
        },
    })
}

fn ticket() -> Value {
    let slot = json!({
        "type": "object",
        "properties": {
            "slot": { "type": ["string", "null"], "description": "The slot whose screen is wanted." },
            "events": { "type": "boolean", "description": "The events are wanted." },
        },
        "oneOf": [
            { "required": ["slot"], "properties": { "slot": { "type": "string" }, "events": { "const": false } } },
            { "required": ["events"], "properties": { "slot": { "type": "null" }, "events": { "const": true } } },
        ],
        "additionalProperties": false,
    });
    let ticket = json!({
        "type": "object",
        "properties": {
            "ticket": { "type": "string" },
            "expires_s": { "type": "integer" },
        },
        "required": ["ticket", "expires_s"],
    });
    json!({
        "post": {
            "operationId": "ticket",
            "summary": "Gives a ticket, valid once, for a WebSocket with the subprotocols missiond.v1 and ticket.TICKET: \
                        GET /api/live?slot=NAME shows the screen of one slot as it changes, GET /api/events the events.",
            "requestBody": { "required": true, "content": as_json(slot) },
            "responses": responses(as_json(ticket)),
        },
    })
}

fn timeline() -> Value {
    let params = json!({
        "type": "object",
        "properties": {
            "since_s": {
                "type": "integer", "minimum": 1, "maximum": 2_678_400,
                "description": "From so many seconds ago on; 8 hours if it is not given.",
            },
            "slots": {
                "type": "array", "items": { "type": "string" },
                "description": "Names of slots; empty means all that ran in that time.",
            },
        },
        "additionalProperties": false,
    });
    let report = json!({
        "type": "object",
        "description": "As `missiond timeline --json` has it.",
        "properties": {
            "since": { "type": "string", "format": "date-time" },
            "until": { "type": "string", "format": "date-time" },
            "slots": { "type": "array", "items": { "type": "object" } },
            "waiting": { "type": "object" },
        },
        "required": ["since", "until", "slots", "waiting"],
    });
    json!({
        "post": {
            "operationId": "timeline",
            "summary": "Tells what slots did, and how long people were waited for.",
            "description": "Needs the scope `view`.",
            "x-scope": Scope::View,
            "requestBody": { "required": true, "content": as_json(params) },
            "responses": responses(as_json(report)),
        },
    })
}

fn past(generator: &mut SchemaGenerator) -> Value {
    let params = json!({
        "type": "object",
        "properties": {
            "slot": { "type": "string" },
            "at": { "type": "string", "format": "date-time" },
        },
        "required": ["slot", "at"],
        "additionalProperties": false,
    });
    let screen = json!({
        "type": ["object", "null"],
        "description": "`null` if no recording of that time is kept. Secrets are masked.",
        "properties": {
            "cols": { "type": "integer" },
            "rows": { "type": "integer" },
            "lines": { "type": "array", "items": { "type": "string" } },
        },
    });
    let event = generator.subschema_for::<Event>();
    let moment = json!({
        "type": "object",
        "properties": {
            "slot": { "type": "string" },
            "at": { "type": "string", "format": "date-time" },
            "screen": screen,
            "events": { "type": "array", "items": event },
        },
        "required": ["slot", "at", "screen", "events"],
    });
    json!({
        "post": {
            "operationId": "past",
            "summary": "Shows the screen of a slot at a moment, and what happened within five minutes of it.",
            "description": "Needs the scope `view`.",
            "x-scope": Scope::View,
            "requestBody": { "required": true, "content": as_json(params) },
            "responses": responses(as_json(moment)),
        },
    })
}

fn own() -> Value {
    json!({
        "get": {
            "operationId": "openapi",
            "summary": "This document.",
            "responses": responses(as_json(json!({ "type": "object" }))),
        },
    })
}

fn events(generator: &mut SchemaGenerator) -> Value {
    let parameter = |name: &str, about: &str, schema: Value| json!({ "name": name, "in": "query", "description": about, "schema": schema });
    let event = generator.subschema_for::<Event>();
    json!({
        "get": {
            "operationId": "events",
            "summary": "Streams what happens, as server-sent events; with a ticket, by WebSocket.",
            "description": "`event` has an event as its data and its position as its id; live events follow after \
                `live`; `lagged` and `lost` end the stream.",
            "x-scope": Scope::View,
            "parameters": [
                parameter("slots", "Names of slots, separated by commas; empty means all.", json!({ "type": "string" })),
                parameter("data", "Also send the output of their programs.", json!({ "type": "boolean" })),
                parameter("after", "Instead of a snapshot, send the events after this position.", json!({ "type": "integer", "minimum": 0 })),
            ],
            "responses": responses(json!({ "text/event-stream": { "schema": event } })),
        },
    })
}

fn as_json(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn responses(content: Value) -> Value {
    let mut all = Map::new();
    let done = json!({ "description": "Done.", "content": content });
    all.insert("200".to_owned(), done);
    let refusal = as_json(json!({ "$ref": "#/components/schemas/HttpRefusal" }));
    for (status, about) in ERRORS {
        let error = json!({ "description": about, "content": refusal });
        all.insert(status.to_owned(), error);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_there_but_those_that_need_the_socket() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap();
        let missing =
            requests().filter(|entry| !paths.contains_key(&format!("/api/{}", entry.name)));
        let missing: Vec<&str> = missing.map(|entry| entry.name).collect();
        assert_eq!(missing, ["attach", "unsubscribe", "hook", "peer"]);
    }

    #[test]
    fn every_reference_is_there() {
        let document = openapi();
        let text = document.to_string();
        let references: Vec<&str> = text
            .split("\"$ref\":\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(references.len() > 100, "{}", references.len());
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}
