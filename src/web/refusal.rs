//! Errors as a client over HTTP gets them: the status, and the same words as on the control socket.

use super::guard::Denied;
use crate::core::model::{Fault, Misuse, RpcError};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

/// A request that was not answered as asked.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    error: RpcError,
}

impl Refusal {
    pub fn new(status: StatusCode, fault: Fault, message: impl Into<String>) -> Refusal {
        let error = RpcError::new(fault, message);
        Refusal { status, error }
    }

    pub fn next(mut self, next: impl Into<String>) -> Refusal {
        self.error = self.error.next(next);
        self
    }

    pub fn no_token() -> Refusal {
        let text = "a token is needed: Authorization: Bearer TOKEN";
        Refusal::new(StatusCode::UNAUTHORIZED, Fault::Refused, text)
            .next("get a code with `missiond web`, and a token for it with POST /api/session")
    }

    pub fn not_found(path: &str) -> Refusal {
        let text = format!("there is nothing at {path}");
        Refusal::new(StatusCode::NOT_FOUND, Fault::Usage, text).next("see /api/openapi.json")
    }

    pub fn full(what: &str) -> Refusal {
        let text = format!("there are too many {what}");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Full, text)
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Refusal {
        Refusal::new(denied.status(), Fault::Refused, denied.message())
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Refusal {
        let status = match (error.misuse, error.fault) {
            (Some(Misuse::Method), _) => StatusCode::NOT_FOUND,
            (_, Fault::Usage) => StatusCode::BAD_REQUEST,
            (_, Fault::Refused | Fault::NeedsPerson) => StatusCode::CONFLICT,
            (_, Fault::Full | Fault::TooSlow) => StatusCode::SERVICE_UNAVAILABLE,
            (_, Fault::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
            (_, Fault::Failed) => StatusCode::BAD_GATEWAY,
        };
        Refusal { status, error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.error }))).into_response()
    }
}
