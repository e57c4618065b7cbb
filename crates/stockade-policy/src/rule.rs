//! One rule and its text form.

use std::fmt;
use std::str::FromStr;

use crate::{Host, HostFault, Method, MethodFault, PathFault, PathPattern, PortFault, Ports};

/// What one host may be asked: a host, its ports, and optionally the methods,
/// the paths and the credential.
///
/// # Text form
///
/// `[METHOD,…] [https://]host[:port,…][/path [/path …]]`, such as `pypi.org`,
/// `*.example.com:8443` and `GET,HEAD https://api.example.com/v1/* /status`.
/// [`fmt::Display`] writes it and [`FromStr`] reads it back to an equal rule,
/// but for the credential's audience, which has no text form: it is for programs.
///
/// ```
/// use stockade_policy::EgressRule;
///
/// let rule: EgressRule = "GET,HEAD https://api.example.com/v1/* /status".parse()?;
/// assert_eq!(rule, EgressRule::new("api.example.com")?
///     .with_methods(["GET", "HEAD"])?
///     .with_paths(["/v1/*", "/status"])?);
/// assert!("GET api.example.com/../admin".parse::<EgressRule>().is_err());
/// # Ok::<(), stockade_policy::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    host: Host,
    ports: Ports,
    methods: Option<Vec<Method>>,
    paths: Option<Vec<PathPattern>>,
    authority: Option<Audience>,
}

/// The audience of a credential that the proxy sets: an opaque string of the
/// host's, not empty, without spaces or control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Audience(String);

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The host.
    #[error("host {host:?}: {fault}")]
    Host {
        /// As it was written.
        host: String,
        /// What is wrong.
        fault: HostFault,
    },
    /// A port.
    #[error("ports {ports:?}: {fault}")]
    Ports {
        /// As they were written.
        ports: String,
        /// What is wrong.
        fault: PortFault,
    },
    /// A method.
    #[error("method {method:?}: {fault}")]
    Method {
        /// As it was written.
        method: String,
        /// What is wrong.
        fault: MethodFault,
    },
    /// A path.
    #[error("path {path:?}: {fault}")]
    Path {
        /// As it was written.
        path: String,
        /// What is wrong.
        fault: PathFault,
    },
    /// The audience of a credential.
    #[error("authority: {0}")]
    Audience(AudienceFault),
    /// A credential on a wildcard host.
    #[error("authority: {host} is a wildcard; a credential goes to one host that is named in full")]
    AudienceNeedsHost {
        /// The host.
        host: String,
    },
    /// A scheme other than `https`.
    #[error("scheme {scheme:?}: only https is served; leave the scheme out or write https://")]
    Scheme {
        /// As it was written.
        scheme: String,
    },
    /// A user name before the host.
    #[error("a rule names a host without user name or password; leave out what stands before `@`")]
    UserInfo,
    /// Text after the methods, host and paths that is none of them.
    #[error("{text:?} is neither a host nor a path; write `METHOD,… host:port/path /path …`")]
    Form {
        /// The text.
        text: String,
    },
}

/// What is wrong with an audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AudienceFault {
    /// There is none.
    #[error("the audience is empty; leave it out for no credential")]
    Empty,
    /// A space or a control character.
    #[error("{0:?} cannot stand in an audience")]
    Character(char),
    /// It is longer than 1024 bytes.
    #[error("the audience is longer than 1024 bytes")]
    Long,
}

impl EgressRule {
    /// Every method and path of a host on port 443.
    ///
    /// # Errors
    ///
    /// [`RuleError::Host`].
    pub fn new(host: &str) -> Result<Self, RuleError> {
        let parsed = host.parse().map_err(|fault| RuleError::Host {
            host: excerpt(host),
            fault,
        })?;
        Ok(Self {
            host: parsed,
            ports: Ports::default(),
            methods: None,
            paths: None,
            authority: None,
        })
    }

    /// Sets the ports; 443 otherwise.
    ///
    /// # Errors
    ///
    /// [`RuleError::Ports`].
    pub fn with_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Result<Self, RuleError> {
        let ports: Vec<u16> = ports.into_iter().collect();
        self.ports = Ports::new(ports.iter().copied()).map_err(|fault| RuleError::Ports {
            ports: excerpt(&format!("{ports:?}")),
            fault,
        })?;
        Ok(self)
    }

