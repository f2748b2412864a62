//! A server of the Model Context Protocol with two tools, as small as Claude Code takes it.

use anyhow::Result;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

pub fn serve() -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        let result = result(request["method"].as_str().unwrap_or_default(), &request);
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
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
