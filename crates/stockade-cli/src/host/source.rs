//! `SRC[:DST]`: a file or a directory of the host, and where it goes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use stockade::GuestPath;
use stockade::spec::WorkDir;

/// What is sent, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// On the host.
    pub(crate) host: PathBuf,
    /// In the sandbox.
    pub(crate) guest: GuestPath,
}

impl Source {
    /// Takes an argument apart. The last colon separates, unless something of
    /// the whole name exists.
    pub(crate) fn parse(argument: &OsStr, work_dir: &WorkDir) -> Result<Self, String> {
        let (host, to) = split(argument);
        let guest = place(&host, to.as_deref(), work_dir)?;
        Ok(Self { host, guest })
    }

    /// A source that goes to a place which is a directory already, or is to
    /// be one: it keeps its own name there.
    pub(crate) fn within(host: &Path, directory: &GuestPath) -> Result<Self, String> {
        let guest = match own_name(host)? {
            Some(name) => join(directory, &name, host)?,
            None => directory.clone(),
        };
        Ok(Self {
            host: host.to_owned(),
            guest,
        })
    }

    /// A source that goes to exactly this place.
    pub(crate) fn exactly(host: &Path, guest: GuestPath) -> Self {
        Self {
            host: host.to_owned(),
            guest,
        }
    }
}

/// The parts around the separating colon.
fn split(argument: &OsStr) -> (PathBuf, Option<Vec<u8>>) {
    let bytes = argument.as_bytes();
    let colon = bytes.iter().rposition(|&byte| byte == b':');
    match colon {
        Some(colon) if Path::new(argument).symlink_metadata().is_err() => {
            let host = OsString::from_vec(bytes[..colon].to_vec());
            (host.into(), Some(bytes[colon + 1..].to_vec()))
        }
        _ => (argument.into(), None),
    }
}

fn place(host: &Path, to: Option<&[u8]>, work_dir: &WorkDir) -> Result<GuestPath, String> {
    if host.as_os_str().is_empty() {
        return Err("a source has no name; write SRC or SRC:DST".to_owned());
    }
    let Some(to) = to else {
        return Source::within(host, &GuestPath::work_dir()).map(|source| source.guest);
    };
    let shown = host.display();
    let guest = GuestPath::resolve(work_dir, to)
        .map_err(|refusal| format!("the destination of `{shown}`: {refusal}"))?;
    if to.ends_with(b"/") || guest.is_work_dir() {
        return Source::within(host, &guest).map(|source| source.guest);
    }
    Ok(guest)
}

/// The name that a source keeps; none when it stands for its contents.
fn own_name(host: &Path) -> Result<Option<Vec<u8>>, String> {
    let bytes = host.as_os_str().as_bytes();
    if bytes == b"." || bytes.ends_with(b"/.") {
        return Ok(None);
    }
    match host.file_name() {
        Some(name) => Ok(Some(name.as_bytes().to_vec())),
        None => Err(format!(
            "`{}` has no name of its own; say where it goes with SRC:DST",
            host.display()
        )),
    }
}

fn join(directory: &GuestPath, name: &[u8], host: &Path) -> Result<GuestPath, String> {
    GuestPath::new(name)
        .and_then(|name| directory.join(&name))
        .map_err(|refusal| format!("the name of `{}`: {refusal}", host.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade::{Image, SandboxSpec};

    fn parsed(argument: &str) -> Result<(String, String), String> {
        let spec = SandboxSpec::builder("t")
            .image(Image::reference("i"))
            .build()
            .unwrap();
        let source = Source::parse(OsStr::new(argument), spec.work_dir())?;
        Ok((source.host.display().to_string(), source.guest.to_string()))
    }

    fn is(argument: &str, host: &str, guest: &str) {
        assert_eq!(
            parsed(argument),
            Ok((host.to_owned(), guest.to_owned())),
            "{argument}"
        );
    }

    #[test]
    fn a_source_keeps_its_name_unless_it_is_told_another() {
        is("data/in.csv", "data/in.csv", "in.csv");
        is("data/in.csv:a/b.csv", "data/in.csv", "a/b.csv");
        is("data/in.csv:/work/b.csv", "data/in.csv", "b.csv");
        is("data/in.csv:a/", "data/in.csv", "a/in.csv");
        is("data/in.csv:.", "data/in.csv", "in.csv");
        is("data/in.csv:/work", "data/in.csv", "in.csv");
        is("data/", "data/", "data");
    }

    #[test]
    fn a_directory_with_a_dot_stands_for_its_contents() {
        is("data/.", "data/.", ".");
        is(".", ".", ".");
        is("data/.:in", "data/.", "in");
        is("data/.:in/", "data/.", "in");
    }

    #[test]
    fn the_last_colon_separates_unless_the_whole_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a:b");
        let text = path.display().to_string();
        is(&text, &folder.path().join("a").display().to_string(), "b");
        std::fs::write(&path, "").unwrap();
        is(&text, &text, "a:b");
        is(&format!("{text}:c"), &text, "c");
    }

    #[test]
    fn places_outside_the_work_directory_are_refused_with_the_source() {
        for bad in [
            "x:", "x:..", "x:../y", "x:/etc/y", "x:a\\b", "", ":y", "..", "/",
        ] {
            let refused = parsed(bad);
            assert!(refused.is_err(), "{bad}: {refused:?}");
        }
    }
}
