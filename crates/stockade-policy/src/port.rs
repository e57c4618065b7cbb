//! Ports of rules.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The port of a rule that names none.
pub const HTTPS: u16 = 443;

/// The ports of a rule: at least one, none twice, none 0. The default is 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(BTreeSet<u16>);

/// What is wrong with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortFault {
    /// There is none.
    #[error("there is no port after the colon; leave the colon out for port 443")]
    Empty,
    /// It is not a number from 1 to 65535 without leading zeros.
    #[error("a port is a number from 1 to 65535")]
    Number,
    /// The same port stands there twice.
    #[error("a port stands there twice")]
    Twice,
}

impl Ports {
    /// Ports from numbers.
    ///
    /// # Errors
    ///
    /// [`PortFault`] when there is none, one is 0, or one stands there twice.
    pub fn new(ports: impl IntoIterator<Item = u16>) -> Result<Self, PortFault> {
        let mut set = BTreeSet::new();
        for port in ports {
            if port == 0 {
                return Err(PortFault::Number);
            }
            if !set.insert(port) {
                return Err(PortFault::Twice);
            }
        }
        if set.is_empty() {
            return Err(PortFault::Empty);
        }
        Ok(Self(set))
    }

    /// Whether the port is one of them.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }

    /// The ports, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn overlap(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    pub(crate) fn is_default(&self) -> bool {
        self.0.len() == 1 && self.contains(HTTPS)
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self(BTreeSet::from([HTTPS]))
    }
}

impl FromStr for Ports {
    type Err = PortFault;

    fn from_str(text: &str) -> Result<Self, PortFault> {
        if text.is_empty() {
            return Err(PortFault::Empty);
        }
        let ports: Result<Vec<u16>, PortFault> = text.split(',').map(number).collect();
        Self::new(ports?)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, port) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{port}")?;
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<u16, PortFault> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if !plain {
        return Err(PortFault::Number);
    }
    text.parse().map_err(|_| PortFault::Number)
}
