//! The parts of HTTP/1.1 that Claude Code uses with its API, bounded, over any stream.

use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The maximum bytes of a header line; Claude Code's longest, the list of betas, has some hundred bytes.
const MAX_LINE: u64 = 16 * 1024;
/// The maximum of headers in one request; Claude Code sends about thirty.
const MAX_HEADERS: usize = 128;
/// The maximum bytes of a body. The Messages API itself refuses more than 32 MB.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    pub target: String,
    pub body: Vec<u8>,
    pub keep_alive: bool,
}

#[derive(Default)]
struct Headers {
    length: usize,
    chunked: bool,
    close: bool,
}

/// Reads one request; `None` if the client has no more.
pub async fn read_request<R>(reader: &mut R) -> io::Result<Option<HttpRequest>>
where
    R: AsyncBufRead + Unpin,
{
    let Some(first) = read_line(reader).await? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(bad("the request line has no method, target and version"));
    };
    let headers = read_headers(reader).await?;
    let body = if headers.chunked {
        read_chunks(reader).await?
    } else {
        read_exactly(reader, headers.length).await?
    };
    Ok(Some(HttpRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        body,
        keep_alive: version == "HTTP/1.1" && !headers.close,
    }))
}

async fn read_headers<R: AsyncBufRead + Unpin>(reader: &mut R) -> io::Result<Headers> {
    let mut headers = Headers::default();
    for _ in 0..MAX_HEADERS {
        let line = must(read_line(reader).await?)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a bad header"))?;
        headers.take(&name.to_ascii_lowercase(), value.trim())?;
    }
    Err(bad("too many headers"))
}

impl Headers {
    fn take(&mut self, name: &str, value: &str) -> io::Result<()> {
        match name {
            "content-length" => self.length = value.parse().map_err(|_| bad("a bad length"))?,
            "transfer-encoding" => self.chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => self.close = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
        Ok(())
    }
}

async fn read_chunks<R: AsyncBufRead + Unpin>(reader: &mut R) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = must(read_line(reader).await?)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| bad("a bad chunk size"))?;
        if size > MAX_BODY - body.len() {
            return Err(bad("the body is too long"));
        }
        if size == 0 {
            break;
        }
        body.extend(read_exactly(reader, size).await?);
        if !must(read_line(reader).await?)?.is_empty() {
            return Err(bad("a chunk is longer than its size"));
        }
    }
    // Trailers end, like headers, with an empty line.
    read_headers(reader).await?;
    Ok(body)
}

async fn read_exactly<R>(reader: &mut R, length: usize) -> io::Result<Vec<u8>>
where
    R: AsyncBufRead + Unpin,
{
    if length > MAX_BODY {
        return Err(bad("the body is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(body)
}

/// Reads one line without its end; `None` at the end of the stream.
async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    (&mut *reader)
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .await?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(bad("a line that does not end"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line)
        .map(Some)
        .map_err(|_| bad("a header that is not text"))
}

fn must(line: Option<String>) -> io::Result<String> {
    line.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Sends an answer with a JSON body; to a HEAD request only the headers.
pub async fn write_json<W>(writer: &mut W, status: u16, body: &Value, head: bool) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let text = body.to_string();
    let headers = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    writer.write_all(headers.as_bytes()).await?;
    if !head {
        writer.write_all(text.as_bytes()).await?;
    }
    writer.flush().await
}

/// Begins a stream of server-sent events.
pub async fn start_events<W: AsyncWrite + Unpin>(writer: &mut W) -> io::Result<()> {
    let headers = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                   cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
    writer.write_all(headers.as_bytes()).await?;
    writer.flush().await
}

pub async fn write_event<W: AsyncWrite + Unpin>(writer: &mut W, event: &Value) -> io::Result<()> {
    let kind = event["type"].as_str().unwrap_or("message");
    let text = format!("event: {kind}\ndata: {event}\n\n");
    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
    writer.write_all(chunk.as_bytes()).await?;
    writer.flush().await
}

pub async fn end_events<W: AsyncWrite + Unpin>(writer: &mut W) -> io::Result<()> {
    writer.write_all(b"0\r\n\r\n").await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn read(text: &str) -> io::Result<Vec<HttpRequest>> {
        // A buffer of three bytes splits every line and body somewhere.
        let mut reader = BufReader::with_capacity(3, text.as_bytes());
        let mut requests = Vec::new();
        while let Some(request) = read_request(&mut reader).await? {
            requests.push(request);
        }
        Ok(requests)
    }

    #[tokio::test]
    async fn requests_follow_each_other_on_one_connection() {
        let text = "POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}\
                    HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n";
        let requests = read(text).await.expect("two requests");
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].body, b"{}");
        assert!(requests[0].keep_alive);
        assert_eq!(requests[1].method, "HEAD");
        assert!(!requests[1].keep_alive);
    }

    #[tokio::test]
    async fn a_chunked_body_is_put_together() {
        let text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3;x=y\r\n{\"a\r\n4\r\n\":1}\r\n0\r\nTrailer: t\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let requests = read(text).await.expect("two requests");
        assert_eq!(requests[0].body, br#"{"a":1}"#);
        assert_eq!(requests[1].method, "GET");
    }

    #[tokio::test]
    async fn what_is_no_request_is_an_error() {
        let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(20_000));
        for text in [
            "nonsense\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
            &endless,
        ] {
            assert!(read(text).await.is_err(), "{text:.60}");
        }
    }
}
