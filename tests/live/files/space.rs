//! A full work directory, large files, and many of them.

use stockade::files::{Content, FileWrite};
use stockade::spec::Hardening;
use stockade::{ErrorKind, Refusal};
use stockade_tests::engine::call;

use super::{PLANES, path, roomy, sandbox};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_batch_that_fills_the_work_directory_says_what_arrived() {
    let hardenings = [Hardening::Strict, Hardening::AsImage];
    for (plane, hardening) in PLANES
        .into_iter()
        .flat_map(|plane| hardenings.map(|hardening| (plane, hardening)))
    {
        // The image's own user is root, whose files look like the engine's.
        let mut spec = roomy().hardening(hardening);
        let mut limits = stockade::ResourceLimits::default();
        limits.work_bytes = 8 * MIB as u64;
        spec = spec.limits(limits);
        let fixture = sandbox(plane, spec).await;
        let files = (0..6)
            .map(|number| FileWrite::new(path(&format!("{number}")), vec![7; 2 * MIB]))
            .collect();
        let error = fixture
            .sandbox
            .write_files(&call(), files)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{plane:?}: {error}");
        let code = error.refusal().map(Refusal::code);
        assert_eq!(code, Some("file_no_space"), "{plane:?}: {error:?}");
        let arrived = error.arrived().expect("some arrived");
        assert!(
            !arrived.whole.is_empty() && arrived.whole.len() < 6,
            "{error}"
        );
        assert!(arrived.partial.is_empty() && arrived.unknown.is_empty());
        // What the error says is what the guest sees: those, whole, and
        // nothing of the others.
        let seen = fixture
            .sh("for f in *; do stat -c '%n %s %u' $f; done; id -u")
            .await;
        let seen = seen.stdout_text();
        let (files, uid) = seen
            .trim_end()
            .rsplit_once('\n')
            .expect("a line of the user");
        let whole: Vec<String> = arrived
            .whole
            .iter()
            .map(|path| format!("{path} {} {uid}", 2 * MIB))
            .collect();
        assert_eq!(files.lines().collect::<Vec<_>>(), whole, "{plane:?}");
        // What was to be replaced and is gone is said.
        let error = fixture
            .sandbox
            .write_file(&call(), "0", vec![8; 8 * MIB])
            .await
            .unwrap_err();
        let there = fixture.sandbox.stat(&call(), "0").await.unwrap();
        let lost = error.arrived().map_or(0, |arrived| arrived.lost.len());
        assert_eq!(lost, usize::from(there.is_none()), "{plane:?}: {error}");
        // And the sandbox goes on.
        fixture.sandbox.remove(&call(), "0", false).await.unwrap();
        fixture
            .sandbox
            .write_file(&call(), "0", "small")
            .await
            .unwrap();
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_work_directory_without_inodes_takes_no_file_and_stays_usable() {
    for plane in PLANES {
        let mut limits = stockade::ResourceLimits::default();
        limits.work_inodes = 64;
        let fixture = sandbox(plane, roomy().limits(limits)).await;
        fixture
            .sh("i=0; while : > f$i; do i=$((i+1)); done 2>/dev/null")
            .await;
        let error = fixture
            .sandbox
            .write_file(&call(), "one-more", "x")
            .await
            .unwrap_err();
        let code = error.refusal().map(Refusal::code);
        assert_eq!(code, Some("file_no_space"), "{plane:?}: {error:?}");
        fixture.sandbox.remove(&call(), "f0", false).await.unwrap();
        fixture.sandbox.remove(&call(), "f1", false).await.unwrap();
        fixture
            .sandbox
            .write_file(&call(), "one-more", "x")
            .await
            .unwrap();
        fixture.close().await;
    }
}

#[tokio::test]
async fn sizes_survive_the_way_in_and_out() {
    const SIZES: [usize; 12] = [
        0,
        1,
        511,
        512,
        513,
        10_240,
        18_432,
        65_535,
        65_536,
        65_537,
        MIB,
        8 * MIB,
    ];
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        for size in SIZES {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 253) as u8).collect();
            let source = Content::reader(size as u64, std::io::Cursor::new(bytes.clone()));
            fixture
                .sandbox
                .write_file(&call(), "file", source)
                .await
                .unwrap();
            let back = fixture.sandbox.read_file(&call(), "file").await.unwrap();
            assert!(back == bytes, "{size} bytes differ in {plane:?}");
        }
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_file_over_its_limit_is_refused_before_its_body_is_read() {
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        // A terabyte that takes no space: reading it would take for ever.
        fixture.sh("truncate -s 1T big").await;
        let stat = fixture.sandbox.stat(&call(), "big").await.unwrap();
        assert_eq!(stat.and_then(|stat| stat.size), Some(1 << 40));
        let error = fixture.sandbox.read_file(&call(), "big").await.unwrap_err();
        let code = error.refusal().map(Refusal::code);
        assert_eq!(code, Some("file_too_large"), "{plane:?}: {error}");
        fixture.close().await;
    }
}
