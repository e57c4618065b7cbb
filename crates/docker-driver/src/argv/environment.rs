//! Environment variables of a container, whose values are never in a word.

use std::fmt;

use thiserror::Error;

/// Names that the docker client, the programs that it starts, or its language
/// runtime read for themselves. In the client's environment such a name would
/// change the call instead of the container.
const CLIENTS_OWN: &[&str] = &[
    "ALL_PROXY",
    "DEBUG",
    "DISPLAY",
    "FTP_PROXY",
    "HOME",
    "HOSTALIASES",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOCALDOMAIN",
    "LOGNAME",
    "NO_COLOR",
    "NO_PROXY",
    "PATH",
    "PWD",
    "RES_OPTIONS",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
    "ZONEINFO",
];

/// The same, for whole families of names.
const CLIENTS_OWN_PREFIXES: &[&str] = &[
    "BUILDKIT_",
    "BUILDX_",
    "DBUS_",
    "DOCKER_",
    "DYLD_",
    "GCONV_",
    "GNUPG",
    "GO",
    "LC_",
    "LD_",
    "MALLOC_",
    "MOBY_",
    "OTEL_",
    "PASSWORD_STORE_",
    "SSH_",
    "SSL_CERT_",
    "XDG_",
];

/// Longest line of an env file: the client reads it with a scanner whose
/// buffer is 64 KiB, the end of the line included.
const LONGEST_FILE_LINE: usize = 64 * 1024 - 2;

/// A text that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; for the place that hands it on, and no other.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// An environment variable of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    name: String,
    value: Secret,
}

/// Why a variable cannot be given to a container. Never holds the value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidEnvVar {
    /// The name is empty.
    #[error("the name of an environment variable is empty")]
    EmptyName,
    /// The name holds `=` or NUL.
    #[error("the environment name {name:?} holds `=` or NUL")]
    BadName {
        /// The name.
        name: String,
    },
    /// The value holds NUL.
    #[error("the value of the environment variable {name:?} holds NUL")]
    NulInValue {
        /// The name.
        name: String,
    },
    /// The docker client reads this name itself, so that only a file can
    /// carry it, and a file cannot carry this value.
    #[error("the docker client reads {name} itself, so its value has to go through a file: {why}")]
    UnfitForFile {
        /// The name.
        name: String,
        /// What a file cannot carry.
        why: &'static str,
    },
}

/// How a variable reaches the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// `--env=NAME`, with the value in the client's environment.
    Client,
    /// A line of a file with mode 0600, by `--env-file`.
    File,
}

impl EnvVar {
    /// Checks and takes a name and a value. Every value that has no NUL is
    /// carried exactly, but for names that the docker client reads itself
    /// (`PATH`, `HOME`, `DOCKER_HOST`, proxy variables and the like): those go
    /// through a file, which holds no line ends and 64 KiB a line.
    ///
    /// # Errors
    ///
    /// [`InvalidEnvVar`].
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Result<Self, InvalidEnvVar> {
        let (name, value) = (name.into(), value.into());
        if name.is_empty() {
            return Err(InvalidEnvVar::EmptyName);
        }
        if name.contains(['=', '\0']) {
            return Err(InvalidEnvVar::BadName { name });
        }
        if value.contains('\0') {
            return Err(InvalidEnvVar::NulInValue { name });
        }
        if is_clients_own(&name)
            && let Some(why) = unfit_for_file(&name, &value)
        {
            return Err(InvalidEnvVar::UnfitForFile { name, why });
        }
        Ok(Self {
            name,
            value: Secret(value),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value.
    pub fn value(&self) -> &Secret {
        &self.value
    }

    pub(super) fn road(&self) -> Road {
        if is_clients_own(&self.name) {
            Road::File
        } else {
            Road::Client
        }
    }
}

/// The text of an env file.
pub(super) fn file_text(variables: &[EnvVar]) -> Secret {
    let line = |variable: &EnvVar| format!("{}={}\n", variable.name, variable.value.0);
    Secret(variables.iter().map(line).collect())
}

/// Compared without regard to case, since proxy variables are read in both,
/// and since a Windows client would not tell the difference.
fn is_clients_own(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    CLIENTS_OWN.contains(&upper.as_str())
        || CLIENTS_OWN_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
}

fn unfit_for_file(name: &str, value: &str) -> Option<&'static str> {
    if value.contains('\n') {
        Some("its lines cannot hold a line feed")
    } else if value.ends_with('\r') {
        Some("its lines lose a carriage return at the end")
    } else if name.contains(char::is_whitespace) {
        Some("its lines cannot hold white space in a name")
    } else if name.len() + 1 + value.len() > LONGEST_FILE_LINE {
        Some("its lines end at 64 KiB")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn road(name: &str, value: &str) -> Road {
        EnvVar::new(name, value).unwrap().road()
    }

    #[test]
    fn a_value_that_is_plain_bytes_goes_by_the_clients_environment() {
        for value in [
            "",
            "x",
            "a=b",
            "'\"$x`",
            " lead and trail ",
            "two\nlines\r",
            "\u{e9}",
        ] {
            assert_eq!(road("TOKEN", value), Road::Client, "{value:?}");
        }
    }

    #[test]
    fn a_name_that_the_client_or_its_children_read_goes_by_a_file() {
        let own = "PATH HOME DOCKER_HOST docker_config HTTP_PROXY https_proxy No_Proxy SSH_AUTH_SOCK \
                   LD_PRELOAD GODEBUG SSL_CERT_FILE XDG_RUNTIME_DIR TMPDIR BUILDKIT_HOST TERM LC_ALL";
        for name in own.split_whitespace() {
            assert_eq!(road(name, "x"), Road::File, "{name}");
        }
        for name in [
            "DOCKERHOST",
            "MY_PATH",
            "GITLAB_TOKEN",
            "PYTHONPATH",
            "A.b-c d",
        ] {
            assert_eq!(road(name, "x"), Road::Client, "{name}");
        }
    }

    #[test]
    fn what_no_environment_can_hold_is_refused_by_name_and_without_its_value() {
        let refused = [
            (EnvVar::new("", "v4lue"), InvalidEnvVar::EmptyName),
            (
                EnvVar::new("A=B", "v4lue"),
                InvalidEnvVar::BadName { name: "A=B".into() },
            ),
            (
                EnvVar::new("A\0", "v4lue"),
                InvalidEnvVar::BadName { name: "A\0".into() },
            ),
            (
                EnvVar::new("A", "v4lue\0"),
                InvalidEnvVar::NulInValue { name: "A".into() },
            ),
        ];
        for (result, expected) in refused {
            let error = result.unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("v4lue"));
        }
    }

    #[test]
    fn what_only_a_file_may_carry_and_a_file_cannot_is_refused() {
        let long = "x".repeat(64 * 1024);
        for value in ["a\nb", "\n", "ends\r", &long] {
            let error = EnvVar::new("PATH", value).unwrap_err();
            assert!(matches!(&error, InvalidEnvVar::UnfitForFile { name, .. } if name == "PATH"));
            assert!(EnvVar::new("TOKEN", value).is_ok());
        }
        assert!(EnvVar::new("PATH", &long["PATH=".len() + 2..]).is_ok());
        assert!(EnvVar::new("DOCKER_A B", "x").is_err());
    }

    #[test]
    fn a_secret_is_shown_nowhere() {
        let variable = EnvVar::new("A", "v4lue").unwrap();
        assert_eq!(
            format!("{variable:?}"),
            "EnvVar { name: \"A\", value: (secret) }"
        );
        assert_eq!(variable.value().reveal(), "v4lue");
    }
}
