//! What is to come out of a sandbox: paths, directories and patterns, and
//! where each lands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use globset::{Candidate, GlobBuilder, GlobMatcher};
use stockade::files::EntryKind;
use stockade::spec::WorkDir;
use stockade::{Call, Error, FileRefusal, GuestPath, ListRequest, Refusal, Sandbox};

use crate::host::Place;
use crate::unmet::Unmet;

/// One `PATH[:DEST]`.
#[derive(Debug)]
pub(crate) struct Output {
    /// As it was asked for, for people.
    asked: String,
    pattern: Pattern,
    to: Destination,
}

/// What of the sandbox.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// A file, or a directory with all that is in it.
    Path(GuestPath),
    /// The files below a directory whose names match.
    Glob {
        base: GuestPath,
        matcher: GlobMatcher,
        recursive: bool,
    },
}

/// Where on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Below this folder, at the same path as below the work directory.
    Mirror(PathBuf),
    /// In this folder, under its own name.
    Into(PathBuf),
    /// Exactly here.
    Exactly(PathBuf),
}

/// What there is of it.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) files: Vec<Wanted>,
    pub(crate) directories: Vec<Place>,
    /// What was asked for and cannot come, each with the reason.
    pub(crate) missing: Vec<Unmet>,
}

/// A file to bring.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) guest: GuestPath,
    pub(crate) size: u64,
    pub(crate) place: Place,
}

impl Output {
    /// Takes an argument apart; the last colon separates.
    pub(crate) fn parse(
        argument: &OsStr,
        work_dir: &WorkDir,
        folder: &Path,
    ) -> Result<Self, String> {
        let bytes = argument.as_bytes();
        let (path, to) = match bytes.iter().rposition(|&byte| byte == b':') {
            None => (bytes, Destination::Mirror(folder.to_owned())),
            Some(colon) => {
                let to = &bytes[colon + 1..];
                if to.is_empty() {
                    return Err(format!(
                        "`{}` ends with a colon; say where it goes",
                        argument.display()
                    ));
                }
                let place = folder.join(OsString::from_vec(to.to_vec()));
                (&bytes[..colon], Destination::of(place))
            }
        };
        Self::of(path, work_dir, to)
    }

    /// This path or pattern, to land there.
    pub(crate) fn of(path: &[u8], work_dir: &WorkDir, to: Destination) -> Result<Self, String> {
        let asked = String::from_utf8_lossy(path).into_owned();
        let pattern = Pattern::parse(path, work_dir).map_err(|why| format!("`{asked}`: {why}"))?;
        Ok(Self { asked, pattern, to })
    }

    /// What is in the way of a file whose place is known before the sandbox
    /// is asked, or of all that a pattern can bring.
    pub(crate) fn obstacle(&self, overwrite: bool) -> Option<Unmet> {
        let path = match &self.pattern {
            Pattern::Path(path) => path,
            Pattern::Glob { base, .. } => {
                let place = self.place_of_match(base, &GuestPath::work_dir()).ok()?;
                return place.obstacle_to_directory();
            }
        };
        let place = self.place(path, None).ok()?;
        // A directory may be there: whether one comes is not known yet.
        if place.path().is_dir() {
            return None;
        }
        place.obstacle(overwrite)
    }

    /// Where something lands: the path itself, or what is below it.
    fn place(&self, path: &GuestPath, below: Option<&GuestPath>) -> Result<Place, String> {
        let rest = below.into_iter().flat_map(GuestPath::names);
        match &self.to {
            Destination::Mirror(folder) => Place::below(folder, path.names().chain(rest)),
            Destination::Into(folder) => Place::below(folder, path.name().into_iter().chain(rest)),
            Destination::Exactly(place) => match below {
                None => Place::named(place),
                Some(_) => Place::below(place, rest),
            },
        }
    }

    /// Where a match of a pattern lands: patterns have no name of their own.
    fn place_of_match(&self, base: &GuestPath, below: &GuestPath) -> Result<Place, String> {
        match &self.to {
            Destination::Mirror(folder) => Place::below(folder, base.names().chain(below.names())),
            Destination::Into(folder) | Destination::Exactly(folder) => {
                Place::below(folder, below.names())
            }
        }
    }
}

impl Destination {
    /// What a user means by a path of the host: the place itself, or a folder
    /// that is there or is written with a slash.
    pub(crate) fn of(path: PathBuf) -> Self {
        let folder = path.as_os_str().as_bytes().ends_with(b"/") || path.is_dir();
        if folder {
            Self::Into(path)
        } else {
            Self::Exactly(path)
        }
    }
}

