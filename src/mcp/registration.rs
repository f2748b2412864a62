//! How to register this server with an MCP client.

use crate::core::text::quoting::quoted;
use serde_json::{Value, json};
use std::path::Path;

/// The server's entry in the client's JSON.
pub fn entry(program: &Path, arguments: &[String]) -> Value {
    json!({"mcpServers": {"missiond": {
        "type": "stdio",
        "command": program,
        "args": arguments,
    }}})
}

/// The line that adds it to Claude Code.
pub fn command_line(program: &Path, arguments: &[String]) -> String {
    let program = program.display().to_string();
    let words = std::iter::once(&program).chain(arguments);
    let quoted: Vec<String> = words.map(|word| quoted(word)).collect();
    format!("claude mcp add missiond -- {}", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let arguments = ["mcp", "-c", "/it's/here now.toml"].map(str::to_owned);
        assert_eq!(
            command_line(Path::new("/bin/missiond"), &arguments),
            r"claude mcp add missiond -- /bin/missiond mcp -c '/it'\''s/here now.toml'"
        );
        let entry = entry(Path::new("/bin/missiond"), &arguments);
        assert_eq!(
            entry["mcpServers"]["missiond"]["args"][2],
            "/it's/here now.toml"
        );
    }
}
