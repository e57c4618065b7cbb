//! Where a probe works, and its short words for what it does there.

use std::sync::Arc;

use bytes::Bytes;
use stockade::files::{EntryKind, FileStat, Listing};
use stockade::{
    Backend, Call, Content, Error, FileWrite, GuestPath, ListRequest, Sandbox, SandboxKey,
    SandboxSpec,
};

use crate::probe::{Stop, Verdict, demand};
use crate::subject::{At, Seen, Subject};

/// The conversation of every sandbox of a run but those that must be of
/// another one.
pub(crate) const THREAD: &str = "conformance";

/// The other conversation.
pub(crate) const OTHER_THREAD: &str = "conformance-other";

/// The backend under test, for one probe.
pub(crate) struct Bench {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) spec: Arc<SandboxSpec>,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) call: Call,
    /// The scope of every key of the run.
    pub(crate) scope: String,
    pub(crate) probe: &'static str,
}

/// A directory of a sandbox, for one probe alone.
pub(crate) struct Site {
    pub(crate) bench: Arc<Bench>,
    pub(crate) at: At,
    /// The probe's directory, relative to the work directory.
    base: String,
    /// The probe's directory outside of the work directory.
    outside: Vec<u8>,
}

impl Bench {
    /// A key that no other probe has.
    pub(crate) fn key(&self, agent: &str) -> SandboxKey {
        SandboxKey::new(&self.scope, THREAD, format!("{}-{agent}", self.probe))
    }

    pub(crate) async fn acquire(&self, key: &SandboxKey) -> Result<Sandbox, Error> {
        self.backend.acquire(&self.call, key, &self.spec).await
    }

    pub(crate) fn at(&self, sandbox: &Sandbox) -> At {
        At::new(self.call.clone(), sandbox.clone())
    }
}

impl Site {
    /// Makes the probe's directories in the sandbox of the key.
    pub(crate) async fn open(bench: &Arc<Bench>, key: &SandboxKey) -> Verdict<Self> {
        let sandbox = bench.acquire(key).await?;
        let at = bench.at(&sandbox);
        let mut outside = bench.subject.outside();
        outside.extend_from_slice(format!("/{}-{}", bench.scope, bench.probe).as_bytes());
        let site = Self {
            bench: Arc::clone(bench),
            at,
            base: format!("probe-{}", bench.probe),
            outside,
        };
        site.subject()
            .plant_directory(&site.at, &site.absolute("."))
            .await?;
        site.subject()
            .plant_directory(&site.at, &site.outside)
            .await?;
        Ok(site)
    }

    /// Removes the probe's directories again.
    pub(crate) async fn clear(&self, call: &Call) -> Verdict {
        let at = At::new(call.clone(), self.at.sandbox.clone());
        self.subject().clear(&at, &self.absolute(".")).await?;
        Ok(self.subject().clear(&at, &self.outside).await?)
    }

    pub(crate) fn subject(&self) -> &dyn Subject {
        self.bench.subject.as_ref()
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.at.sandbox
    }

    pub(crate) fn call(&self) -> &Call {
        &self.at.call
    }

    pub(crate) fn spec(&self) -> &SandboxSpec {
        &self.bench.spec
    }

    /// A path below the probe's directory, relative to the work directory.
    pub(crate) fn path(&self, below: impl AsRef<[u8]>) -> Vec<u8> {
        [self.base.as_bytes(), below.as_ref()].join(&b'/')
    }

    /// The same, parsed.
    pub(crate) fn guest(&self, below: impl AsRef<[u8]>) -> Verdict<GuestPath> {
        Ok(GuestPath::new(self.path(below))?)
    }

    /// The same, as the guest names it.
    pub(crate) fn absolute(&self, below: impl AsRef<[u8]>) -> Vec<u8> {
        let work_dir = self.spec().work_dir().as_str().as_bytes();
        match below.as_ref() {
            b"." => [work_dir, self.base.as_bytes()].join(&b'/'),
            _ => [work_dir, &self.path(below)].join(&b'/'),
        }
    }

    /// A path below the probe's directory outside of the work directory.
    pub(crate) fn outside(&self, below: impl AsRef<[u8]>) -> Vec<u8> {
        [self.outside.as_slice(), below.as_ref()].join(&b'/')
    }

    // The operations under test.

    pub(crate) async fn write(
        &self,
        below: impl AsRef<[u8]>,
        content: impl Into<Content>,
    ) -> Result<(), Error> {
        let path = self.path(below);
        self.sandbox().write_file(self.call(), path, content).await
    }

    pub(crate) async fn write_all(&self, files: Vec<FileWrite>) -> Result<(), Error> {
        self.sandbox().write_files(self.call(), files).await
    }

    pub(crate) async fn read(&self, below: impl AsRef<[u8]>) -> Result<Bytes, Error> {
        self.sandbox()
            .read_file(self.call(), self.path(below))
            .await
    }