    /// Restricts the methods; every one otherwise.
    ///
    /// # Errors
    ///
    /// [`RuleError::Method`], also for none or one twice.
    pub fn with_methods<'m>(
        mut self,
        methods: impl IntoIterator<Item = &'m str>,
    ) -> Result<Self, RuleError> {
        let mut parsed: Vec<Method> = Vec::new();
        let wrong = |text: &str, fault| RuleError::Method {
            method: excerpt(text),
            fault,
        };
        for text in methods {
            let method = text.parse().map_err(|fault| wrong(text, fault))?;
            if parsed.contains(&method) {
                return Err(wrong(text, MethodFault::Twice));
            }
            parsed.push(method);
        }
        if parsed.is_empty() {
            return Err(wrong("", MethodFault::Empty));
        }
        parsed.sort_unstable();
        self.methods = Some(parsed);
        Ok(self)
    }

    /// Restricts the paths; every one otherwise.
    ///
    /// # Errors
    ///
    /// [`RuleError::Path`], also for none or one twice.
    pub fn with_paths<'p>(
        mut self,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, RuleError> {
        let mut parsed: Vec<PathPattern> = Vec::new();
        let wrong = |text: &str, fault| RuleError::Path {
            path: excerpt(text),
            fault,
        };
        for text in paths {
            let path = text.parse().map_err(|fault| wrong(text, fault))?;
            if parsed.contains(&path) {
                return Err(wrong(text, PathFault::Twice));
            }
            parsed.push(path);
        }
        if parsed.is_empty() {
            return Err(wrong("", PathFault::Relative));
        }
        parsed.sort_unstable();
        self.paths = Some(parsed);
        Ok(self)
    }

    /// Has the proxy set a credential for this audience; the host must be
    /// named in full.
    ///
    /// # Errors
    ///
    /// [`RuleError::Audience`] and [`RuleError::AudienceNeedsHost`].
    pub fn with_authority(mut self, audience: &str) -> Result<Self, RuleError> {
        let audience = audience.parse().map_err(RuleError::Audience)?;
        if self.host.is_wildcard() {
            return Err(RuleError::AudienceNeedsHost {
                host: self.host.to_string(),
            });
        }
        self.authority = Some(audience);
        Ok(self)
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The ports.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The methods, sorted; `None` is every one.
    #[must_use]
    pub fn methods(&self) -> Option<&[Method]> {
        self.methods.as_deref()
    }

    /// The paths, sorted; `None` is every one.
    #[must_use]
    pub fn paths(&self) -> Option<&[PathPattern]> {
        self.paths.as_deref()
    }

    /// The audience of the credential that the proxy sets, if any.
    #[must_use]
    pub fn authority(&self) -> Option<&Audience> {
        self.authority.as_ref()
    }
}

impl Audience {
    /// The audience.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Audience {
    type Err = AudienceFault;

    fn from_str(text: &str) -> Result<Self, AudienceFault> {
        if text.is_empty() {
            return Err(AudienceFault::Empty);
        }
        let stray = |c: &char| c.is_whitespace() || c.is_control();
        if let Some(c) = text.chars().find(stray) {
            return Err(AudienceFault::Character(c));
        }
        if text.len() > 1024 {
            return Err(AudienceFault::Long);
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for EgressRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let (methods, target) = match words.clone().next() {
            Some(second) if !second.starts_with('/') => {
                words.next();
                (Some(first), second)
            }
            _ => (None, first),
        };
        let mut rule = target_rule(target, words)?;
        if let Some(methods) = methods {
            rule = rule.with_methods(methods.split(','))?;
        }
        Ok(rule)
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(methods) = &self.methods {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            write!(f, "{} ", names.join(","))?;
        }
        if self.paths.is_some() {
            f.write_str("https://")?;
        }
        write!(f, "{}", self.host)?;
        if !self.ports.is_default() {
            write!(f, ":{}", self.ports)?;
        }
        let paths = self.paths.as_deref().unwrap_or_default();
        let names: Vec<&str> = paths.iter().map(PathPattern::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

/// The rule of `[https://]host[:ports][/path]` and the paths that follow it.
fn target_rule<'t>(
    target: &'t str,
    more: impl Iterator<Item = &'t str>,
) -> Result<EgressRule, RuleError> {
    let bare = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
        Some((scheme, _)) => {
            return Err(RuleError::Scheme {
                scheme: excerpt(scheme),
            });
        }
        None => target,
    };
    let (authority, path) = match bare.find('/') {
        Some(at) => (&bare[..at], Some(&bare[at..])),
        None => (bare, None),
    };
    if authority.contains('@') {
        return Err(RuleError::UserInfo);
    }
    let (host, ports) = match authority.split_once(':') {
        Some((host, ports)) => (host, Some(ports)),
        None => (authority, None),
    };
    let mut rule = EgressRule::new(host)?;
    if let Some(ports) = ports {
        rule.ports = ports.parse().map_err(|fault| RuleError::Ports {
            ports: excerpt(ports),
            fault,
        })?;
    }
    let more: Vec<&str> = more.collect();
    match path {
        Some(path) => rule.with_paths(std::iter::once(path).chain(more)),
        None => match more.first() {
            Some(text) => Err(RuleError::Form {
                text: excerpt(text),
            }),
            None => Ok(rule),
        },
    }
}

/// At most 80 characters of a caller's text, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> EgressRule {
        text.parse().unwrap()
    }

