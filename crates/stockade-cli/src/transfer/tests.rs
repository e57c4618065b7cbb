//! Copies against the backend in memory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use stockade::files::EntryKind;
use stockade::memory::{GuestFiles, MemoryBackend};
use stockade::{
    Backend as _, Call, GuestPath, Image, ResourceLimits, Sandbox, SandboxKey, SandboxSpec,
    TransferLimits,
};

use super::{Brought, Destination, Manner, Output, bring, send};
use crate::host::{AtConflict, Source, tree};
use crate::meter::Meter;

struct Rig {
    call: Call,
    sandbox: Sandbox,
    guest: GuestFiles,
    host: tempfile::TempDir,
}

impl Rig {
    async fn new(limits: ResourceLimits) -> Self {
        let backend = MemoryBackend::new();
        let spec = SandboxSpec::builder("t")
            .image(Image::reference("i"))
            .limits(limits)
            .files_in(TransferLimits::CEILING)
            .files_out(TransferLimits::CEILING)
            .build()
            .unwrap();
        let call = Call::with_timeout(Duration::from_secs(60));
        let key = SandboxKey::new("a", "b", "c");
        let sandbox = backend.acquire(&call, &key, &spec).await.unwrap();
        let guest = backend.files(sandbox.id()).unwrap();
        let host = tempfile::tempdir().unwrap();
        Self {
            call,
            sandbox,
            guest,
            host,
        }
    }

    /// Sends a folder as `in`; the failure as text.
    async fn send(&self, folder: &Path) -> Result<u64, String> {
        let source = Source::exactly(folder, GuestPath::new("in").unwrap());
        let tree = tree(vec![source], false, self.sandbox.spec())
            .await
            .map_err(|faults| faults.join("\n"))?;
        let meter = Meter::start("test", 0, 0, true);
        let sent = send(&self.call, &self.sandbox, &tree, &meter).await;
        sent.map(|sent| sent.files)
            .map_err(|failure| format!("{failure:?}"))
    }

    async fn bring(&self, asked: &[&str]) -> Brought {
        self.brought(asked, AtConflict::LandNothing).await
    }

    async fn brought(&self, asked: &[&str], at_conflict: AtConflict) -> Brought {
        let to = Destination::Mirror(self.host.path().join("out"));
        let work_dir = self.sandbox.spec().work_dir();
        let outputs: Vec<Output> = asked
            .iter()
            .map(|path| Output::of(path.as_bytes(), work_dir, to.clone()).unwrap())
            .collect();
        let manner = Manner {
            overwrite: false,
            at_conflict,
            quiet: true,
        };
        bring(&self.call, &self.sandbox, &outputs, manner)
            .await
            .unwrap()
    }

    fn landed(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.host.path().join("out").join(path)).ok()
    }
}

#[tokio::test]
async fn a_tree_of_several_batches_comes_back_as_it_went() {
    let rig = Rig::new(ResourceLimits::default()).await;
    let folder = rig.host.path().join("tree");
    fs::create_dir_all(folder.join("a/b/empty")).unwrap();
    for at in 0..600 {
        fs::write(folder.join(format!("a/{at}")), format!("content {at}")).unwrap();
    }
    let odd = folder.join("a/b/odd\n- naïve");
    fs::write(&odd, "odd").unwrap();
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o750)).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    fs::File::open(&odd).unwrap().set_modified(time).unwrap();
    assert_eq!(rig.send(&folder).await, Ok(601));
    let brought = rig.bring(&["in"]).await;
    assert!(brought.is_whole(), "{:?}", brought.missing);
    assert_eq!(brought.files.len(), 601);
    assert_eq!(rig.landed("in/a/599").as_deref(), Some("content 599"));
    assert!(rig.host.path().join("out/in/a/b/empty").is_dir());
    let metadata = fs::metadata(rig.host.path().join("out/in/a/b/odd\n- naïve")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o700, 0o700);
    assert_eq!(metadata.modified().unwrap(), time);
}

#[tokio::test]
async fn what_cannot_come_is_named_and_the_rest_lands() {
    let rig = Rig::new(ResourceLimits::default()).await;
    rig.guest.make_directories("/work/d").unwrap();
    rig.guest.write("/work/d/good", "good").unwrap();
    rig.guest.write("/work/d/closed", "closed").unwrap();
    rig.guest.set_mode("/work/d/closed", 0).unwrap();
    rig.guest.write("/work/d/back\\slash", "x").unwrap();
    rig.guest.symlink("/etc/passwd", "/work/d/link").unwrap();
    rig.guest
        .make_special(EntryKind::Fifo, "/work/d/fifo")
        .unwrap();
    let brought = rig.bring(&["d", "none", "*.none", "d/link/x"]).await;
    assert_eq!(brought.files.len(), 1, "{:?}", brought.missing);
    assert_eq!(rig.landed("d/good").as_deref(), Some("good"));
    for word in ["closed", "backslash", "link", "fifo", "`none`", "`*.none`"] {
        let named = brought
            .missing
            .iter()
            .any(|unmet| unmet.to_string().contains(word));
        assert!(named, "{word}: {:?}", brought.missing);
    }
    assert_eq!(rig.landed("d/closed"), None);
}

#[tokio::test]
async fn one_file_asked_for_twice_comes_once() {
    let rig = Rig::new(ResourceLimits::default()).await;
    rig.guest.write("/work/a.png", "a").unwrap();
    let brought = rig.bring(&["a.png", "*.png", "/work/a.png"]).await;
    assert!(brought.is_whole());
    assert_eq!(brought.files.len(), 1);
}

#[tokio::test]
async fn nothing_lands_when_one_place_is_taken_unless_the_rest_would_be_lost() {
    let rig = Rig::new(ResourceLimits::default()).await;
    rig.guest.write("/work/a", "new").unwrap();
    rig.guest.write("/work/b", "new").unwrap();
    fs::create_dir(rig.host.path().join("out")).unwrap();
    fs::write(rig.host.path().join("out/b"), "old").unwrap();
    let brought = rig.bring(&["*"]).await;
    assert_eq!(brought.in_the_way.len(), 1, "{:?}", brought.in_the_way);
    assert_eq!(
        (rig.landed("a"), rig.landed("b")),
        (None, Some("old".to_owned()))
    );
    let brought = rig.brought(&["*"], AtConflict::LandTheRest).await;
    assert_eq!((brought.in_the_way.len(), brought.files.len()), (1, 1));
    assert_eq!(brought.in_the_way[0].object()["reason"], "exists");
    assert_eq!(
        (rig.landed("a"), rig.landed("b")),
        (Some("new".to_owned()), Some("old".to_owned()))
    );
}

#[tokio::test]
async fn a_failure_in_a_later_batch_says_what_had_arrived() {
    let mut limits = ResourceLimits::default();
    limits.work_bytes = 1024 * 1024;
    let rig = Rig::new(limits).await;
    let folder = rig.host.path().join("tree");
    fs::create_dir(&folder).unwrap();
    for at in 0..400 {
        fs::write(folder.join(format!("{at:03}")), "x").unwrap();
    }
    // Each takes a page, so that they do not fit, although their bytes do.
    let failure = rig.send(&folder).await.unwrap_err();
    assert!(
        failure.contains("file_no_space") || failure.contains("full"),
        "{failure}"
    );
    assert!(
        failure.contains(" of 400 files had arrived whole"),
        "{failure}"
    );
}