impl Pattern {
    pub(crate) fn parse(path: &[u8], work_dir: &WorkDir) -> Result<Self, String> {
        let Some(special) = path.iter().position(|byte| b"*?[{".contains(byte)) else {
            let path = GuestPath::resolve(work_dir, path).map_err(|refusal| refusal.to_string())?;
            return Ok(Self::Path(path));
        };
        let slash = path[..special].iter().rposition(|&byte| byte == b'/');
        let (base, rest) = match slash {
            None => (b".".as_slice(), path),
            Some(0) => (b"/".as_slice(), &path[1..]),
            Some(slash) => (&path[..slash], &path[slash + 1..]),
        };
        let base = GuestPath::resolve(work_dir, base).map_err(|refusal| refusal.to_string())?;
        if rest.split(|&byte| byte == b'/').any(|name| name == b"..") {
            return Err("a pattern has no `..`".to_owned());
        }
        let text = std::str::from_utf8(rest).map_err(|_| "a pattern is UTF-8".to_owned())?;
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(false)
            .build()
            .map_err(|error| format!("it is no pattern: {}", error.kind()))?;
        Ok(Self::Glob {
            base,
            matcher: glob.compile_matcher(),
            recursive: text.contains('/') || text.contains("**"),
        })
    }
}

/// Asks the sandbox what there is of each output.
pub(crate) async fn select(
    call: &Call,
    sandbox: &Sandbox,
    outputs: &[Output],
) -> Result<Selection, Error> {
    let mut selection = Selection::default();
    for output in outputs {
        match &output.pattern {
            Pattern::Path(path) => selection.path(call, sandbox, output, path).await?,
            Pattern::Glob {
                base,
                matcher,
                recursive,
            } => {
                let request = ListRequest::new(base.clone()).max_entries(ListRequest::MOST_ENTRIES);
                let request = if *recursive {
                    request.recursive()
                } else {
                    request
                };
                selection
                    .below(call, sandbox, output, request, Some(matcher))
                    .await?;
            }
        }
    }
    selection.settle(sandbox);
    Ok(selection)
}

fn candidate(name: &[u8]) -> Candidate<'_> {
    Candidate::new(OsStr::from_bytes(name))
}

impl Selection {
    async fn path(
        &mut self,
        call: &Call,
        sandbox: &Sandbox,
        output: &Output,
        path: &GuestPath,
    ) -> Result<(), Error> {
        let stat = match sandbox.stat(call, path.as_bytes()).await {
            Ok(stat) => stat,
            Err(error) => return self.refused(output, error),
        };
        let Some(stat) = stat else {
            self.missing.push(not_there(output));
            return Ok(());
        };
        match (stat.kind, stat.size) {
            (EntryKind::File, Some(size)) => {
                self.take(path.clone(), size, output.place(path, None));
                Ok(())
            }
            (EntryKind::Directory, _) => {
                let request = ListRequest::new(path.clone())
                    .max_entries(ListRequest::MOST_ENTRIES)
                    .recursive();
                self.below(call, sandbox, output, request, None).await
            }
            (kind, _) => {
                let (reason, why) = not_brought(kind);
                let text = format!("`{}` {why}", output.asked);
                self.missing.push(Unmet::guest(&output.asked, reason, text));
                Ok(())
            }
        }
    }

