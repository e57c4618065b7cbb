//! The host's own apt: which distribution it serves, from where, and with which settings.
//!
//! Mirror and proxy come from the host's configuration, so whatever makes `apt-get` work on this
//! machine makes the bootstraps of xtask work too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{Program, on_path};
use crate::progress::say;

/// What apt on this host fetches packages with.
#[derive(Clone, Debug)]
pub(crate) struct HostApt {
    distribution: Distribution,
    codename: String,
    mirror: String,
    /// Lines in apt's own configuration syntax that say how to reach a mirror.
    settings: Vec<String>,
}

/// A suite of the distribution, as the lines of a sources list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) sources: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Debian,
    Ubuntu,
}

impl HostApt {
    /// Reads the configuration of this host's apt.
    pub(crate) fn read() -> Result<Self> {
        ensure!(
            on_path("apt-get").is_some() && on_path("dpkg").is_some(),
            "this is no Debian-like system: there is no apt-get and no dpkg"
        );
        let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
        let (distribution, codename) = parse_release(&release)?;
        let list = || {
            Program::new("apt-get")
                .args([
                    "indextargets",
                    "--format",
                    "$(ORIGIN)\t$(REPO_URI)\t$(COMPONENT)",
                ])
                .arg("Created-By: Packages")
                .read()
        };
        let mirror = match parse_mirror(&list()?, distribution) {
            Some(mirror) => mirror,
            None => {
                // A machine on which nobody has updated yet does not know whose packages it lists.
                update()?;
                parse_mirror(&list()?, distribution).with_context(|| {
                    format!("apt on this host has no source of {distribution:?} packages")
                })?
            }
        };
        let settings = parse_settings(&Program::new("apt-config").arg("dump").read()?);
        Ok(Self {
            distribution,
            codename,
            mirror,
            settings,
        })
    }

    /// The suites that may carry a newer engine than the host's own, newest first.
    pub(crate) fn newest_suites(&self) -> Vec<Suite> {
        match self.distribution {
            Distribution::Debian => vec![self.debian("testing"), self.debian("stable")],
            Distribution::Ubuntu => vec![self.ubuntu()],
        }
    }

    /// The suites that carry the oldest engine that is bound.
    pub(crate) fn old_suites(&self) -> Vec<Suite> {
        match self.distribution {
            Distribution::Debian => vec![self.debian("bookworm")],
            // As it was released; its updates have a newer one.
            Distribution::Ubuntu => vec![self.ubuntu_release("jammy", &[""])],
        }
    }

    /// The suite that guest images are made of.
    pub(crate) fn guest_suite(&self) -> Suite {
        match self.distribution {
            Distribution::Debian => self.debian("stable"),
            Distribution::Ubuntu => self.ubuntu(),
        }
    }

    /// The settings that reach a mirror, in apt's configuration syntax.
    pub(crate) fn settings(&self) -> &[String] {
        &self.settings
    }

