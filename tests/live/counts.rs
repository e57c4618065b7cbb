//! What an operation costs, counted in docker commands by the driver's own
//! log, on the uncontended path.

use stockade::SandboxKey;
use stockade::{Backend as _, ExecRequest, Which};
use stockade_tests::engine::{Host, PYTHON, call, spec, unique};

/// The backend's own count since it was made.
fn count(host: &Host) -> u64 {
    host.backend.invocations()
}

#[tokio::test]
async fn a_sandbox_costs_what_the_design_says() {
    let host = Host::new().await;
    let bound = count(&host);
    assert!(bound <= 3, "binding took {bound}");

    let spec = spec(PYTHON).build().unwrap();
    let key = |call: &str| SandboxKey::new("tests", unique("counts"), "agent").with_call(call);

    // The engine may not have the runtime yet; the first acquire brings it.
    let warm_up = key("0");
    let sandbox = host
        .backend
        .acquire(&call(), &warm_up, &spec)
        .await
        .unwrap();
    drop(sandbox);
    let _ = host
        .backend
        .dispose(&call(), &warm_up, Which::All)
        .await
        .unwrap();

    let fresh = Host::new().await;
    let before = count(&fresh);
    let first = key("1");
    let sandbox = fresh.backend.acquire(&call(), &first, &spec).await.unwrap();
    assert_eq!(
        count(&fresh) - before,
        3,
        "first use of an image: inspect, facts, run"
    );
    drop(sandbox);
    let _ = fresh
        .backend
        .dispose(&call(), &first, Which::All)
        .await
        .unwrap();

    let second = key("2");
    let before = count(&fresh);
    let sandbox = fresh
        .backend
        .acquire(&call(), &second, &spec)
        .await
        .unwrap();
    assert_eq!(count(&fresh) - before, 1, "acquire, cold");
    assert!(sandbox.freshly_created());

    let before = count(&fresh);
    let again = fresh
        .backend
        .acquire(&call(), &second, &spec)
        .await
        .unwrap();
    assert_eq!(count(&fresh) - before, 1, "acquire, warm");
    assert!(!again.freshly_created());
    assert_eq!(again.id(), sandbox.id());

    let before = count(&fresh);
    let true_ = || ExecRequest::argv(["true"]).build().unwrap();
    sandbox.exec(&call(), true_()).await.unwrap();
    assert_eq!(count(&fresh) - before, 1, "opening the channel");

    let before = count(&fresh);
    for _ in 0..20 {
        sandbox.exec(&call(), true_()).await.unwrap();
        again.exec(&call(), true_()).await.unwrap();
    }
    assert_eq!(
        count(&fresh) - before,
        0,
        "commands on an open channel, from both handles"
    );

    drop((sandbox, again));
    let before = count(&fresh);
    let removed = fresh
        .backend
        .dispose(&call(), &second, Which::All)
        .await
        .unwrap();
    assert_eq!(removed.count, 1);
    assert!(count(&fresh) - before <= 2, "dispose");
    fresh.finish().await;
    host.finish().await;
}
