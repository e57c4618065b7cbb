//! Builds on a real engine, and what becomes of their images.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docker_driver::stand_in::until;
use docker_driver::{
    Bounds, Build, CallErrorKind, CreateContainer, ImageId, ImageRef, InspectImage, LineSink,
    ListContainers, ListImages, Removal, RemoveContainer, RemoveImage,
};
use tempfile::TempDir;

use crate::support::{Bench, python, unique};

/// A folder with a Dockerfile that no other test has.
fn folder(steps: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let recipe = format!("FROM {}\n# {}\n{steps}\n", python(), unique());
    fs::write(folder.path().join("Dockerfile"), recipe).unwrap();
    folder
}

fn build(folder: &TempDir, bench: &Bench) -> Build {
    Build::new(folder.path())
        .unwrap()
        .labels([bench.label()])
        .offline()
}

/// A sink, and what it was told.
fn sink() -> (LineSink, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let sink = LineSink::new(move |line| tell.lock().unwrap().push(line.to_owned()));
    (sink, told)
}

async fn images(bench: &Bench) -> Vec<ImageId> {
    let list = ListImages::labelled([bench.label()]);
    let rows = bench.docker.query(&Bounds::patient(), list).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

async fn remove(bench: &Bench, id: &ImageId) -> Result<Removal, CallErrorKind> {
    let remove = RemoveImage::new(id.clone());
    let removal = bench.docker.mutate(&Bounds::patient(), remove).await;
    removal.map_err(|error| error.kind())
}

#[tokio::test]
async fn an_image_is_built_found_used_and_removed() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let folder = folder(&format!("RUN echo {} > /built; echo it is done", unique()));
    let (sink, told) = sink();
    let name = ImageRef::new(format!("docker-driver-{}:1", unique())).unwrap();
    let build = build(&folder, &bench).tell(sink).tag(name.clone());
    let id = bench.docker.query(&bounds, build).await.unwrap();
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains("it is done"), "{told}");
    let look = InspectImage::new(name.clone());
    let facts = bench.docker.query(&bounds, look).await.unwrap().unwrap();
    assert_eq!(facts.id, id.as_str());
    assert!(facts.created.is_some());
    assert_eq!(facts.tags, [name.as_str()]);
    assert_eq!(images(&bench).await, std::slice::from_ref(&id));
    let rows = ListImages::default().only(id.clone());
    let rows = bench.docker.query(&bounds, rows).await.unwrap();
    assert_eq!(rows[0].tags, [name.as_str()]);

    let by_id = ImageRef::new(id.as_str()).unwrap();
    let create = CreateContainer(bench.options_of(by_id));
    let container = bench.docker.mutate(&bounds, create).await.unwrap();
    assert_eq!(remove(&bench, &id).await, Err(CallErrorKind::ImageInUse));
    let removal = RemoveContainer::new(container);
    bench.docker.mutate(&bounds, removal).await.unwrap();
    assert_eq!(remove(&bench, &id).await, Ok(Removal::Removed));
    assert_eq!(remove(&bench, &id).await, Ok(Removal::Absent));
    assert_eq!(images(&bench).await, []);
    bench.finish().await;
}

#[tokio::test]
async fn each_failure_of_a_build_has_its_kind() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let elsewhere = tempfile::tempdir().unwrap();
    let recipe = "FROM 127.0.0.1:1/absent:1\nRUN true\n";
    fs::write(elsewhere.path().join("Dockerfile"), recipe).unwrap();
    for (folder, kind) in [
        (
            folder("RUN echo no space left on device; false"),
            CallErrorKind::BuildFailed,
        ),
        (folder("COPY absent /"), CallErrorKind::BuildFailed),
        (folder("FRUM x"), CallErrorKind::BuildFailed),
        (tempfile::tempdir().unwrap(), CallErrorKind::NoDockerfile),
        (elsewhere, CallErrorKind::RegistryUnreachable),
    ] {
        let result = bench.docker.query(&bounds, build(&folder, &bench)).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(!error.detail().is_empty());
    }
    let absent = Build::new("/absent/folder").unwrap();
    let error = bench.docker.query(&bounds, absent).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoDockerfile, "{error:?}");
    assert_eq!(images(&bench).await, []);
    bench.finish().await;
}

#[tokio::test]
async fn a_build_that_is_given_up_leaves_no_container_and_no_image_of_its_own() {
    let bench = Bench::new().await;
    let mark = unique();
    // A container that the build makes has this label, by its image.
    let label = docker_driver::Label::new("docker-driver.built", &*mark).unwrap();
    let folder = folder(&format!("LABEL {label}\nRUN echo it has begun; sleep 1000"));
    let (sink, told) = sink();
    let bounds = Bounds::patient();
    let begun = until("the step", || {
        let told = told.lock().unwrap();
        told.iter()
            .any(|line| line.contains("it has begun") && !line.contains("RUN"))
    });
    tokio::select! {
        result = bench.docker.query(&bounds, build(&folder, &bench).tell(sink)) => panic!("{result:?}"),
        () = begun => {}
    }
    let list = || ListContainers::labelled([label.clone()]);
    let last = tokio::time::Instant::now() + Duration::from_secs(60);
    while !bench
        .docker
        .query(&bounds, list())
        .await
        .unwrap()
        .is_empty()
    {
        assert!(tokio::time::Instant::now() < last, "its container is left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(images(&bench).await, []);
    // That of the step before has no label of ours.
    let between = ListImages::labelled([label]);
    for row in bench.docker.query(&bounds, between).await.unwrap() {
        assert_eq!(row.tags, [] as [&str; 0]);
        remove(&bench, &row.id).await.unwrap();
    }
    bench.finish().await;
}
