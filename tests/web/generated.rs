//! What the server answers to requests that `schemathesis` makes from the document of the API: allowed ones, and ones with
//! something wrong in them. Each answer has a status, a type and a form that the document names, and none is an error of the
//! server.

use super::answers::daemon;
use super::client::Web;
use crate::support::skip;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Requests that stay open, or wait for something that does not happen here.
const WAITING: &str = "/api/(events|wait|send|task)$";

/// Checks that do not fit: an unknown name is a well-formed request that the server answers with 400, and a POST without JSON is
/// refused before the server looks at its path.
const NOT_CHECKED: &str = "positive_data_acceptance,unsupported_method";

#[test]
fn requests_made_from_the_document_are_answered_as_it_says() {
    let found = Command::new("schemathesis").arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip("requests are not made from the API's document (needs schemathesis)");
    }
    let daemon = daemon();
    let web = Web::start(&daemon, "steer");
    let token = web.token();
    let mut document = web.get("/api/openapi.json", Some(&token)).json();
    name_slots(&mut document);
    let (ok, text) = fuzz(&web, &token, &document, &["--exclude-path-regex", WAITING]);
    assert!(ok && text.contains("generated, "), "{text}");

    // The same command fails with a document that is wrong about one answer.
    let stats = "/paths/~1api~1stats/post/responses/200/content/application~1json/schema";
    *document.pointer_mut(stats).expect("the answer of stats") = json!({ "type": "string" });
    let (ok, text) = fuzz(&web, &token, &document, &["--include-path", "/api/stats"]);
    assert!(!ok && text.contains("/api/stats"), "{text}");
}

/// Lets the requests name slots: one that runs, and one that does not exist.
fn name_slots(document: &mut Value) {
    let names = json!({ "type": "string", "enum": ["echo", "nobody"] });
    let schemas = document["components"]["schemas"].as_object_mut();
    for schema in schemas.expect("schemas").values_mut() {
        if let Some(slot) = schema.pointer_mut("/properties/slot") {
            *slot = names.clone();
        }
        if let Some(items) = schema.pointer_mut("/properties/slots/items") {
            *items = names.clone();
        }
    }
}

/// Runs schemathesis, and says whether all its checks held, with what it printed. The seed is printed too.
fn fuzz(web: &Web, token: &str, document: &Value, more: &[&str]) -> (bool, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("openapi.json");
    fs::write(&file, document.to_string()).expect("a file");
    let ran = Command::new("schemathesis")
        .arg("run")
        .arg(&file)
        .args(["--url", &format!("http://{}", web.host())])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--phases", "coverage,fuzzing", "--max-examples", "10"])
        .args(["--request-timeout", "60", "--exclude-checks", NOT_CHECKED])
        .args(more)
        .arg("--no-color")
        .current_dir(directory.path())
        .output()
        .expect("schemathesis runs");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    (ran.status.success(), text)
}
