use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::Metrics as Request;
use crate::core::model::Nothing;

/// Prints counters of all slots for Prometheus.
///
/// The page of `missiond web` has the same at /metrics. dist/grafana.json is a dashboard for them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond metrics
  missiond metrics | sponge /var/lib/node_exporter/missiond.prom     for the textfile collector")]
pub struct Metrics {}

impl Metrics {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let metrics = context.ask::<Request>(Nothing {}).await?;
        match context.out.json {
            true => context.out.json(&metrics),
            false => context.out.foreign(&metrics.text),
        }
    }
}
