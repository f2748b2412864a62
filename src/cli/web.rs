use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::reach;
use crate::control::requests::{WhereFrom, WhereFromParams};
use crate::control::scope::Scope;
use crate::web::{CODE_LIFE, WebOptions, WebServer};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Serves the daemon over HTTP, on this machine only.
///
/// It prints an address with a code, which is good once and for a minute, and serves until it is ended. The requests are
/// those of the control socket. A program inside a slot and another user of this machine are refused, whatever
/// token they have. From elsewhere, use ssh: ssh -L 7777:127.0.0.1:7777 HOST
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond web
  missiond web --port 8080 --scope view
  missiond web --openapi > openapi.json

  curl -H 'Content-Type: application/json' -d '{\"code\":\"CODE\"}' http://127.0.0.1:7777/api/session
  curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{}' http://127.0.0.1:7777/api/status")]
pub struct Web {
    /// The port on 127.0.0.1; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 7777)]
    port: u16,
    /// What the code allows: view, answer, steer or keys; each includes those before it
    #[arg(long, value_name = "SCOPE", default_value_t = Scope::Keys)]
    scope: Scope,
    /// A name by which a proxy in front of it is reached; may be given several times
    #[arg(long = "allow-host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Print the description of the API (OpenAPI 3.1), and end
    #[arg(long)]
    openapi: bool,
}

impl Web {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.openapi {
            return context.out.json(&crate::web::openapi());
        }
        // The daemon must know this process as one outside of the slots, or it would refuse every request.
        let own = WhereFromParams {
            pids: vec![std::process::id().cast_signed()],
            server: "web".to_owned(),
        };
        context.connect().await?.call::<WhereFrom>(own).await?;
        let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let options = WebOptions {
            listen,
            hosts: self.hosts,
        };
        let server = WebServer::bind(reach::dial(context), options).await;
        let server = server.map_err(|error| {
            Failure::failed(format!("cannot listen at {listen}: {error}"))
                .next("choose another port: missiond web --port 0")
        })?;
        let code = server.code(self.scope);
        let code =
            code.map_err(|error| Failure::failed(format!("no code can be made: {error}")))?;
        let address = server.address();
        let url = format!("http://{address}/#k={}", code.text());
        match context.out.json {
            true => context.out.json(&json!({
                "url": url,
                "address": format!("http://{address}"),
                "code": code.text(),
                "scope": self.scope,
                "code_expires_s": CODE_LIFE.as_secs(),
            }))?,
            false => {
                context.out.line(&url)?;
                context.out.note(format!(
                    "The code is good once, for {} s, with the scope `{}`. End the server with Ctrl-C.",
                    CODE_LIFE.as_secs(),
                    self.scope
                ));
            }
        }
        server.serve().await;
        Ok(())
    }
}
