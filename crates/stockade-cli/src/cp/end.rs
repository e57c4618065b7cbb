//! Which way a copy goes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::named::{Name, Target};

/// A copy, and the one sandbox at one of its ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the host.
    In {
        name: Name,
        sources: Vec<PathBuf>,
        to: Vec<u8>,
    },
    /// To the host.
    Out {
        name: Name,
        sources: Vec<Vec<u8>>,
        to: PathBuf,
    },
    /// From standard input.
    FromInput { name: Name, to: Vec<u8> },
    /// To standard output.
    ToOutput { name: Name, from: Vec<u8> },
}

/// One argument.
#[derive(Debug)]
enum End {
    Host(PathBuf),
    Standard,
    Sandbox(Name, Vec<u8>),
}

impl Direction {
    pub(crate) fn name(&self) -> &Name {
        match self {
            Self::In { name, .. }
            | Self::Out { name, .. }
            | Self::FromInput { name, .. }
            | Self::ToOutput { name, .. } => name,
        }
    }
}

/// The way that these arguments mean; the last is where to.
pub(crate) fn direction(paths: &[OsString]) -> Result<Direction, String> {
    let Some((to, sources)) = paths.split_last() else {
        return Err("nothing is named".to_owned());
    };
    let sources: Vec<End> = sources.iter().map(|path| end(path)).collect();
    match end(to) {
        End::Sandbox(name, to) => into(name, sources, to),
        End::Host(to) => {
            let (name, sources) = out_of(sources)?;
            Ok(Direction::Out { name, sources, to })
        }
        End::Standard => {
            let (name, mut sources) = out_of(sources)?;
            match (sources.pop(), sources.is_empty()) {
                (Some(from), true) => Ok(Direction::ToOutput { name, from }),
                _ => Err("standard output takes one file".to_owned()),
            }
        }
    }
}

/// What an argument names: `NAME:PATH`, where no slash comes before the colon.
fn end(argument: &OsStr) -> End {
    let bytes = argument.as_bytes();
    if bytes == b"-" {
        return End::Standard;
    }
    let named = if bytes.contains(&b':') {
        Target::parse(bytes).ok()
    } else {
        None
    };
    match named {
        Some(Target { name, path }) => End::Sandbox(name, path.unwrap_or_default()),
        None => End::Host(argument.into()),
    }
}

fn into(name: Name, sources: Vec<End>, to: Vec<u8>) -> Result<Direction, String> {
    if let [End::Standard] = sources[..] {
        return Ok(Direction::FromInput { name, to });
    }
    let hosts: Result<Vec<PathBuf>, String> = sources
        .into_iter()
        .map(|source| match source {
            End::Host(path) => Ok(path),
            End::Standard => Err("standard input (`-`) is copied alone".to_owned()),
            End::Sandbox(..) => Err(
                "one end is on the host: copy out of the one sandbox and then into the other; a file of the host whose name has a colon is written ./NAME:REST".to_owned(),
            ),
        })
        .collect();
    Ok(Direction::In {
        name,
        sources: hosts?,
        to,
    })
}

fn out_of(sources: Vec<End>) -> Result<(Name, Vec<Vec<u8>>), String> {
    let mut common: Option<Name> = None;
    let mut paths = Vec::new();
    for source in sources {
        let End::Sandbox(name, path) = source else {
            return Err("no end is in a sandbox; write NAME:PATH for one of them".to_owned());
        };
        match &common {
            Some(other) if *other != name => {
                return Err("all sources are of one sandbox; copy from each by itself".to_owned());
            }
            _ => common = Some(name),
        }
        paths.push(path);
    }
    match common {
        Some(name) => Ok((name, paths)),
        None => Err("nothing is named".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(paths: &[&str]) -> Result<Direction, String> {
        direction(&paths.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn name() -> Name {
        Name::parse("box").unwrap()
    }

    #[test]
    fn the_end_with_a_name_and_a_colon_is_the_sandbox() {
        let into = parsed(&["a", "./b:c", "/d:e", "box:"]).unwrap();
        let sources = ["a", "./b:c", "/d:e"].map(PathBuf::from).to_vec();
        assert_eq!(
            into,
            Direction::In {
                name: name(),
                sources,
                to: Vec::new()
            }
        );
        let out = parsed(&["box:a:b", "box:*.png", "dir"]).unwrap();
        let sources = vec![b"a:b".to_vec(), b"*.png".to_vec()];
        assert_eq!(
            out,
            Direction::Out {
                name: name(),
                sources,
                to: "dir".into()
            }
        );
    }

    #[test]
    fn a_dash_is_standard_input_or_output_for_one_file() {
        let into = parsed(&["-", "box:x"]).unwrap();
        assert_eq!(
            into,
            Direction::FromInput {
                name: name(),
                to: b"x".to_vec()
            }
        );
        let out = parsed(&["box:x", "-"]).unwrap();
        assert_eq!(
            out,
            Direction::ToOutput {
                name: name(),
                from: b"x".to_vec()
            }
        );
        assert!(parsed(&["-", "a", "box:"]).is_err());
        assert!(parsed(&["box:a", "box:b", "-"]).is_err());
    }

    #[test]
    fn copies_between_two_hosts_or_two_sandboxes_are_refused_with_what_to_do() {
        for paths in [
            &["a", "b"][..],
            &["box:a", "other:b"],
            &["box:a", "other:b", "c"],
            &["a", "box:b", "c"],
            &["-", "-"],
        ] {
            let fault = parsed(paths).unwrap_err();
            assert!(
                fault.contains("one") || fault.contains("NAME:PATH"),
                "{paths:?}: {fault}"
            );
        }
    }
}
