//! The daemon as tools of an MCP client, such as a Claude Code that leads others: `missiond mcp` on standard input and
//! output. It is a client of the control socket like any other, with the same permissions: started inside a slot, it
//! may only do what
//! `[mcp]` in the policy of that slot's role grants.

mod answer;
mod pending;
pub mod registration;
mod sessions;
mod slots;
mod tasks;

use crate::control::client::Dial;
use crate::control::requests::Method;
use crate::core::model::RpcError;
use crate::core::text::diagnostic::nearest;
use crate::core::text::excerpt;
use answer::Told;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, tool_handler};
use tokio_util::sync::CancellationToken;

/// The maximum bytes of an unknown tool's name that are repeated.
const MAX_NAME: usize = 64;

/// The options for the client.
#[derive(Debug, Clone, Copy, Default)]
pub struct McpOptions {
    /// Offer only tools that change nothing.
    pub read_only: bool,
    /// Also offer the tool that answers a slot's question to a person.
    pub allow_confirm: bool,
}

#[derive(Clone)]
pub struct McpServer {
    /// One connection for each call: a call that waits does not delay others.
    dial: Dial,
    router: ToolRouter<McpServer>,
}

const INSTRUCTIONS: &str = "\
missiond runs several Claude Code sessions, called slots, each in a terminal of its own. A slot has a name and a \
role. `status` shows them. `send` gives a message to one slot and returns its answer; `submit` puts a task into a \
queue for a slot or a @role, `task` returns its answer. A slot that asks something no rule answers is `confirming`: \
`pending` shows the question, and a person answers it. \
`unified_exec` runs any command in a terminal of its own.";

impl McpServer {
    pub fn new(dial: Dial, options: McpOptions) -> McpServer {
        let mut router = McpServer::slots_router()
            + McpServer::tasks_router()
            + McpServer::sessions_router()
            + McpServer::pending_router();
        if options.allow_confirm {
            router += McpServer::confirm_router();
        }
        if options.read_only {
            router.map.retain(|_, route| {
                let hints = route.attr.annotations.as_ref();
                hints.is_some_and(|hints| hints.read_only_hint == Some(true))
            });
        }
        McpServer { dial, router }
    }

    /// Serves the client at standard input and output until it disconnects.
    pub async fn serve(self) -> Result<(), String> {
        let service = self.serve_on(rmcp::transport::stdio()).await?;
        let _ = service.waiting().await;
        Ok(())
    }

    async fn serve_on<R, W>(
        self,
        (input, output): (R, W),
    ) -> Result<rmcp::service::RunningService<rmcp::RoleServer, McpServer>, String>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let served = ServiceExt::serve(self, (input, output)).await;
        served.map_err(|error| format!("the handshake with the client failed: {error}"))
    }

    fn no_such_tool(&self, name: &str) -> ErrorData {
        let mut tools: Vec<&str> = self.router.map.keys().map(AsRef::as_ref).collect();
        tools.sort_unstable();
        let meant = nearest(name, tools.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let name = excerpt::head(name, MAX_NAME);
        let tools = tools.join(", ");
        let text = format!("there is no tool `{name}` here{meant}\nthe tools are: {tools}");
        ErrorData::invalid_params(text, None)
    }

    /// Calls the daemon; if the client stops waiting, the request is withdrawn.
    async fn ask<M: Method>(
        &self,
        params: M::Params,
        cancelled: &CancellationToken,
    ) -> Result<M::Answer, RpcError> {
        let asked = async {
            let mut client = (self.dial)().await?;
            client.call::<M>(params).await.map_err(RpcError::from)
        };
        tokio::select! {
            answer = asked => answer,
            () = cancelled.cancelled() => Err(answer::taken_back()),
        }
    }

    /// Calls the daemon and formats the answer.
    async fn tell<M: Method>(
        &self,
        params: M::Params,
        cancelled: CancellationToken,
        words: impl FnOnce(M::Answer) -> Told,
    ) -> Told {
        match self.ask::<M>(params, &cancelled).await {
            Ok(answer) => words(answer),
            Err(error) => answer::fault(&error),
        }
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for McpServer {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.router.map.contains_key(request.name.as_ref()) {
            return Err(self.no_such_tool(&request.name));
        }
        let call = ToolCallContext::new(self, request, context);
        self.router.call(call).await
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("missiond", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::Fault;
    use std::sync::Arc;

    fn server(options: McpOptions) -> McpServer {
        let dial: Dial =
            Arc::new(|| Box::pin(async { Err(RpcError::new(Fault::Failed, "no daemon answers")) }));
        McpServer::new(dial, options)
    }

    #[test]
    fn a_tool_that_is_not_there_is_named_with_the_nearest_one() {
        let server = server(McpOptions::default());
        let error = server.no_such_tool("statsu").message;
        assert!(error.contains("`statsu`"), "{error}");
        assert!(error.contains("did you mean `status`?"), "{error}");
        assert!(error.contains("send, "), "{error}");
        let far = server.no_such_tool(&"x".repeat(1000)).message;
        assert!(!far.contains("did you mean") && far.len() < 700, "{far}");
    }

    fn names(options: McpOptions) -> Vec<String> {
        let tools = server(options).router.list_all();
        let mut names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_tool_has_words_a_schema_and_hints() {
        let options = McpOptions {
            allow_confirm: true,
            ..McpOptions::default()
        };
        for tool in server(options).router.list_all() {
            let name = &tool.name;
            assert!(
                tool.description.is_some_and(|words| words.len() > 20),
                "{name}"
            );
            let hints = tool.annotations.expect("hints");
            assert!(hints.read_only_hint.is_some(), "{name}");
            assert!(
                hints.read_only_hint == Some(true) || hints.destructive_hint.is_some(),
                "{name}"
            );
            assert_eq!(tool.input_schema["type"], "object", "{name}");
            let fields = tool
                .input_schema
                .get("properties")
                .and_then(|of| of.as_object());
            for (field, schema) in fields.into_iter().flatten() {
                assert!(
                    schema.get("description").is_some(),
                    "{name}.{field} has no words"
                );
            }
        }
    }

    /// A tool and the request of the same name use the same unit, milliseconds.
    #[test]
    fn times_are_in_milliseconds_as_on_the_socket() {
        let mut times = 0;
        for tool in server(McpOptions::default()).router.list_all() {
            let fields = tool
                .input_schema
                .get("properties")
                .and_then(|of| of.as_object());
            for (field, schema) in fields.into_iter().flatten() {
                let words = schema["description"].as_str().unwrap_or_default();
                let is_time = words.to_lowercase().contains("second");
                assert_eq!(field.ends_with("_ms"), is_time, "{}.{field}", tool.name);
                assert!(
                    !is_time || words.to_lowercase().contains("millisecond"),
                    "{words}"
                );
                times += usize::from(is_time);
            }
        }
        assert_eq!(times, 7);
    }

    #[test]
    fn nothing_is_approved_or_changed_unless_it_was_asked_for() {
        let usual = names(McpOptions::default());
        assert!(usual.contains(&"send".to_owned()) && !usual.contains(&"confirm".to_owned()));
        let reading = McpOptions {
            read_only: true,
            allow_confirm: true,
        };
        let expected = [
            "history",
            "list_pty_sessions",
            "pending",
            "screen",
            "status",
            "task",
            "tasks",
            "wait",
        ];
        assert_eq!(names(reading), expected);
        let confirming = McpOptions {
            allow_confirm: true,
            ..McpOptions::default()
        };
        assert!(names(confirming).contains(&"confirm".to_owned()));
    }
}
