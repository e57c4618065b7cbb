//! One of several hosts that race on one key: acquire, use, replace, dispose
//! and reap, at random and without any agreement.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use stockade::{
    Backend as _, ExecRequest, ExecStatus, Image, ReapFilter, Sandbox, SandboxKey, SandboxSpec,
    Which,
};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::call;
use tokio::time::Instant;

use crate::tally::{Trouble, tell};

const TROUBLE: Trouble = Trouble::Rivals;

/// How long the race lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    Rounds(u32),
    Time(Duration),
}

impl Length {
    /// Of the two last words of the command.
    pub(crate) fn of(unit: &str, count: &str) -> Self {
        let count = count.parse().expect("a count");
        match unit {
            "rounds" => Self::Rounds(count),
            "seconds" => Self::Time(Duration::from_secs(u64::from(count))),
            other => panic!("{other}? `rounds` or `seconds`"),
        }
    }
}

/// The two specs, told apart by what is in the environment of a command.
const VARIANTS: [&str; 2] = ["first", "second"];

/// Races, and leaves whatever is there at the end.
pub(crate) async fn run(owner: &str, image: &str, seed: u64, length: Length) {
    let mut random = Rng::with_seed(seed);
    let backend = DockerBackend::connect(&call(), DockerConfig::new(owner)).await;
    let backend = backend.unwrap();
    let key = SandboxKey::new("race", "race", "race");
    let specs = VARIANTS.map(|variant| spec(image, variant));
    let begin = Instant::now();
    let mut round = 0;
    loop {
        let over = match length {
            Length::Rounds(most) => round >= most,
            Length::Time(most) => begin.elapsed() >= most,
        };
        if over {
            break;
        }
        round += 1;
        match random.u8(..100) {
            0..80 => {
                let which = random.usize(..VARIANTS.len());
                take(
                    &backend,
                    &key,
                    (&specs[which], VARIANTS[which]),
                    &mut random,
                )
                .await;
            }
            80..93 => {
                let dispose = async |call: &_| backend.dispose(call, &key, Which::All).await;
                if let Ok(removed) = TROUBLE.run("dispose", dispose).await {
                    TROUBLE.removed("dispose", &removed);
                }
            }
            _ => reap(&backend, &mut random).await,
        }
    }
    let closed = TROUBLE
        .run("close", async |call| backend.close(call).await)
        .await;
    if let Ok(closed) = closed {
        TROUBLE.removed("close", &closed);
    }
}

fn spec(image: &str, variant: &str) -> Arc<SandboxSpec> {
    SandboxSpec::builder("race")
        .image(Image::reference(image))
        .env([("VARIANT", variant)])
        .build()
        .unwrap()
}

/// Takes the sandbox, and uses it a few times or not at all.
async fn take(
    backend: &DockerBackend,
    key: &SandboxKey,
    (spec, variant): (&Arc<SandboxSpec>, &str),
    random: &mut Rng,
) {
    let acquire = async |call: &_| backend.acquire(call, key, spec).await;
    let Ok(sandbox) = TROUBLE.run("acquire", acquire).await else {
        return;
    };
    for _ in 0..random.u32(..4) {
        // Some are so slow that others find the sandbox in use.
        let pause = random.choice([0.0, 0.0, 0.2, 1.0]).unwrap_or_default();
        if !command(&sandbox, variant, pause).await {
            return;
        }
    }
}

/// One command of so many seconds, which must see the spec that was asked for;
/// `false` when the sandbox is gone.
async fn command(sandbox: &Sandbox, variant: &str, pause: f32) -> bool {
    let line = format!("sleep {pause}; echo $VARIANT");
    let request = ExecRequest::shell(line).timeout(Duration::from_secs(30));
    let request = request.build().unwrap();
    let exec = async |call: &_| sandbox.exec(call, request).await;
    let Ok(outcome) = TROUBLE.run("exec", exec).await else {
        return false;
    };
    let expected = ExecStatus::Exited(0);
    TROUBLE.status("command", &outcome.status, &expected);
    if outcome.status == expected && outcome.stdout_text().trim() != variant {
        let detail = format!(
            "asked for {variant}, ran in {}",
            outcome.stdout_text().trim()
        );
        tell("command: in another spec's sandbox", false, &detail);
    }
    outcome.status == expected
}

async fn reap(backend: &DockerBackend, random: &mut Rng) {
    let filter = match random.bool() {
        true => ReapFilter::everything(),
        false => ReapFilter::everything().including_in_use(),
    };
    let reap = async |call: &_| backend.reap(call, &filter).await;
    if let Ok(reaped) = TROUBLE.run("reap", reap).await {
        TROUBLE.reaped("reap", &reaped);
    }
}
