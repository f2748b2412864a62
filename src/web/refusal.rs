//! Errors for HTTP clients: the status, and the same error as on the control socket.

use super::guard::Denied;
use crate::core::model::{Fault, Misuse, RpcError};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

/// A request that failed or was refused.
#[derive(Debug)]
pub struct HttpRefusal {
    status: StatusCode,
    error: RpcError,
}

impl HttpRefusal {
    pub fn new(status: StatusCode, fault: Fault, message: impl Into<String>) -> HttpRefusal {
        let error = RpcError::new(fault, message);
        HttpRefusal { status, error }
    }

    pub fn next(mut self, next: impl Into<String>) -> HttpRefusal {
        self.error = self.error.next(next);
        self
    }

    pub fn no_token() -> HttpRefusal {
        let text = "a token is needed: Authorization: Bearer TOKEN";
        HttpRefusal::new(StatusCode::UNAUTHORIZED, Fault::Refused, text)
            .next("get a code with `missiond web`, and a token for it with POST /api/session")
    }

    pub fn not_found(path: &str) -> HttpRefusal {
        let text = format!("there is nothing at {path}");
        HttpRefusal::new(StatusCode::NOT_FOUND, Fault::Usage, text).next("see /api/openapi.json")
    }

    pub fn full(what: &str) -> HttpRefusal {
        let text = format!("there are too many {what}");
        HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Full, text)
    }
}

impl From<Denied> for HttpRefusal {
    fn from(denied: Denied) -> HttpRefusal {
        HttpRefusal::new(denied.status(), Fault::Refused, denied.message())
    }
}

impl From<RpcError> for HttpRefusal {
    fn from(error: RpcError) -> HttpRefusal {
        let status = match (error.misuse, error.fault) {
            (Some(Misuse::Method), _) => StatusCode::NOT_FOUND,
            (_, Fault::Usage) => StatusCode::BAD_REQUEST,
            (_, Fault::Refused | Fault::NeedsPerson) => StatusCode::CONFLICT,
            (_, Fault::Full | Fault::TooSlow) => StatusCode::SERVICE_UNAVAILABLE,
            (_, Fault::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
            (_, Fault::Failed) => StatusCode::BAD_GATEWAY,
        };
        HttpRefusal { status, error }
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.error }))).into_response()
    }
}
