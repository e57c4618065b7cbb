//! Images of a real engine.

use docker_driver::{Bounds, CallErrorKind, ImageRef, InspectImage, Pull};

use crate::support::{Bench, python};

#[tokio::test]
async fn an_image_is_described_and_one_that_is_not_there_is_none() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let found = bench
        .docker
        .query(&bounds, InspectImage::new(python()))
        .await
        .unwrap()
        .unwrap();
    assert!(found.id.starts_with("sha256:"));
    assert_eq!(found.os, bench.docker.engine().os);
    assert_eq!(found.architecture, bench.docker.engine().architecture);
    assert!(found.tags.iter().any(|tag| tag == python().as_str()));
    let by_id = ImageRef::new(found.id.clone()).unwrap();
    let again = bench
        .docker
        .query(&bounds, InspectImage::new(by_id))
        .await
        .unwrap();
    assert_eq!(again, Some(found));
    let absent = ImageRef::new("docker-driver.invalid/absent:1").unwrap();
    assert_eq!(
        bench
            .docker
            .query(&bounds, InspectImage::new(absent))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn a_registry_that_cannot_be_reached_is_told_from_an_image_that_is_not_there() {
    let bench = Bench::new().await;
    let image = ImageRef::new("127.0.0.1:1/absent:1").unwrap();
    let error = bench
        .docker
        .query(&Bounds::patient(), Pull::new(image))
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        CallErrorKind::RegistryUnreachable,
        "{error:?}"
    );
}
