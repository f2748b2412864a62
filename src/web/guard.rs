//! Refuses requests before their token is checked: requests for another host, requests from another page, and forms.
//! Pure.
//!
//! A browser also sends the requests of other pages to this machine. A page can't choose the headers `Host`, `Origin`
//! and
//! `Sec-Fetch-Site`, so these tell whether a request comes from the own page. Programs send only `Host`.

use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use std::net::SocketAddr;

/// The host names by which a browser may reach this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// The address that it listens at, by plain HTTP. Names such as `localhost` are not included: they also mean other
    /// addresses, where a program of a slot could listen and give the page its own scripts.
    own: String,
    /// Names of a proxy, which speaks HTTPS with the browser.
    behind_proxy: Vec<String>,
}

/// Why a request is refused: a stable name, and the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    Host,
    Origin,
    Method,
    ContentType,
}

impl Denied {
    pub fn status(self) -> StatusCode {
        match self {
            Denied::Host | Denied::Origin => StatusCode::FORBIDDEN,
            Denied::Method => StatusCode::METHOD_NOT_ALLOWED,
            Denied::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Denied::Host => "host",
            Denied::Origin => "origin",
            Denied::Method => "method",
            Denied::ContentType => "content_type",
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Denied::Host => "the request names a host that this server does not have",
            Denied::Origin => "the request comes from another page",
            Denied::Method => "use GET to read, or POST with JSON to act",
            Denied::ContentType => "the body must be JSON: send Content-Type: application/json",
        }
    }
}

impl Hosts {
    /// The address that it listens at, and the names of proxies.
    pub fn new(own: SocketAddr, behind_proxy: &[String]) -> Hosts {
        Hosts {
            own: own.to_string(),
            behind_proxy: behind_proxy
                .iter()
                .map(|host| host.to_ascii_lowercase())
                .collect(),
        }
    }

    fn has(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.own == host || self.behind_proxy.contains(&host)
    }

    fn has_origin(&self, origin: &str) -> bool {
        let is_in = |scheme: &str, hosts: &[String]| {
            let host = origin.strip_prefix(scheme).map(str::to_ascii_lowercase);
            host.is_some_and(|host| hosts.contains(&host))
        };
        let own = std::slice::from_ref(&self.own);
        is_in("http://", own) || is_in("https://", &self.behind_proxy)
    }

    /// Checks whether this request may be processed.
    pub fn check(&self, request: &Parts) -> Result<(), Denied> {
        self.check_host(request)?;
        self.check_origin(request)?;
        match request.method {
            Method::GET => Ok(()),
            Method::POST => check_content_type(&request.headers),
            _ => Err(Denied::Method),
        }
    }

    fn check_host(&self, request: &Parts) -> Result<(), Denied> {
        let host = only(&request.headers, &HOST).ok_or(Denied::Host)?;
        // A request with an absolute URL has its host there too.
        let authority = request.uri.authority().map(|authority| authority.as_str());
        let both = [Some(host), authority];
        match both.into_iter().flatten().all(|host| self.has(host)) {
            true => Ok(()),
            false => Err(Denied::Host),
        }
    }

    fn check_origin(&self, request: &Parts) -> Result<(), Denied> {
        let headers = &request.headers;
        let is_allowed = match headers.contains_key(ORIGIN) {
            true => only(headers, &ORIGIN).is_some_and(|origin| self.has_origin(origin)),
            // A browser always names the origin of a POST.
            false => request.method != Method::POST || !is_of_browser(headers),
        };
        let site = HeaderName::from_static("sec-fetch-site");
        let is_same_site = match headers.contains_key(&site) {
            true => matches!(only(headers, &site), Some("same-origin" | "none")),
            false => true,
        };
        match is_allowed && is_same_site {
            true => Ok(()),
            false => Err(Denied::Origin),
        }
    }
}

fn is_of_browser(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| name.as_str().starts_with("sec-fetch-"))
}

/// Checks that the body is JSON, with or without parameters of the type. A form of another page can't have this type.
fn check_content_type(headers: &HeaderMap) -> Result<(), Denied> {
    let given = only(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = given.split(';').next().unwrap_or_default().trim();
    match kind.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Denied::ContentType),
    }
}