    fn fault(text: &str) -> RuleError {
        text.parse::<EgressRule>().unwrap_err()
    }

    #[test]
    fn a_bare_host_is_everything_on_port_443() {
        let rule = parse("pypi.org");
        assert_eq!(rule, EgressRule::new("pypi.org").unwrap());
        assert!(rule.methods().is_none() && rule.paths().is_none() && rule.authority().is_none());
        assert_eq!(rule.ports().iter().collect::<Vec<_>>(), [443]);
        assert_eq!(rule, parse("https://pypi.org"));
        assert_eq!(rule, parse("  HTTPS://pypi.org:443 "));
    }

    #[test]
    fn the_order_of_methods_and_paths_does_not_matter() {
        assert_eq!(parse("GET,HEAD a.test/x /y"), parse("HEAD,GET a.test/y /x"));
    }

    #[test]
    fn text_forms_are_canonical() {
        for (text, canonical) in [
            ("*.example.com:8443", "*.example.com:8443"),
            ("a.test:8443,443", "a.test:443,8443"),
            ("GET a.test/v1/*", "GET https://a.test/v1/*"),
            ("GET  https://a.test/b   /a", "GET https://a.test/a /b"),
            ("POST,GET a.test", "GET,POST a.test"),
        ] {
            assert_eq!(parse(text).to_string(), canonical);
        }
    }

    #[test]
    fn each_part_is_refused_by_its_own_name() {
        assert!(matches!(
            fault(""),
            RuleError::Host {
                fault: HostFault::Empty,
                ..
            }
        ));
        assert!(matches!(fault("a_b.test"), RuleError::Host { .. }));
        assert!(matches!(fault("[::1]"), RuleError::Host { .. }));
        assert!(matches!(
            fault("get a.test"),
            RuleError::Method {
                fault: MethodFault::LowerCase,
                ..
            }
        ));
        assert!(matches!(
            fault("GET,GET a.test"),
            RuleError::Method {
                fault: MethodFault::Twice,
                ..
            }
        ));
        assert!(matches!(
            fault(",GET a.test"),
            RuleError::Method {
                fault: MethodFault::Empty,
                ..
            }
        ));
        assert!(matches!(
            fault("a.test:"),
            RuleError::Ports {
                fault: PortFault::Empty,
                ..
            }
        ));
        for ports in ["0", "65536", "08", "+1", "1,,2", "a", "1-2"] {
            let fault = fault(&format!("a.test:{ports}"));
            assert!(
                matches!(
                    fault,
                    RuleError::Ports {
                        fault: PortFault::Number,
                        ..
                    }
                ),
                "{ports}: {fault}"
            );
        }
        assert!(matches!(
            fault("a.test:1,1"),
            RuleError::Ports {
                fault: PortFault::Twice,
                ..
            }
        ));
        assert!(matches!(fault("a.test/x?y"), RuleError::Path { .. }));
        assert!(matches!(
            fault("a.test/x /x"),
            RuleError::Path {
                fault: PathFault::Twice,
                ..
            }
        ));
        assert!(matches!(fault("http://a.test"), RuleError::Scheme { .. }));
        assert!(matches!(fault("u:p@a.test"), RuleError::UserInfo));
        assert!(matches!(fault("GET a.test /x"), RuleError::Form { .. }));
        assert!(matches!(fault("GET a.test b.test"), RuleError::Form { .. }));
    }

    #[test]
    fn a_credential_needs_a_host_named_in_full() {
        let rule = EgressRule::new("a.test").unwrap();
        let with = rule.with_authority("github").unwrap();
        assert_eq!(with.authority().map(Audience::as_str), Some("github"));
        let below = EgressRule::new("*.a.test").unwrap();
        assert!(matches!(
            below.with_authority("github"),
            Err(RuleError::AudienceNeedsHost { .. })
        ));
        for audience in ["", "a b", "a\n", "\u{a0}"] {
            let rule = EgressRule::new("a.test").unwrap();
            assert!(matches!(
                rule.with_authority(audience),
                Err(RuleError::Audience(_))
            ));
        }
    }

    #[test]
    fn messages_hold_no_more_than_an_excerpt_of_the_input() {
        let text = "é".repeat(100_000);
        assert!(fault(&text).to_string().len() < 1000);
    }
}
