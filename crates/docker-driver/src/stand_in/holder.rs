//! A process that holds a container, so that tests can see what becomes of
//! the container when that process is killed or stopped.

use std::io::{self, Write as _};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::tar::{self, ModifiedAt, NewEntry, NewEntryKind};
use crate::{BindConfig, Bounds, CallError, ContainerId, ContainerPath, Docker, HoldRequest};

/// Bytes of the file that is copied.
const SIZE: usize = 1024 * 1024;

/// Holds the container of the first word for the seconds of the second, and
/// does what the lines of standard input say: `begin` sends half of a file
/// `/tmp/landed`, `complete` the rest, `read` begins to read `/usr`, `release`
/// ends. It answers each with a line, `held` and `ok` or what is wrong.
///
/// # Panics
///
/// When it is started with other words, or docker cannot be bound.
pub fn run() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [container, seconds] = &words[..] else {
        panic!("a container and seconds are expected");
    };
    let container = ContainerId::new(container.as_str()).expect("an id");
    let limit = Duration::from_secs(seconds.parse().expect("seconds"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let holds = hold(HoldRequest::new(container).limit(limit));
    runtime.expect("a runtime can be made").block_on(holds);
}

async fn hold(request: HoldRequest) {
    let docker = Docker::bind(BindConfig::from_env()).await;
    let docker = docker.expect("docker can be bound");
    let hold = match docker.hold(&Bounds::patient(), request).await {
        Ok(hold) => hold,
        Err(error) => return say(&format!("{:?}", error.kind())),
    };
    say("held");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let path = |path| ContainerPath::new(path).expect("a path");
    let (directory, usr) = (path("/tmp"), path("/usr"));
    let (mut copy, mut out) = (None, None);
    while let Ok(Some(line)) = lines.next_line().await {
        let done = match (line.as_str(), &mut copy) {
            ("begin", _) => match hold.copy_in(&directory).await {
                Ok(started) => copy.insert(started).write(half(header())).await,
                Err(error) => Err(error),
            },
            ("read", _) => match hold.copy_out(&usr).await {
                Ok(started) => out.insert(started).next().await.map(drop),
                Err(error) => Err(error),
            },
            ("complete", Some(copy)) => copy.write(half(Bytes::from_static(tar::END))).await,
            _ => break,
        };
        tell(done);
    }
    let finished = match copy {
        Some(copy) => copy.finish().await,
        None => Ok(()),
    };
    drop(out);
    tell(finished);
    tell(hold.release().await);
}

fn header() -> Bytes {
    let entry = NewEntry {
        path: b"landed".to_vec(),
        kind: NewEntryKind::File,
        size: SIZE as u64,
        mode: 0o644,
        uid: 0,
        gid: 0,
        modified: ModifiedAt::default(),
    };
    tar::encode_header(&entry).expect("a plain path")
}

/// Half of the body, after a header or before an end.
fn half(other: Bytes) -> Bytes {
    let body = vec![b'x'; SIZE / 2];
    match other.len() == tar::END.len() {
        true => [&body[..], &other].concat(),
        false => [&other[..], &body].concat(),
    }
    .into()
}

fn tell(done: Result<(), CallError>) {
    match done {
        Ok(()) => say("ok"),
        Err(error) => say(&format!("{:?}", error.kind())),
    }
}

fn say(line: &str) {
    // A test that has gone does not listen.
    let _ = writeln!(io::stdout(), "{line}");
}
