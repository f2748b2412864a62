//! `replay`.

use crate::fake::Home;
use serde_json::{Value, json};

/// A program that draws nothing that anybody knows, and ends.
const CAST: &str = "\
{\"version\": 2, \"width\": 80, \"height\": 24}
[0.5, \"o\", \"hello\\r\\n\"]
[2.0, \"o\", \"bye\\r\\n\"]
";

#[test]
fn each_change_is_a_json_line() {
    let home = Home::new();
    home.write("coder.cast", CAST);
    let ran = home.run(&["replay", "coder.cast"]).exits(0);
    let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert!(first["t"].is_number(), "{ran:?}");
    assert_eq!(
        (&first["state"], &first["dialog"]),
        (&json!("starting"), &Value::Null)
    );
    let piped = home
        .run_with_input(&["replay", "-"], CAST.as_bytes())
        .exits(0);
    assert_eq!(piped.stdout, ran.stdout);
    let plain = home.run(&["replay", "--plain", "coder.cast"]).exits(0);
    assert!(
        plain.stdout.lines().next().unwrap().ends_with("  starting"),
        "{plain:?}"
    );
}

#[test]
fn what_is_no_recording_is_said() {
    let home = Home::new();
    home.write("broken.cast", "not json\n");
    for file in ["broken.cast", "missing.cast"] {
        let ran = home.run(&["replay", file]).exits(1);
        assert!(
            ran.stderr.contains(&format!("cannot replay {file}")),
            "{ran:?}"
        );
    }
}
