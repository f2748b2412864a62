//! Three shells in parallel, held by a supervisor inside this program. The `missiond` program must be built or
//! installed: it holds the terminals.
//!
//! cargo build && cargo run --example embed

use missiond::core::model::SpawnParams;
use missiond::embed::{Options, Supervisor};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("embed-{}", std::process::id()));
    let supervisor = Supervisor::start(Options::in_directory(&directory)?).await?;
    let shells = ["one", "two", "three"].map(|name| shell(&supervisor, name));
    for output in futures_util::future::join_all(shells).await {
        print!("{}", output?);
    }
    supervisor.shutdown().await?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// Runs a little script in a shell of its own, to its end.
async fn shell(supervisor: &Supervisor, name: &str) -> Result<String, Box<dyn Error>> {
    let script = format!("for n in 1 2 3; do echo {name} $n; sleep 0.1; done");
    let session = supervisor.open(SpawnParams {
        command: vec!["sh".to_owned(), "-c".to_owned(), script],
        ..SpawnParams::default()
    });
    let session = session.await?;
    session.wait().await?;
    let output = session.output().await?;
    session.close().await?;
    Ok(output)
}
