//! The HTTP client. The only module that names ureq.

use super::PushError;
use crate::core::alerts::Post;
use crate::core::text::hidden::Hidden;

#[cfg(feature = "push")]
pub use with_ureq::HttpClient;
#[cfg(not(feature = "push"))]
pub use without::HttpClient;

#[cfg(feature = "push")]
mod with_ureq {
    use super::*;
    use std::io::{self, BufRead, BufReader, Read};
    use std::time::Duration;
    use ureq::http::StatusCode;

    /// The timeout of a request, from the lookup of the name to the last byte of the answer.
    const LONGEST: Duration = Duration::from_secs(10);
    const CONNECTING: Duration = Duration::from_secs(5);
    /// ntfy sends a line at least every 45 s.
    const SILENCE: Duration = Duration::from_secs(120);
    /// The maximum bytes of a message of ntfy, as a JSON line.
    const MAX_LINE: u64 = 16 << 10;
    /// The maximum bytes of an answer's head, which is short; the body is not read.
    const MAX_HEAD: usize = 16 << 10;

    /// The HTTP client. It follows no redirect, so that only the addresses in slots.toml are used.
    #[derive(Debug)]
    pub struct HttpClient(ureq::Agent);

    impl HttpClient {
        pub fn new() -> HttpClient {
            let config = ureq::Agent::config_builder()
                .timeout_global(Some(LONGEST))
                .timeout_connect(Some(CONNECTING))
                .max_redirects(0)
                .max_redirects_will_error(false)
                .http_status_as_error(false)
                .max_response_header_size(MAX_HEAD)
                .user_agent(concat!("missiond/", env!("CARGO_PKG_VERSION")))
                .build();
            HttpClient(config.new_agent())
        }

        pub fn post(&self, post: &Post) -> Result<(), PushError> {
            let mut request = self.0.post(post.url.reveal());
            if let Some(token) = &post.token {
                request = request.header("Authorization", bearer(token));
            }
            let sent = request
                .content_type("application/json")
                .send(post.body.reveal().as_bytes());
            judge(sent.map_err(|error| in_words(&error))?.status())
        }

        /// The lines of an answer that continues until one side ends it.
        pub fn lines(&self, url: &Hidden, token: Option<&Hidden>) -> Result<Lines, PushError> {
            let request = self.get(url, token).config().timeout_global(None);
            let request = request.timeout_recv_response(Some(LONGEST));
            let answer = request.timeout_per_read(Some(SILENCE)).build().call();
            let answer = answer.map_err(|error| in_words(&error))?;
            judge(answer.status())?;
            let reader = BufReader::new(answer.into_body().into_reader());
            Ok(Lines { reader })
        }

        /// Tells whether the server refuses reads of this address with this token.
        pub fn is_refused(&self, url: &Hidden, token: Option<&Hidden>) -> Result<bool, PushError> {
            let answer = self.get(url, token).call();
            let status = answer.map_err(|error| in_words(&error))?.status();
            Ok(matches!(status.as_u16(), 401 | 403))
        }

        fn get(
            &self,
            url: &Hidden,
            token: Option<&Hidden>,
        ) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
            let request = self.0.get(url.reveal());
            match token {
                Some(token) => request.header("Authorization", bearer(token)),
                None => request,
            }
        }
    }

    /// The lines of an answer; the bytes of each are bounded.
    pub struct Lines {
        reader: BufReader<ureq::BodyReader<'static>>,
    }

    impl Iterator for Lines {
        type Item = Result<String, PushError>;

        fn next(&mut self) -> Option<Result<String, PushError>> {
            let mut line = Vec::new();
            let read = (&mut self.reader)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line);
            match read {
                Ok(0) => None,
                Ok(_) if line.ends_with(b"\n") => {
                    Some(Ok(String::from_utf8_lossy(&line).into_owned()))
                }
                Ok(_) => Some(Err(PushError::passing(
                    "the server sent a line without an end",
                ))),
                Err(error) => Some(Err(PushError::passing(by_kind(&error)))),
            }
        }
    }

    fn bearer(token: &Hidden) -> String {
        format!("Bearer {}", token.reveal())
    }

    fn judge(status: StatusCode) -> Result<(), PushError> {
        let said = |text: &str| format!("the server answered {}{text}", status.as_u16());
        match status.as_u16() {
            200..=299 => Ok(()),
            300..=399 => Err(PushError::lasting(said(
                ", a redirect, which is not followed",
            ))),
            401 | 403 => Err(PushError::lasting(said(
                ": the address or the token is not allowed",
            ))),
            404 | 410 => Err(PushError::lasting(said(
                ": there is nothing at the address",
            ))),
            408 | 429 | 500..=599 => Err(PushError::passing(said(""))),
            _ => Err(PushError::lasting(said(""))),
        }
    }

    /// The error as text, without the address, which some errors have in their text.
    fn in_words(error: &ureq::Error) -> PushError {
        use ureq::Error;
        match error {
            Error::Timeout(_) => {
                PushError::passing(format!("no answer within {} s", LONGEST.as_secs()))
            }
            Error::HostNotFound => PushError::passing("the name of the server is not known"),
            Error::ConnectionFailed => PushError::passing("no connection to the server"),
            // An error of TLS may come as invalid data.
            Error::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
                PushError::passing(by_kind(error))
            }
            Error::Io(_) | Error::Tls(_) | Error::Rustls(_) | Error::Pem(_) => {
                PushError::lasting("the server's certificate or its TLS is not accepted")
            }
            Error::BadUri(_) | Error::Http(_) => PushError::lasting("the address can't be used"),
            Error::InvalidProxyUrl | Error::ConnectProxyFailed(_) => {
                PushError::passing("the proxy of the environment does not answer as one")
            }
            _ => PushError::passing("the answer of the server is not HTTP"),
        }
    }

    fn by_kind(error: &io::Error) -> String {
        use io::ErrorKind::*;
        match error.kind() {
            ConnectionRefused => "the server refuses the connection".to_owned(),
            kind @ (ConnectionReset | ConnectionAborted | HostUnreachable | NetworkUnreachable
            | TimedOut | UnexpectedEof | BrokenPipe) => {
                format!("no connection to the server: {kind}")
            }
            _ => "no connection to the server, or its name is not known".to_owned(),
        }
    }
}

#[cfg(not(feature = "push"))]
mod without {
    use super::*;

    #[derive(Debug)]
    pub struct HttpClient;

    impl HttpClient {
        pub fn new() -> HttpClient {
            HttpClient
        }

        pub fn post(&self, _: &Post) -> Result<(), PushError> {
            Err(left_out())
        }

        pub fn lines(
            &self,
            _: &Hidden,
            _: Option<&Hidden>,
        ) -> Result<std::iter::Empty<Result<String, PushError>>, PushError> {
            Err(left_out())
        }

        pub fn is_refused(&self, _: &Hidden, _: Option<&Hidden>) -> Result<bool, PushError> {
            Err(left_out())
        }
    }

    fn left_out() -> PushError {
        PushError::lasting("this missiond was built without the feature `push`")
    }
}
