mod devices;

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::reach;
use crate::control::client::CallError;
use crate::control::requests::{WhereFrom, WhereFromParams};
use crate::control::scope::Scope;
use crate::core::model::Fault;
use crate::web::{CODE_LIFE, Devices, WebOptions, WebServer};
use devices::DeviceVerb;
use serde_json::json;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Serves the daemon over HTTP, on this machine only.
///
/// It prints an address with a code, which is good once and for a minute, and serves until it is ended. The requests are
/// those of the control socket. A program inside a slot and another user of this machine are refused, whatever
/// token they have. From elsewhere, use ssh with the port that it prints: ssh -L PORT:127.0.0.1:PORT HOST
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  missiond web
  missiond web pair --name phone
  missiond web --port 8080 --scope view
  missiond web --openapi > openapi.json

  curl -H 'Content-Type: application/json' -d '{\"code\":\"CODE\"}' http://127.0.0.1:PORT/api/session
  curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{}' http://127.0.0.1:PORT/api/status"
)]
pub struct Web {
    /// The port on 127.0.0.1, in place of one that is free
    ///
    /// Choose one at which no program of a slot has ever been opened in your browser: what such a program left there, a
    /// service worker, would get the page's code.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
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
    #[command(subcommand)]
    verb: Option<DeviceVerb>,
}

/// The daemon must know this process as one outside of the slots: nobody approves himself.
async fn check_outside(context: &Context) -> Result<(), Failure> {
    let own = WhereFromParams {
        pids: vec![std::process::id().cast_signed()],
        server: "web".to_owned(),
        unwritten: true,
    };
    let known = context.connect().await?.call::<WhereFrom>(own).await;
    known.map_err(|error| match error {
        CallError::Rpc(error) if error.fault == Fault::Refused => Failure::new(
            Blame::Fault(Fault::Refused),
            "`missiond web` was called from inside a slot: nobody approves himself",
        )
        .next("a person does this, in a terminal outside of the slots"),
        error => error.into(),
    })?;
    Ok(())
}

fn cannot_listen(listen: SocketAddr, error: &io::Error) -> Failure {
    let port = listen.port();
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another program listens at port {port}, perhaps another missiond web")
        }
        io::ErrorKind::PermissionDenied => {
            format!("your user may not listen at port {port}; ports from 1024 on are free for all")
        }
        _ => format!("cannot listen at {listen}: {error}"),
    };
    Failure::failed(why).next("let missiond choose a port: missiond web")
}

impl Web {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.openapi {
            return context.out.json(&crate::web::openapi());
        }
        check_outside(context).await?;
        let devices = Devices::in_dir(&context.env.state_dir()?);
        if let Some(verb) = self.verb {
            return verb.run(context, &devices);
        }
        let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let options = WebOptions {
            listen,
            hosts: self.hosts,
            devices,
        };
        let server = WebServer::bind(reach::dial(context), options).await;
        let server = server.map_err(|error| cannot_listen(listen, &error))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_can_not_be_had_is_told_with_its_reason() {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        for (kind, words) in [
            (
                io::ErrorKind::AddrInUse,
                "another program listens at port 80",
            ),
            (io::ErrorKind::PermissionDenied, "may not listen at port 80"),
            (io::ErrorKind::OutOfMemory, "cannot listen at 127.0.0.1:80"),
        ] {
            let told = cannot_listen(listen, &kind.into()).message;
            assert!(told.contains(words), "{told}");
        }
    }
}
