//! The files of the page, which are part of the program: nothing is fetched from another server.

use super::refusal::HttpRefusal;
use axum::response::{IntoResponse, Response};
use http::Uri;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};

/// The page runs only its own scripts and talks only to its own server. Text of a slot that looks like a script stays
/// text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal, $kind:expr, $file:literal;)+) => {
        &[$(Asset {
            path: $path,
            kind: $kind,
            bytes: include_bytes!(concat!("assets/", $file)),
        }),+]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = assets! {
    "/", "text/html; charset=utf-8", "index.html";
    "/assets/app.mjs", SCRIPT, "app.mjs";
    "/assets/api.mjs", SCRIPT, "api.mjs";
    "/assets/answer.mjs", SCRIPT, "answer.mjs";
    "/assets/argue.mjs", SCRIPT, "argue.mjs";
    "/assets/card.mjs", SCRIPT, "card.mjs";
    "/assets/keyboard.mjs", SCRIPT, "keyboard.mjs";
    "/assets/receipts.mjs", SCRIPT, "receipts.mjs";
    "/assets/screen.mjs", SCRIPT, "screen.mjs";
    "/assets/slot.mjs", SCRIPT, "slot.mjs";
    "/assets/text.mjs", SCRIPT, "text.mjs";
    "/assets/timeline.mjs", SCRIPT, "timeline.mjs";
    "/assets/views.mjs", SCRIPT, "views.mjs";
    "/assets/vendor/htm-preact.mjs", SCRIPT, "vendor/htm-preact.mjs";
    "/assets/style.css", "text/css; charset=utf-8", "style.css";
    "/assets/icon.svg", "image/svg+xml", "icon.svg";
    "/assets/icon-192.png", "image/png", "icon-192.png";
    "/assets/icon-512.png", "image/png", "icon-512.png";
    "/assets/manifest.webmanifest", "application/manifest+json", "manifest.webmanifest";
};

/// Serves a file of the page; any other path is not found.
pub(super) async fn answer(method: http::Method, uri: Uri) -> Response {
    let asset = ASSETS.iter().find(|asset| asset.path == uri.path());
    match asset.filter(|_| method == http::Method::GET) {
        Some(asset) => {
            let mut response = match asset.path {
                "/" => index().into_response(),
                _ => asset.bytes.into_response(),
            };
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            response
        }
        None => HttpRefusal::not_found(uri.path()).into_response(),
    }
}

/// The page, with the version of this program in it: a tab may outlive the server, at a port that is chosen.
fn index() -> String {
    include_str!("assets/index.html").replace("VERSION", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::requests::find;
    use crate::control::scope::Scope;
    use crate::core::text::hex;
    use sha2::{Digest, Sha256};

    /// Third-party code is kept as published: `preact/standalone.mjs` of htm 3.1.1.
    #[test]
    fn the_vendored_file_is_unchanged() {
        let path = "/assets/vendor/htm-preact.mjs";
        let vendored = ASSETS.iter().find(|asset| asset.path == path).unwrap();
        assert_eq!(
            hex::encode(&Sha256::digest(vendored.bytes)),
            "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"
        );
    }

    #[test]
    fn the_page_loads_nothing_that_is_not_here() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.contains("vendor")) {
            let Ok(text) = std::str::from_utf8(asset.bytes) else {
                assert_eq!(asset.kind, "image/png", "{}", asset.path);
                continue;
            };
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http:") && !text.contains("https:"),
                "{}",
                asset.path
            );
            for quoted in text
                .split(['"', '\''])
                .filter(|part| part.starts_with("/assets/"))
            {
                assert!(ASSETS.iter().any(|asset| asset.path == quoted), "{quoted}");
            }
            for import in text.split("from \"./").skip(1) {
                let file = format!("/assets/{}", import.split('"').next().unwrap());
                assert!(ASSETS.iter().any(|asset| asset.path == file), "{file}");
            }
        }
    }

    /// A button that a token can't use says so: by the scopes that the requests really have.
    #[test]
    fn the_page_knows_the_scopes_of_its_requests() {
        let script = ASSETS.iter().find(|asset| asset.path.ends_with("/api.mjs"));
        let text = std::str::from_utf8(script.unwrap().bytes).unwrap();
        let table = text.split("NEEDS = {").nth(1).unwrap();
        let table = table.split('}').next().unwrap();
        let mut count = 0;
        for (name, scope) in table.lines().filter_map(|line| line.split_once(": ")) {
            let scope = scope.trim_matches(['"', ',']);
            // `always` is an answer of `confirm`, which needs more than the others.
            if name.trim() == "always" {
                assert_eq!(scope, Scope::Keys.name());
                continue;
            }
            let needed = find(name.trim()).and_then(|request| request.scope);
            assert_eq!(needed.map(Scope::name), Some(scope), "{name}");
            count += 1;
        }
        assert_eq!(count, 7);
    }

    #[test]
    fn no_script_writes_markup() {
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for word in [
                "eval(",
                "new Function",
                "document.write",
                "insertAdjacentHTML",
                "outerHTML",
            ] {
                assert!(!text.contains(word), "{word} in {}", asset.path);
            }
        }
    }
}
