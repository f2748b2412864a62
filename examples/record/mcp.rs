//! A server of the Model Context Protocol with four tools, as small as Claude Code takes it.

use anyhow::Result;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

pub fn serve() -> Result<()> {
    let mut lines = std::io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        if request["params"]["name"] == "ask" {
            ask(&mut lines)?;
        }
        let result = result(request["method"].as_str().unwrap_or_default(), &request);
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// Asks the person at Claude Code for a yes or a no, and waits for it.
fn ask(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Result<()> {
    let params = json!({"message": "May the sky be painted?", "requestedSchema": {"type": "object", "properties": {}}});
    let question =
        json!({"jsonrpc": "2.0", "id": "asked", "method": "elicitation/create", "params": params});
    let mut out = std::io::stdout().lock();
    writeln!(out, "{question}")?;
    out.flush()?;
    for line in lines {
        let answer: Value = serde_json::from_str(&line?)?;
        if answer["id"] == "asked" {
            break;
        }
    }
    Ok(())
}

fn result(method: &str, request: &Value) -> Value {
    match method {
        "initialize" => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "demo", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            tool("look", "Looks at something"),
            tool("getWeatherReport", "Tells the weather"),
            tool("ask", "Asks the person"),
            tool("survey", &"Looks at everything there is and says what it has seen. ".repeat(6)),
        ]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "It is there."}]}),
        _ => json!({}),
    }
}

fn tool(name: &str, description: &str) -> Value {
    let text = json!({"type": "string"});
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {"what": text, "where": text}},
    })
}
