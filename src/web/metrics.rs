//! `GET /metrics`, for a monitor that has a token.

use super::refusal::HttpRefusal;
use super::server::WebState;
use crate::control::requests::Metrics;
use crate::core::model::{Nothing, RpcError};
use axum::extract::State;
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use std::sync::Arc;

/// Answers with the metrics; a token of any scope is enough.
pub(super) async fn answer(
    State(shared): State<Arc<WebState>>,
) -> Result<impl IntoResponse, HttpRefusal> {
    let mut client = (shared.dial)().await?;
    let answer = client.call::<Metrics>(Nothing {}).await;
    let text = answer.map_err(RpcError::from)?.text;
    Ok((
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    ))
}
