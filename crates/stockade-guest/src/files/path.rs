//! The paths of items.

use stockade_wire::files::FileFault;

/// Longest name, `NAME_MAX` of `linux/limits.h`.
const NAME: usize = 255;

/// Longest path, `PATH_MAX` of `linux/limits.h` less the terminating NUL.
pub(super) const PATH: usize = 4095;

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// The directory that it is relative to.
    Itself,
    Below(Below<'a>),
}

/// A path of one or more names, none of which leads upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Below<'a>(&'a [u8]);

impl<'a> Place<'a> {
    /// Reads a path of the form that [`stockade_wire::files`] describes.
    pub(super) fn parse(path: &'a [u8]) -> Result<Self, FileFault> {
        if path == b"." {
            return Ok(Self::Itself);
        }
        let is_name = |name: &[u8]| {
            (1..=NAME).contains(&name.len()) && !name.contains(&0) && !matches!(name, b"." | b"..")
        };
        if path.len() > PATH || !path.split(|byte| *byte == b'/').all(is_name) {
            return Err(FileFault::InvalidPath);
        }
        Ok(Self::Below(Below(path)))
    }

    /// The path, unless it names the work directory itself.
    pub(super) fn below(self) -> Result<Below<'a>, FileFault> {
        match self {
            Self::Itself => Err(FileFault::WorkDir),
            Self::Below(below) => Ok(below),
        }
    }
}

impl<'a> Below<'a> {
    pub(super) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Everything but the last name, when there is more than one.
    pub(super) fn parent(self) -> Option<Self> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        self.0.get(..slash).map(Self)
    }

    /// The last name.
    pub(super) fn leaf(self) -> &'a [u8] {
        let mut names = self.0.rsplit(|byte| *byte == b'/');
        names.next().unwrap_or_default()
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// Every beginning of it that ends with a whole name, the shortest first.
    pub(super) fn beginnings(self) -> impl Iterator<Item = &'a [u8]> {
        let Self(path) = self;
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(move |end| path.get(..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(path: &str) -> Below<'_> {
        Place::parse(path.as_bytes()).unwrap().below().unwrap()
    }

    #[test]
    fn a_path_is_names_with_one_slash_between_two() {
        for path in ["a", "a/b", "...", "a/..b", "\\", " ", "\u{1}", ".a"] {
            assert_eq!(below(path).as_bytes(), path.as_bytes());
        }
        assert_eq!(Place::parse(b"."), Ok(Place::Itself));
        assert_eq!(Place::Itself.below(), Err(FileFault::WorkDir));
        let long = "x".repeat(NAME + 1);
        let deep = "x/".repeat(PATH / 2) + "xx";
        for path in [
            "", "/", "/a", "a/", "a//b", "..", "a/..", "../a", "./a", "a/.", "a\0b", &long, &deep,
        ] {
            assert_eq!(
                Place::parse(path.as_bytes()),
                Err(FileFault::InvalidPath),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_path_knows_its_parent_its_leaf_and_its_beginnings() {
        assert_eq!(below("a").parent(), None);
        assert_eq!(below("a/b/c").parent(), Some(below("a/b")));
        assert_eq!(below("a/b/c").leaf(), b"c");
        assert_eq!(below("a").leaf(), b"a");
        let beginnings: Vec<&[u8]> = below("a/bb/c").beginnings().collect();
        assert_eq!(beginnings, [&b"a"[..], b"a/bb", b"a/bb/c"]);
    }
}
