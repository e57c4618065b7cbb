//! Images of every sort are served as they are, or refused by name.

use stockade::spec::{Digest, Hardening, PullPolicy};
use stockade::{
    Backend as _, Error, ExecRequest, ExecStatus, Image, Refusal, SandboxKey, SpecBuilder,
};
use stockade_tests::engine::{Host, PYTHON, call, docker_ok, spec, unique};

/// What an acquire is refused with; nothing may be left.
async fn refused(spec: SpecBuilder) -> Refusal {
    let error = failed(spec).await;
    error
        .refusal()
        .unwrap_or_else(|| panic!("not refused: {error:?}"))
        .clone()
}

async fn failed(spec: SpecBuilder) -> Error {
    let host = Host::new().await;
    let spec = spec.build().expect("the spec is valid");
    let key = SandboxKey::new("tests", unique("images"), "agent").with_call("1");
    let error = host
        .backend
        .acquire(&call(), &key, &spec)
        .await
        .expect_err("it is not served");
    host.finish().await;
    error
}

#[tokio::test]
async fn an_image_that_is_not_there_is_refused_with_its_name() {
    let missing = spec("stockade-test/no-such-image:1")
        .image(Image::reference("stockade-test/no-such-image:1").with_pull(PullPolicy::Never));
    let Refusal::ImageNotFound { reference, .. } = refused(missing).await else {
        panic!()
    };
    assert_eq!(reference, "stockade-test/no-such-image:1");
    let wrong_tag = spec("stockade-test/python:no-such-tag");
    let error = failed(wrong_tag).await;
    assert!(
        error
            .to_string()
            .contains("stockade-test/python:no-such-tag"),
        "{error}"
    );
}

#[tokio::test]
async fn a_digest_that_is_another_images_is_refused_with_both() {
    let other: Digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    let image = Image::reference(PYTHON).with_digest(other.clone());
    let refusal = refused(spec(PYTHON).image(image)).await;
    let Refusal::ImageDigestMismatch { wanted, found } = refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(wanted, other);
    assert!(!found.is_empty());
}

#[tokio::test]
async fn a_digest_that_is_the_images_own_is_served() {
    let id = docker_ok(["image", "inspect", "--format", "{{.Id}}", PYTHON]);
    let image = Image::reference(PYTHON).with_digest(id.parse().unwrap());
    let fixture = Host::new().await.acquire(spec(PYTHON).image(image)).await;
    assert_eq!(fixture.sh("echo on").await.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn an_image_of_another_architecture_is_refused_before_anything_starts() {
    let refusal = refused(spec("stockade-test/arm64:1")).await;
    let Refusal::ImagePlatformMismatch { found, .. } = refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(found, "linux/arm64");
}

#[tokio::test]
async fn a_user_that_the_image_does_not_know_is_refused_for_every_spec() {
    for hardening in [Hardening::Strict, Hardening::AsImage] {
        let refusal = refused(spec("stockade-test/missing-user:1").hardening(hardening)).await;
        assert!(
            matches!(refusal, Refusal::ImageUserUnresolved { .. }),
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn an_empty_declared_volume_is_bounded_and_one_with_content_is_refused() {
    let fixture = Host::new()
        .await
        .acquire(spec("stockade-test/volume:1"))
        .await;
    let outcome = fixture.sh("touch /data/x && stat -f -c %T /data").await;
    assert_eq!(outcome.stdout, "tmpfs\n", "{}", outcome.stderr_text());
    fixture.close().await;
    let refusal = refused(spec("stockade-test/volume-content:1")).await;
    assert!(
        matches!(refusal, Refusal::ImageVolume { .. }),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn an_entrypoint_and_a_health_check_of_the_image_never_run() {
    let fixture = Host::new()
        .await
        .acquire(spec("stockade-test/entrypoint-false:1"))
        .await;
    let outcome = fixture.exec(ExecRequest::argv(["/bin/echo", "on"])).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    let health = docker_ok([
        "inspect",
        "--format",
        "{{json .State.Health}}",
        fixture.container(),
    ]);
    assert_eq!(health, "null");
    fixture.close().await;
}

#[tokio::test]
async fn content_of_the_image_at_the_work_directory_is_never_hidden() {
    let image = "stockade-test/workdir-content:1";
    let refusal = refused(spec(image)).await;
    assert!(
        matches!(refusal, Refusal::WorkDirHidesContent { .. }),
        "{refusal:?}"
    );
    let elsewhere = Host::new()
        .await
        .acquire(spec(image).work_dir("/elsewhere"))
        .await;
    assert_eq!(
        elsewhere.sh("pwd; ls /work | wc -l").await.stdout,
        "/elsewhere\n1\n"
    );
    elsewhere.close().await;
}