    /// The major version that `suite` offers of a package, or nothing when it has none.
    pub(crate) fn major_version(&self, suite: &Suite, package: &str) -> Result<Option<u32>> {
        let state = tempfile::tempdir().context("making a folder for apt")?;
        let folder = state.path();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        for name in ["lists/partial", "cache/archives/partial"] {
            let path = folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }
        write("status", "")?;
        write("sources.list", &suite.sources.join("\n"))?;
        let apart = |program: &str| {
            let path = |name: &str| folder.join(name).display().to_string();
            Program::new(program).args([
                "-o=Dir::Etc::SourceParts=/dev/null".to_owned(),
                format!("-o=Dir::Etc::SourceList={}", path("sources.list")),
                format!("-o=Dir::State::Lists={}", path("lists")),
                format!("-o=Dir::State::status={}", path("status")),
                format!("-o=Dir::Cache={}", path("cache")),
                "-o=APT::Sandbox::User=root".to_owned(),
                "-o=Acquire::Languages=none".to_owned(),
                "-o=Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            ])
        };
        apart("apt-get")
            .args(["-qq", "--error-on=any", "update"])
            .read()?;
        parse_major(&apart("apt-cache").args(["madison", package]).read()?)
    }

    fn debian(&self, suite: &str) -> Suite {
        Suite {
            name: suite.to_owned(),
            sources: vec![self.source("debian-archive-keyring.gpg", suite, "main")],
        }
    }

    /// Ubuntu backports engines into its updates, so the host's own release is the newest that
    /// is sure to be on the host's mirror.
    fn ubuntu(&self) -> Suite {
        self.ubuntu_release(&self.codename, &["", "-updates", "-security"])
    }

    fn ubuntu_release(&self, codename: &str, pockets: &[&str]) -> Suite {
        let line = |pocket: &&str| {
            let suite = format!("{codename}{pocket}");
            self.source("ubuntu-archive-keyring.gpg", &suite, "main universe")
        };
        Suite {
            name: codename.to_owned(),
            sources: pockets.iter().map(line).collect(),
        }
    }

    fn source(&self, keyring: &str, suite: &str, components: &str) -> String {
        let keyring = Path::new("/usr/share/keyrings").join(keyring);
        let signed = if keyring.exists() {
            format!("[signed-by={}] ", keyring.display())
        } else {
            String::new() // then apt trusts the keys in its own configuration
        };
        format!("deb {signed}{} {suite} {components}", self.mirror)
    }
}

/// Installs the package that brings `program` to this host, unless it is here.
pub(crate) fn install(program: &str, package: &str) -> Result<()> {
    if on_path(program).is_some() {
        return Ok(());
    }
    say(format_args!("installing {package}"));
    let install = Program::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends", package])
        .env("DEBIAN_FRONTEND", "noninteractive");
    if install.read().is_err() {
        update()?;
        install.read()?;
    }
    ensure!(
        on_path(program).is_some(),
        "{package} is installed, but {program} is not on PATH"
    );
    Ok(())
}

/// Fetches a package, without installing it, into an empty folder and returns its file.
pub(crate) fn download(package: &str, folder: &Path) -> Result<PathBuf> {
    let download = Program::new("apt-get")
        .args(["-qq", "-o=APT::Sandbox::User=root", "download", package])
        .folder(folder);
    if download.read().is_err() {
        update()?;
        download.read()?;
    }
    let mut entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let entry = entries
        .next()
        .with_context(|| format!("apt-get fetched no {package}"))?;
    Ok(entry
        .with_context(|| format!("reading {}", folder.display()))?
        .path())
}

fn update() -> Result<()> {
    Program::new("apt-get")
        .args(["-qq", "update"])
        .read()
        .map(drop)
}

fn parse_release(text: &str) -> Result<(Distribution, String)> {
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    let (id, like) = (field("ID"), field("ID_LIKE"));
    let is = |name: &str| id == name || like.split_whitespace().any(|word| word == name);
    // A derivative of Ubuntu is like Debian too, so Ubuntu is asked for first.
    if is("ubuntu") {
        let codename = match field("UBUNTU_CODENAME") {
            name if name.is_empty() => field("VERSION_CODENAME"),
            name => name,
        };
        ensure!(
            !codename.is_empty(),
            "/etc/os-release names no VERSION_CODENAME"
        );
        Ok((Distribution::Ubuntu, codename))
    } else if is("debian") {
        Ok((Distribution::Debian, field("VERSION_CODENAME")))
    } else {
        bail!("this is no Debian-like system: /etc/os-release says ID={id}")
    }
}

/// The mirror of the distribution's main archive: the first that is not the security one, which
/// carries no whole suite.
fn parse_mirror(targets: &str, distribution: Distribution) -> Option<String> {
    let origin = match distribution {
        Distribution::Debian => "Debian",
        Distribution::Ubuntu => "Ubuntu",
    };
    targets.lines().find_map(|line| {
        let mut fields = line.split('\t');
        let (from, uri, component) = (fields.next()?, fields.next()?, fields.next()?);
        (from == origin && component == "main" && !uri.contains("security"))
            .then(|| uri.trim_end_matches('/').to_owned())
    })
}

/// Keeps what says how a mirror is reached. Trust is left out on purpose: a bootstrap is verified
/// even where the host is lax.
fn parse_settings(dump: &str) -> Vec<String> {
    const REACH: [&str; 9] = [
        "Acquire::http::",
        "Acquire::https::",
        "Acquire::http ",
        "Acquire::https ",
        "Acquire::Retries ",
        "Acquire::ForceIPv4 ",
        "Acquire::ForceIPv6 ",
        // Local mirrors are often snapshots, whose release files are past their date.
        "Acquire::Check-Valid-Until ",
        "Acquire::Check-Date ",
    ];
    dump.lines()
        .filter(|line| REACH.iter().any(|prefix| line.starts_with(prefix)))
        .filter(|line| !line.ends_with(" \"\";"))
        .map(|line| line.trim_end_matches(';').to_owned())
        .collect()
}

/// Reads the newest of the lines `docker.io | 28.5.2+dfsg4-5 | <source>`.
fn parse_major(madison: &str) -> Result<Option<u32>> {
    let mut newest = None;
    for line in madison.lines() {
        let version = line.split('|').nth(1).unwrap_or_default().trim();
        let upstream = version
            .split_once(':')
            .map_or(version, |(_epoch, rest)| rest);
        let major = upstream.split('.').next().unwrap_or_default();
        let major: u32 = major
            .parse()
            .with_context(|| format!("version in `{line}`"))?;
        newest = newest.max(Some(major));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apt(distribution: Distribution) -> HostApt {
        HostApt {
            distribution,
            codename: "noble".into(),
            mirror: "http://mirror.test/archive".into(),
            settings: Vec::new(),
        }
    }

    #[test]
    fn debian_offers_testing_before_stable() {
        let names: Vec<_> = apt(Distribution::Debian)
            .newest_suites()
            .into_iter()
            .map(|s| s.name)
            .collect();
        assert_eq!(names, ["testing", "stable"]);
    }

    #[test]
    fn ubuntu_offers_its_own_release_with_updates() {
        let suites = apt(Distribution::Ubuntu).newest_suites();
        assert_eq!(suites.len(), 1);
        assert!(suites[0].sources[1].contains("http://mirror.test/archive noble-updates main"));
    }

    #[test]
    fn a_derivative_is_known_by_what_it_is_like() {
        let parsed = |text| parse_release(text).ok();
        let debian = "ID=debian\nVERSION_CODENAME=bookworm\n";
        assert_eq!(
            parsed(debian),
            Some((Distribution::Debian, "bookworm".into()))
        );
        let mint = "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_CODENAME=xia\nUBUNTU_CODENAME=noble\n";
        assert_eq!(parsed(mint), Some((Distribution::Ubuntu, "noble".into())));
        assert_eq!(parsed("ID=fedora\n"), None);
    }

    #[test]
    fn the_mirror_is_the_main_archive_of_the_distribution() {
        let targets = "Other\thttp://o.test/apt/\tmain\n\
                       Debian\thttp://m.test/debian-security/\tmain\n\
                       Debian\thttp://m.test/debian/\tmain\n";
        let mirror = parse_mirror(targets, Distribution::Debian);
        assert_eq!(mirror.as_deref(), Some("http://m.test/debian"));
        assert_eq!(parse_mirror(targets, Distribution::Ubuntu), None);
    }

    #[test]
    fn settings_keep_proxies_and_leave_trust() {
        let dump = "Acquire \"\";\nAcquire::http \"\";\nAcquire::http::Proxy \"http://p.test:3142\";\n\
                    Acquire::AllowInsecureRepositories \"1\";\nAcquire::Check-Valid-Until \"false\";\n\
                    Dir \"/\";\n";
        assert_eq!(
            parse_settings(dump),
            [
                "Acquire::http::Proxy \"http://p.test:3142\"",
                "Acquire::Check-Valid-Until \"false\""
            ]
        );
    }

    #[test]
    fn a_version_is_read_without_its_epoch() {
        let major = |text| parse_major(text).expect("a table of versions");
        assert_eq!(
            major(" docker.io | 28.5.2+dfsg4-5 | http://m.test testing/main\n"),
            Some(28)
        );
        assert_eq!(major(" git | 1:2.47.3-0 | m\n git | 1:1.9 | m\n"), Some(2));
        assert_eq!(major(""), None);
    }
}