/// The value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<(), Denied> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let own = SocketAddr::from(([127, 0, 0, 1], 7777));
        Hosts::new(own, &["box.example.net".to_owned()]).check(&parts)
    }

    fn get(headers: &[(&str, &str)]) -> Result<(), Denied> {
        check("GET", "/api/events", headers)
    }

    const HERE: (&str, &str) = ("Host", "127.0.0.1:7777");
    const JSON: (&str, &str) = ("Content-Type", "application/json");

    #[test]
    fn only_the_listed_hosts_are_served() {
        for host in ["127.0.0.1:7777", "box.example.net", "BOX.example.NET"] {
            assert_eq!(get(&[("Host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.com:7777",
            "127.0.0.1.evil.com",
            "127.0.0.1.evil.com:7777",
            "localhost.evil.com:7777",
            "localhost:7777",
            "[::1]:7777",
            "localhost.:7777",
            "0.0.0.0:7777",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:7777@evil.com",
            "",
        ] {
            assert_eq!(get(&[("Host", host)]), Err(Denied::Host), "{host}");
        }
        assert_eq!(get(&[]), Err(Denied::Host));
        assert_eq!(get(&[HERE, HERE]), Err(Denied::Host));
        let absolute = |uri| check("GET", uri, &[HERE]);
        assert_eq!(absolute("http://evil.com/api/events"), Err(Denied::Host));
        assert_eq!(absolute("http://127.0.0.1:7777/api/events"), Ok(()));
    }

    #[test]
    fn other_pages_are_refused() {
        for origin in [
            "null",
            "http://localhost:3000",
            "https://127.0.0.1:7777",
            "http://127.0.0.1:7777.evil.com",
            "http://127.0.0.1:7777@evil.com",
            "http://evil.com:7777",
            "http://box.example.net",
            "",
        ] {
            let refused = get(&[HERE, ("Origin", origin)]);
            assert_eq!(refused, Err(Denied::Origin), "{origin}");
        }
        let ours = ("Origin", "http://127.0.0.1:7777");
        assert_eq!(get(&[HERE, ours]), Ok(()));
        assert_eq!(get(&[HERE, ours, ours]), Err(Denied::Origin));
        let proxied = ("Origin", "https://box.example.net");
        assert_eq!(get(&[("Host", "box.example.net"), proxied]), Ok(()));
        // Both have the same name, which was made to point here (DNS rebinding).
        let rebound = [
            ("Host", "evil.com:7777"),
            ("Origin", "http://evil.com:7777"),
        ];
        assert_eq!(get(&rebound), Err(Denied::Host));
        for site in ["cross-site", "same-site", "", "none, same-origin"] {
            let refused = get(&[HERE, ("Sec-Fetch-Site", site)]);
            assert_eq!(refused, Err(Denied::Origin), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(get(&[HERE, ("Sec-Fetch-Site", site)]), Ok(()), "{site}");
        }
    }

    #[test]
    fn a_browser_says_where_a_post_comes_from() {
        let post = |headers: &[(&str, &str)]| check("POST", "/api/send", headers);
        let fetch = ("Sec-Fetch-Mode", "cors");
        assert_eq!(post(&[HERE, JSON, fetch]), Err(Denied::Origin));
        let ours = ("Origin", "http://127.0.0.1:7777");
        assert_eq!(post(&[HERE, JSON, fetch, ours]), Ok(()));
        assert_eq!(post(&[HERE, JSON]), Ok(()));
    }

    #[test]
    fn only_posts_of_json_act() {
        let post = |kind| check("POST", "/api/send", &[HERE, ("Content-Type", kind)]);
        assert_eq!(post("application/json"), Ok(()));
        assert_eq!(post("Application/JSON; charset=utf-8"), Ok(()));
        for kind in [
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/x-www-form-urlencoded",
            "text/plain; application/json",
            "application/json-seq",
            "",
        ] {
            assert_eq!(post(kind), Err(Denied::ContentType), "{kind}");
        }
        let none = check("POST", "/api/send", &[HERE]);
        assert_eq!(none, Err(Denied::ContentType));
        for method in ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"] {
            let refused = check(method, "/api/send", &[HERE, JSON]);
            assert_eq!(refused, Err(Denied::Method), "{method}");
        }
    }
}