    pub(crate) async fn stat(&self, below: impl AsRef<[u8]>) -> Result<Option<FileStat>, Error> {
        self.sandbox().stat(self.call(), self.path(below)).await
    }

    pub(crate) async fn list(&self, request: ListRequest) -> Result<Listing, Error> {
        self.sandbox().list_dir(self.call(), request).await
    }

    pub(crate) async fn remove(
        &self,
        below: impl AsRef<[u8]>,
        recursive: bool,
    ) -> Result<(), Error> {
        let path = self.path(below);
        self.sandbox().remove(self.call(), path, recursive).await
    }

    pub(crate) async fn reclaim(&self, below: impl AsRef<[u8]>) -> Result<(), Error> {
        self.sandbox().reclaim(self.call(), self.path(below)).await
    }

    // What the guest does and sees.

    pub(crate) async fn plant(&self, below: impl AsRef<[u8]>, content: &[u8]) -> Verdict {
        self.plant_absolute(&self.absolute(below), content).await
    }

    pub(crate) async fn plant_outside(&self, below: impl AsRef<[u8]>, content: &[u8]) -> Verdict {
        self.plant_absolute(&self.outside(below), content).await
    }

    /// Plants a file, with the directory that it is in.
    async fn plant_absolute(&self, path: &[u8], content: &[u8]) -> Verdict {
        let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        self.subject()
            .plant_directory(&self.at, &path[..end])
            .await?;
        Ok(self.subject().plant_file(&self.at, path, content).await?)
    }

    pub(crate) async fn make_directory(&self, below: impl AsRef<[u8]>) -> Verdict {
        let path = self.absolute(below);
        Ok(self.subject().plant_directory(&self.at, &path).await?)
    }

    pub(crate) async fn link(&self, target: impl AsRef<[u8]>, below: impl AsRef<[u8]>) -> Verdict {
        let path = self.absolute(below);
        Ok(self
            .subject()
            .plant_symlink(&self.at, target.as_ref(), &path)
            .await?)
    }

    pub(crate) async fn look(&self, below: impl AsRef<[u8]>) -> Verdict<Option<Seen>> {
        let path = self.absolute(below);
        Ok(self.subject().look(&self.at, &path).await?)
    }

    /// The guest's view of a file that must be there.
    pub(crate) async fn seen(&self, below: impl AsRef<[u8]>) -> Verdict<Seen> {
        let path = self.absolute(below);
        let seen = self.subject().look(&self.at, &path).await?;
        seen.ok_or_else(|| {
            let path = String::from_utf8_lossy(&path).into_owned();
            Stop::Failed(format!("the guest finds nothing at {path}"))
        })
    }

    /// Demands that the guest finds something here.
    pub(crate) async fn is_there(&self, below: impl AsRef<[u8]>) -> Verdict {
        self.seen(below).await.map(drop)
    }

    /// Demands that the guest finds nothing here.
    pub(crate) async fn is_gone(&self, below: impl AsRef<[u8]>) -> Verdict {
        let seen = self.look(below.as_ref()).await?;
        let below = String::from_utf8_lossy(below.as_ref());
        demand!(seen.is_none(), "the guest still finds {below}");
        Ok(())
    }

    /// Demands that the guest reads this.
    pub(crate) async fn holds(&self, below: impl AsRef<[u8]>, content: &[u8]) -> Verdict {
        self.holds_absolute(&self.absolute(below), content).await
    }

    pub(crate) async fn outside_holds(&self, below: impl AsRef<[u8]>, content: &[u8]) -> Verdict {
        self.holds_absolute(&self.outside(below), content).await
    }

    pub(crate) async fn outside_is_gone(&self, below: impl AsRef<[u8]>) -> Verdict {
        let path = self.outside(below);
        let seen = self.subject().look(&self.at, &path).await?;
        let path = String::from_utf8_lossy(&path).into_owned();
        demand!(seen.is_none(), "something appeared at {path}");
        Ok(())
    }

    async fn holds_absolute(&self, path: &[u8], content: &[u8]) -> Verdict {
        let found = self.subject().look(&self.at, path).await?;
        let shown = String::from_utf8_lossy(path).into_owned();
        let kind = found.map(|seen| seen.kind);
        demand!(
            kind == Some(EntryKind::File),
            "the guest finds no file at {shown}, but {kind:?}"
        );
        let read = self.subject().read(&self.at, path).await?;
        same(&read, content).map_err(|stop| stop.during(&shown))
    }
}

/// Demands the same bytes, and says where they differ otherwise.
pub(crate) fn same(found: &[u8], wanted: &[u8]) -> Verdict {
    if found == wanted {
        return Ok(());
    }
    let differs = found.iter().zip(wanted).position(|(a, b)| a != b);
    let at = differs.unwrap_or(found.len().min(wanted.len()));
    Err(Stop::Failed(format!(
        "{} bytes instead of {}, and the first difference is at byte {at}",
        found.len(),
        wanted.len()
    )))
}
