//! Which host a URL leads to, and which hosts a rule names.

/// A host in a rule: its labels from the right. `*` matches one label; a leading `*.` matches one or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    labels: Vec<String>,
}

impl HostPattern {
    pub fn parse(text: &str) -> Result<HostPattern, String> {
        let host = text.trim_end_matches('.').to_ascii_lowercase();
        let labels: Vec<String> = host.split('.').map(str::to_owned).collect();
        if labels.iter().all(|label| label == "*") {
            return Err("this names every host; write `WebFetch` for that, or a host".to_owned());
        }
        match labels
            .iter()
            .find(|label| label.as_str() != "*" && !is_label(label))
        {
            Some(_) => Err(format!(
                "`{text}` is not a host name; write it like `docs.rs` or `*.example.com`, without scheme, port or path"
            )),
            None => Ok(HostPattern { labels }),
        }
    }

    pub fn matches(&self, host: &str) -> bool {
        let labels: Vec<&str> = host.split('.').collect();
        let (open, pattern) = match self.labels.split_first() {
            Some((first, rest)) if first == "*" => (true, rest),
            _ => (false, self.labels.as_slice()),
        };
        let fits = match open {
            true => labels.len() > pattern.len(),
            false => labels.len() == pattern.len(),
        };
        fits && labels
            .iter()
            .rev()
            .zip(pattern.iter().rev())
            .all(|(label, wanted)| wanted == "*" || wanted == label)
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The host of a URL, in lower case and without a trailing dot. Only plain `http` and `https` URLs have one here: `None` for a
/// user name, an unusual character or a look-alike, so that a person decides.
pub fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    let host = host.strip_suffix('.').unwrap_or(host);
    let plain = host.split('.').all(is_label) && port.bytes().all(|b| b.is_ascii_digit());
    let unambiguous =
        !url.contains('\\') && !url.chars().any(|c| c.is_whitespace() || c.is_control());
    (plain && unambiguous).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let pattern = HostPattern::parse(pattern).expect("a good pattern");
        host_of(url).is_some_and(|host| pattern.matches(&host))
    }

    #[test]
    fn a_plain_host_is_only_itself() {
        assert!(matches("example.com", "https://example.com/a?b#c"));
        assert!(matches("example.com", "https://EXAMPLE.com./"));
        assert!(matches("example.com", "http://example.com:8080"));
        for other in [
            "https://example.com.evil.io",
            "https://example.com@evil.io",
            "https://evil.io/#example.com",
            "https://evil.io?example.com",
            "https://evil.io\\@example.com",
            "https://ехample.com",
            "https://xn--xample-2of.com",
            "https://www.example.com",
            "ftp://example.com",
            "example.com",
            "https://",
        ] {
            assert!(!matches("example.com", other), "{other}");
        }
    }

    #[test]
    fn a_star_label_is_a_subdomain_but_not_the_apex() {
        assert!(matches("*.example.com", "https://a.example.com"));
        assert!(matches("*.example.com", "https://a.b.example.com"));
        assert!(!matches("*.example.com", "https://example.com"));
        assert!(!matches("*.example.com", "https://evilexample.com"));
        assert!(!matches("example.*", "https://example.evil.com"));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "*",
            "",
            "https://example.com",
            "example.com/path",
            "*.*",
            "exa*mple.com",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
