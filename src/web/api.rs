//! The requests of the control socket over HTTP: `POST /api/NAME` with the parameters as JSON.

use super::refusal::HttpRefusal;
use super::server::{Caller, Granted, WebState};
use crate::control::permission;
use crate::control::requests::{self, Confirm, Method, RequestEntry};
use crate::control::scope::Scope;
use crate::core::claude::keys;
use crate::core::model::{Fault, RpcError};
use crate::os::blocking;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use chrono::Utc;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// `POST /api/session`: exchanges a code for a token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionParams {
    code: String,
}

/// The token that the client sends with each later request, and its scope.
#[derive(Serialize)]
pub(super) struct WebSession {
    token: String,
    scope: Scope,
    /// The name of the device, if the code was for one: its token outlives the tab.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

pub(super) type Body = Result<Bytes, BytesRejection>;

pub(super) async fn session(
    State(shared): State<Arc<WebState>>,
    body: Body,
) -> Result<Json<WebSession>, HttpRefusal> {
    let params = serde_json::from_value(object(body)?);
    let SessionParams { code } = params.map_err(|error| RpcError::bad_params("session", &error))?;
    match redeem(&shared, code).await {
        Ok(Some(session)) => Ok(Json(session)),
        Ok(None) => {
            shared.refuse_secret().await;
            let text = "the code was used before, is too old, or is wrong";
            let refusal = HttpRefusal::new(StatusCode::UNAUTHORIZED, Fault::Refused, text);
            Err(refusal.next("get another one: missiond web"))
        }
        Err(error) => {
            let text = format!("no token can be made: {error}");
            Err(RpcError::new(Fault::Failed, text).into())
        }
    }
}

/// The token for a code, of a tab or of a device.
async fn redeem(shared: &WebState, code: String) -> io::Result<Option<WebSession>> {
    let redeemed = shared.access().redeem(&code, Instant::now())?;
    if let Some((token, scope)) = redeemed {
        return Ok(Some(WebSession {
            token: token.text().to_owned(),
            scope,
            device: None,
        }));
    }
    let devices = shared.devices.clone();
    let redeemed = blocking::run(move || devices.redeem(&code, Utc::now())).await??;
    Ok(redeemed.map(|(token, grant)| WebSession {
        token: token.text().to_owned(),
        scope: grant.scope,
        device: Some(grant.name),
    }))
}

pub(super) async fn answer(
    State(shared): State<Arc<WebState>>,
    Extension(Granted { scope, device }): Extension<Granted>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Json<Value>, HttpRefusal> {
    let entry = requests::find(&name);
    let Some((entry, least)) = entry.and_then(|entry| Some((entry, entry.scope?))) else {
        return Err(RpcError::no_such_method(&name).into());
    };
    let params = object(body)?;
    let needed = least.max(needed_for(entry, &params));
    if scope < needed {
        let so = if needed > least {
            " with these parameters"
        } else {
            ""
        };
        let text = format!("`{name}`{so} needs the scope `{needed}`, and this token has `{scope}`");
        let refusal = HttpRefusal::new(StatusCode::FORBIDDEN, Fault::Refused, text);
        return Err(refusal.next(format!("missiond web --scope {needed}")));
    }
    if entry.name == Confirm::NAME && params.get("dialog").is_none_or(Value::is_null) {
        let text = "`confirm` needs the id of the dialog that was seen, in `dialog`";
        return Err(RpcError::new(Fault::Usage, text).into());
    }
    if least > Scope::View {
        caller.check_again(&shared).await?;
    }
    let mut client = (shared.dial)().await?;
    if let Some(device) = device {
        client.call_itself(format!("web {}", device.name));
    }
    let answer = client.ask(entry.name, params).await;
    Ok(Json(answer.map_err(RpcError::from)?))
}

/// The scope that these parameters need: a yes to more than this one call, an answer despite a doubt or a rule, and a
/// command that no rule judges, need more than an answer or a message.
fn needed_for(entry: &RequestEntry, params: &Value) -> Scope {
    let answer = params.get("answer").and_then(Value::as_str);
    let is_more = answer.is_some_and(|answer| keys::is_always(answer) || keys::widens(answer));
    let insists = |flag: &str| params.get(flag) == Some(&Value::Bool(true));
    let is_anyway = insists("anyway") || insists("against_rule");
    match entry.name {
        Confirm::NAME if is_more || is_anyway => Scope::Keys,
        _ if permission::escapes(params) => Scope::Keys,
        _ => Scope::View,
    }
}

/// The parameters; a request without a body has none.
pub(super) fn object(body: Body) -> Result<Value, HttpRefusal> {
    let body = body.map_err(|rejection| {
        let text = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => "the body has more than 64 KiB".to_owned(),
            _ => format!("the body can't be read: {}", rejection.body_text()),
        };
        HttpRefusal::new(rejection.status(), Fault::Usage, text)
    })?;
    if body.is_empty() {
        return Ok(json!({}));
    }
    let read = serde_json::from_slice::<Value>(&body);
    let text = match read {
        Ok(params @ Value::Object(_)) => return Ok(params),
        Ok(_) => "the body must be a JSON object".to_owned(),
        Err(error) => format!("the body is not JSON: {error}"),
    };
    Err(RpcError::new(Fault::Usage, text).into())
}