    /// What a directory holds, or those of its files whose names match.
    async fn below(
        &mut self,
        call: &Call,
        sandbox: &Sandbox,
        output: &Output,
        request: ListRequest,
        pattern: Option<&GlobMatcher>,
    ) -> Result<(), Error> {
        let base = request.path().clone();
        let listing = match sandbox.list_dir(call, request).await {
            Ok(listing) => listing,
            Err(error) => return self.refused(output, error),
        };
        if listing.truncated {
            let most = ListRequest::MOST_ENTRIES;
            let text = format!(
                "`{}` holds more than is listed at once ({most} entries, or fewer where it is very deep); name less of it",
                output.asked
            );
            self.missing
                .push(Unmet::guest(&output.asked, "truncated", text));
            return Ok(());
        }
        for name in &listing.closed {
            let shown = String::from_utf8_lossy(name);
            let text =
                format!("`{shown}` in `{base}` may not be looked into by the sandbox's user");
            let whole = GuestPath::new(name).and_then(|below| base.join(&below));
            let path = whole.map_or_else(|_| name.clone(), |path| path.as_bytes().to_vec());
            self.missing.push(Unmet::guest(path, "file_denied", text));
        }
        if pattern.is_none() && !base.is_work_dir() {
            let place = output.place(&base, Some(&GuestPath::work_dir()));
            self.directory(base.as_bytes(), place);
        }
        let mut found = false;
        for entry in &listing.entries {
            let is_file = entry.stat.kind == EntryKind::File;
            if let Some(pattern) = pattern
                && (!pattern.is_match_candidate(&candidate(&entry.name))
                    || entry.stat.kind == EntryKind::Directory)
            {
                continue;
            }
            found = true;
            let shown = entry.display();
            let paths =
                GuestPath::new(&entry.name).and_then(|below| Ok((base.join(&below)?, below)));
            let (whole, below) = match paths {
                Ok(paths) => paths,
                Err(refusal) => {
                    let text = format!("`{shown}` in `{base}`: {refusal}");
                    let unmet = Unmet::guest(&entry.name, reason_of(&refusal), text);
                    self.missing.push(unmet);
                    continue;
                }
            };
            let place = match pattern {
                Some(_) => output.place_of_match(&base, &below),
                None => output.place(&base, Some(&below)),
            };
            match (entry.stat.kind, entry.stat.size) {
                (EntryKind::Directory, _) => self.directory(whole.as_bytes(), place),
                (_, Some(size)) if is_file => self.take(whole, size, place),
                (kind, _) => {
                    let (reason, why) = not_brought(kind);
                    let text = format!("`{whole}` {why}");
                    self.missing
                        .push(Unmet::guest(whole.as_bytes(), reason, text));
                }
            }
        }
        if pattern.is_some() && !found {
            let text = format!("nothing matches `{}`", output.asked);
            self.missing
                .push(Unmet::guest(&output.asked, "no_match", text));
        }
        Ok(())
    }

    fn take(&mut self, guest: GuestPath, size: u64, place: Result<Place, String>) {
        match place {
            Ok(place) => self.files.push(Wanted { guest, size, place }),
            Err(why) => {
                let text = format!("`{guest}`: {why}");
                self.missing
                    .push(Unmet::guest(guest.as_bytes(), "unfit_name", text));
            }
        }
    }

    fn directory(&mut self, path: &[u8], place: Result<Place, String>) {
        match place {
            Ok(place) => self.directories.push(place),
            Err(why) => self.missing.push(Unmet::guest(path, "unfit_name", why)),
        }
    }

    /// One output that cannot be had does not keep the others; a sandbox that
    /// does not do its job does.
    fn refused(&mut self, output: &Output, error: Error) -> Result<(), Error> {
        match error.refusal() {
            Some(Refusal::File {
                why: FileRefusal::Missing,
                ..
            }) => self.missing.push(not_there(output)),
            Some(refusal @ Refusal::File { .. }) => {
                let text = format!("`{}`: {refusal}", output.asked);
                let unmet = Unmet::guest(&output.asked, reason_of(refusal), text);
                self.missing.push(unmet);
            }
            _ => return Err(error),
        }
        Ok(())
    }

    /// What two outputs ask for alike comes once, and what is too large to
    /// move is named before anything is read.
    fn settle(&mut self, sandbox: &Sandbox) {
        let most = sandbox.spec().files_out().max_bytes_per_file;
        self.files
            .sort_by(|one, other| (&one.guest, &one.place).cmp(&(&other.guest, &other.place)));
        self.files
            .dedup_by(|one, other| one.guest == other.guest && one.place == other.place);
        self.directories.sort();
        self.directories.dedup();
        let missing = &mut self.missing;
        self.files.retain(|file| {
            let fits = file.size <= most;
            if !fits {
                let text = format!(
                    "`{}` has {} bytes, and one file may have {most}; split it in the sandbox",
                    file.guest, file.size
                );
                missing.push(Unmet::guest(file.guest.as_bytes(), "file_too_large", text));
            }
            fits
        });
    }
}

/// The word for scripts, and the sentence.
fn not_brought(kind: EntryKind) -> (&'static str, &'static str) {
    let other = FileRefusal::NotRegular { kind }.code();
    match kind {
        EntryKind::Link => (
            FileRefusal::Link.code(),
            "is a link, and links are not followed",
        ),
        EntryKind::Fifo => (other, "is a fifo, and only files come out"),
        EntryKind::Socket => (other, "is a socket, and only files come out"),
        EntryKind::CharDevice | EntryKind::BlockDevice => {
            (other, "is a device, and only files come out")
        }
        _ => (other, "is no regular file, and only files come out"),
    }
}

fn not_there(output: &Output) -> Unmet {
    let text = format!("`{}` is not there", output.asked);
    Unmet::guest(&output.asked, FileRefusal::Missing.code(), text)
}

/// The word for scripts of a refusal.
pub(super) fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::File { why, .. } => why.code(),
        other => other.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade::{Image, SandboxSpec};

    fn parsed(argument: &str) -> Result<Output, String> {
        let spec = SandboxSpec::builder("t")
            .image(Image::reference("i"))
            .build()
            .unwrap();
        Output::parse(OsStr::new(argument), spec.work_dir(), Path::new("here"))
    }

    fn lands(argument: &str, path: &str, below: Option<&str>) -> String {
        let path = GuestPath::new(path).unwrap();
        let below = below.map(|below| GuestPath::new(below).unwrap());
        let place = parsed(argument).unwrap().place(&path, below.as_ref());
        place.unwrap().path().display().to_string()
    }

    fn matches(pattern: &str, below: &str) -> bool {
        match parsed(pattern).unwrap().pattern {
            Pattern::Glob { matcher, .. } => {
                matcher.is_match_candidate(&candidate(below.as_bytes()))
            }
            Pattern::Path(path) => panic!("{path} is a path"),
        }
    }

    #[test]
    fn an_output_lands_at_its_own_path_unless_it_is_told_another() {
        assert_eq!(lands("out/a.png", "out/a.png", None), "here/out/a.png");
        assert_eq!(
            lands("/work/out/a.png", "out/a.png", None),
            "here/out/a.png"
        );
        assert_eq!(lands("out/a.png:b.png", "out/a.png", None), "here/b.png");
        assert_eq!(
            lands("out/a.png:/tmp/b.png", "out/a.png", None),
            "/tmp/b.png"
        );
        assert_eq!(lands("out/a.png:c/", "out/a.png", None), "here/c/a.png");
        assert_eq!(lands("out", "out", Some("x/y")), "here/out/x/y");
        assert_eq!(lands("out:o", "out", Some("x/y")), "here/o/x/y");
        assert_eq!(lands("out:c/", "out", Some("x/y")), "here/c/out/x/y");
        assert_eq!(lands(".", ".", Some("x/y")), "here/x/y");
    }

    #[test]
    fn matches_land_below_the_destination_without_what_the_pattern_fixes() {
        let place = |argument: &str| {
            let (base, below) = (
                GuestPath::new("out/sub").unwrap(),
                GuestPath::new("x/y.png").unwrap(),
            );
            let place = parsed(argument).unwrap().place_of_match(&base, &below);
            place.unwrap().path().display().to_string()
        };
        assert_eq!(place("out/sub/**"), "here/out/sub/x/y.png");
        assert_eq!(place("out/sub/**:plots"), "here/plots/x/y.png");
    }

    #[test]
    fn a_star_stays_in_its_directory_and_two_stars_do_not() {
        assert!(matches("*.png", "a.png") && !matches("*.png", "x/a.png"));
        assert!(matches("**/*.png", "a.png") && matches("**/*.png", "x/y/a.png"));
        assert!(matches("out/**", "x") && matches("out/**", "x/y"));
        assert!(matches("{a,b}?.[ch]", "b1.c") && !matches("{a,b}?.[ch]", "c1.c"));
        assert!(matches("[*]", "*") && !matches("[*]", "x"));
    }

    #[test]
    fn a_pattern_is_split_where_it_begins() {
        let Pattern::Glob {
            base, recursive, ..
        } = parsed("a/b/*.c").unwrap().pattern
        else {
            panic!("no pattern")
        };
        assert_eq!((base.to_string().as_str(), recursive), ("a/b", false));
        let Pattern::Glob {
            base, recursive, ..
        } = parsed("/work/*/c").unwrap().pattern
        else {
            panic!("no pattern")
        };
        assert_eq!((base.to_string().as_str(), recursive), (".", true));
    }

    #[test]
    fn what_leads_out_of_the_work_directory_is_refused() {
        for bad in [
            "..",
            "../x",
            "/etc/passwd",
            "/*",
            "../*",
            "*/../x",
            "a\\b",
            "",
            "x:",
            "[",
            "/work/../*",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
