//! Plans as values.

use std::sync::Arc;

use docker_driver::{RunDetached, Verb as _};
use stockade::spec::{Hardening, Image, SpecBuilder, Storage};
use stockade::vocabulary::IsolationScope;
use stockade::{Refusal, ResourceLimits, SandboxSpec};
use stockade_wire::message::{PathFacts, PathKind, UserFacts};

use super::*;

fn spec(change: impl FnOnce(SpecBuilder) -> SpecBuilder) -> Arc<SandboxSpec> {
    let builder = SandboxSpec::builder("python").image(Image::reference("python:3"));
    change(builder).build().unwrap()
}

fn image(change: impl FnOnce(&mut ImageFacts)) -> ImageFacts {
    let mut image = ImageFacts {
        id: format!("sha256:{}", "a".repeat(64)),
        user_name: String::new(),
        user: Ok(user(0, 0)),
        env: vec!["PATH=/opt/bin:/bin".to_owned()],
        volumes: vec![],
        paths: vec![
            at("/work", PathKind::Absent),
            at("/tmp", PathKind::Directory),
        ],
    };
    change(&mut image);
    image
}

fn user(uid: u32, gid: u32) -> UserFacts {
    UserFacts {
        uid,
        gid,
        groups: vec![],
        name: None,
        home: None,
    }
}

fn at(path: &str, what: PathKind) -> PathFacts {
    PathFacts {
        path: path.into(),
        what,
        uid: 0,
        gid: 0,
        mode: 0o755,
    }
}

const HOST: Host = Host {
    memory_limit: true,
    swap_limit: true,
    pids_limit: true,
    cpu_quota: true,
    user_namespaces: false,
    cpus: 4,
    memory_total: 8 << 30,
};

fn planned(spec: &SandboxSpec, image: &ImageFacts, host: &Host) -> Result<Plan, Refusal> {
    plan(
        spec,
        image,
        host,
        RuntimeAt {
            volume: "stockade-runtime-x",
            digest: "d1",
        },
    )
}

fn argv(plan: &Plan) -> Vec<String> {
    let name = ContainerName::new("stockade-0123456789ab").unwrap();
    let mark = CreationMark::new(Label::new("dev.stockade.nonce", "n1").unwrap());
    let labels = vec![Label::new("dev.stockade.kind", "python").unwrap()];
    let options = plan.options(name, mark, labels).unwrap();
    RunDetached(options)
        .argv()
        .words()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_strict_sandbox_is_exactly_this_command() {
    let plan = planned(&spec(|spec| spec), &image(|_| {}), &HOST).unwrap();
    let mut words = argv(&plan);
    let at = words
        .iter()
        .position(|word| word.starts_with("sha256:"))
        .unwrap();
    let command = words.split_off(at);
    words.sort();
    let expected = [
        "--cap-drop=ALL",
        "--cgroupns=private",
        "--cidfile=(private file)",
        "--cpus=1.000",
        "--detach=true",
        "--entrypoint=/.stockade/guest",
        "--init=false",
        "--ipc=private",
        "--label=dev.stockade.kind=python",
        "--label=dev.stockade.nonce=n1",
        "--log-driver=none",
        "--memory-swap=1073741824",
        "--memory=1073741824",
        "--name=stockade-0123456789ab",
        "--network=none",
        "--no-healthcheck=true",
        "--pids-limit=256",
        "--pull=never",
        "--read-only=true",
        "--restart=no",
        "--rm=true",
        "--security-opt=no-new-privileges",
        "--shm-size=67108864",
        "--ulimit=core=0:0",
        "--ulimit=nofile=1024:4096",
        "--user=65534:65534",
        "--workdir=/",
    ];
    for word in expected {
        assert!(
            words.iter().any(|found| found == word),
            "{word} is not in {words:#?}"
        );
    }
    let others: Vec<_> = words
        .iter()
        .filter(|word| !expected.contains(&word.as_str()) && !word.starts_with("--mount="))
        .filter(|word| !word.starts_with("--tmpfs=") && *word != "run")
        .collect();
    assert!(others.is_empty(), "words that no one expects: {others:?}");
    let id = format!("sha256:{}", "a".repeat(64));
    let init = [
        "init",
        "--work=/work",
        "--idle-limit-ms=1800000",
        "--max-age-ms=86400000",
    ];
    assert_eq!(command[0], id);
    assert_eq!(command[1..], init);
}

#[test]
fn strict_never_runs_as_root_and_as_image_runs_as_the_image_says() {
    let rows = [
        (Hardening::Strict, user(0, 0), (65534, 65534)),
        (Hardening::Strict, user(12345, 0), (12345, 12345)),
        (Hardening::Strict, user(33, 33), (33, 33)),
        (Hardening::AsImage, user(0, 0), (0, 0)),
        (Hardening::AsImage, user(12345, 0), (12345, 0)),
    ];
    for (hardening, images, expected) in rows {
        let image = image(|image| image.user = Ok(images.clone()));
        let plan = planned(&spec(|spec| spec.hardening(hardening)), &image, &HOST).unwrap();
        assert_eq!(
            (plan.user.uid, plan.user.gid),
            expected,
            "{hardening:?} {images:?}"
        );
        assert_eq!(plan.read_only_root, hardening == Hardening::Strict);
    }
}

#[test]
fn an_image_user_that_is_unknown_is_refused_under_both_profiles() {
    for hardening in [Hardening::Strict, Hardening::AsImage] {
        let image = image(|image| {
            image.user_name = "ghost".to_owned();
            image.user = Err("there is no such name in /etc/passwd".to_owned());
        });
        let refusal = planned(&spec(|spec| spec.hardening(hardening)), &image, &HOST).unwrap_err();
        assert!(matches!(refusal, Refusal::ImageUserUnresolved { user, .. } if user == "ghost"));
    }
}

#[test]
fn a_mount_never_hides_content_of_the_image() {
    let rows = [
        (PathKind::Absent, None),
        (PathKind::EmptyDirectory, None),
        (PathKind::Directory, Some("work_dir_hides_content")),
        (PathKind::File, Some("work_dir_not_directory")),
        (PathKind::Link, Some("work_dir_not_directory")),
        (PathKind::Other, Some("work_dir_not_directory")),
    ];
    for (what, refused) in rows {
        let image = image(|image| image.paths[0] = at("/work", what));
        let found = planned(&spec(|spec| spec), &image, &HOST).err();
        assert_eq!(found.as_ref().map(Refusal::code), refused, "{what:?}");
    }
}

#[test]
fn the_images_own_directory_is_no_mount_and_outlives_the_end() {
    let spec = spec(|spec| spec.hardening(Hardening::AsImage).storage(Storage::Root));
    let image = image(|image| {
        let root = at("/", PathKind::Directory);
        image.paths = vec![at("/work", PathKind::Directory), root];
    });
    let words = argv(&planned(&spec, &image, &HOST).unwrap());
    assert!(words.contains(&"--rm=false".to_owned()), "{words:#?}");
    assert!(!words.iter().any(|word| word.contains("destination=/work")));
    assert!(!words.iter().any(|word| word.contains("volumes-from")));
}

#[test]
fn root_storage_is_refused_where_the_image_has_no_directory_of_its_own() {
    type Change = fn(&mut ImageFacts);
    let rows: [(&str, Change); 6] = [
        ("work_dir_not_directory", |image| {
            image.paths[0].what = PathKind::Absent;
        }),
        ("work_dir_not_directory", |image| {
            image.paths[0].what = PathKind::Link;
        }),
        ("work_dir_not_directory", |image| {
            drop(image.paths.remove(1))
        }),
        ("storage_mismatch", |image| image.user = Ok(user(7, 7))),
        ("storage_mismatch", |image| {
            image.user = Ok(user(7, 7));
            image.paths[0].mode = 0o777;
            image.paths[1].mode = 0o700;
        }),
        ("storage_mismatch", |image| {
            image.volumes.push("/work/".to_owned())
        }),
    ];
    let spec = spec(|spec| spec.hardening(Hardening::AsImage).storage(Storage::Root));
    for (code, change) in rows {
        let image = image(|image| {
            image.paths = ["/work", "/"]
                .map(|path| at(path, PathKind::Directory))
                .into();
            change(image);
        });
        let refusal = planned(&spec, &image, &HOST).unwrap_err();
        assert_eq!(refusal.code(), code, "{refusal}");
    }
}

#[test]
fn a_disk_comes_from_a_holder_with_the_labels_of_its_sandbox() {
    let plan = planned(
        &spec(|spec| spec.storage(Storage::Disk)),
        &image(|_| {}),
        &HOST,
    )
    .unwrap();
    let words = argv(&plan);
    assert!(words.contains(&"--rm=false".to_owned()), "{words:#?}");
    assert!(!words.iter().any(|word| word.contains("destination=/work")));

    let mark = CreationMark::new(Label::new("dev.stockade.nonce", "n1").unwrap());
    let labels = [("kind", "python"), ("role", "guest")]
        .map(|(key, value)| Label::new(format!("dev.stockade.{key}"), value).unwrap());
    let name = ContainerName::new("stockade-0123456789ab-n1-work").unwrap();
    let holder = plan.holder(name, mark, &labels).unwrap().unwrap();
    assert_eq!(
        (holder.path.as_str(), holder.uid, holder.gid),
        ("/work", 65534, 65534)
    );
    let holder = docker_driver::CreateContainer(holder.options);
    let words: Vec<_> = holder.argv().words().map(str::to_owned).collect();
    let volume = "--mount=type=volume,destination=/work,volume-nocopy=true,\
        volume-label=dev.stockade.kind=python,volume-label=dev.stockade.role=work";
    for word in [
        volume,
        "--label=dev.stockade.kind=python",
        "--label=dev.stockade.role=work",
        "--read-only=false",
    ] {
        assert!(
            words.iter().any(|found| found == word),
            "{word}: {words:#?}"
        );
    }
    assert!(!words.contains(&"--label=dev.stockade.role=guest".to_owned()));
}

#[test]
fn only_what_a_conversation_keeps_outlives_its_end() {
    for storage in [Storage::Tmpfs, Storage::Disk] {
        for scope in [IsolationScope::Call, IsolationScope::Conversation] {
            let spec = spec(|spec| spec.storage(storage).isolation_scope(scope));
            let plan = planned(&spec, &image(|_| {}), &HOST).unwrap();
            let kept = storage == Storage::Disk && scope == IsolationScope::Conversation;
            let word = format!("--rm={}", !kept);
            assert!(argv(&plan).contains(&word), "{storage} {scope}");
            assert_eq!(plan.is_looked_for(), kept, "{storage} {scope}");
        }
    }
}

#[test]
fn a_declared_volume_is_bounded_when_empty_and_refused_with_content() {
    let declared = |what| {
        image(|image| {
            image.volumes.push("/data".to_owned());
            image.paths.push(at("/data", what));
        })
    };
    let plan = planned(
        &spec(|spec| spec),
        &declared(PathKind::EmptyDirectory),
        &HOST,
    )
    .unwrap();
    assert!(
        plan.expected
            .tmpfs
            .iter()
            .any(|(path, size)| path == "/data" && *size == 64 << 20)
    );
    let refusal = planned(&spec(|spec| spec), &declared(PathKind::Directory), &HOST).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::ImageVolume {
            path: "/data".to_owned()
        }
    );
}

#[test]
fn volumes_of_the_image_count_in_the_memory_rule() {
    let mut limits = ResourceLimits::default();
    limits.memory = 450 << 20;
    let spec = spec(|spec| spec.limits(limits));
    assert!(planned(&spec, &image(|_| {}), &HOST).is_ok());
    let declared = image(|image| image.volumes.push("/data".to_owned()));
    let refusal = planned(&spec, &declared, &HOST).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::MemoryRule {
            memory: 450 << 20,
            needed: 512 << 20
        }
    );
}

#[test]
fn a_limit_that_the_engine_cannot_enforce_is_refused_by_name() {
    type Change = fn(&mut Host);
    let rows: [(&str, Change); 4] = [
        ("memory", |host| host.memory_limit = false),
        ("swap", |host| host.swap_limit = false),
        ("pids", |host| host.pids_limit = false),
        ("milli_cpus", |host| host.cpu_quota = false),
    ];
    for (name, change) in rows {
        let mut host = HOST;
        change(&mut host);
        let refusal = planned(&spec(|spec| spec), &image(|_| {}), &host).unwrap_err();
        assert!(matches!(refusal, Refusal::LimitNotEnforceable { limit, .. } if limit == name));
    }
}

#[test]
fn limits_above_the_host_are_refused_with_what_it_has() {
    let host = Host {
        cpus: 2,
        memory_total: 1 << 29,
        ..HOST
    };
    let refusal = planned(&spec(|spec| spec), &image(|_| {}), &host).unwrap_err();
    let expected = Refusal::LimitAboveEngine {
        limit: "memory",
        asked: 1 << 30,
        most: 1 << 29,
    };
    assert_eq!(refusal, expected);
}

#[test]
fn with_remapped_ids_the_work_directory_has_no_owner_and_lets_everybody_write() {
    let host = Host {
        user_namespaces: true,
        ..HOST
    };
    let words = argv(&planned(&spec(|spec| spec), &image(|_| {}), &host).unwrap()).join(" ");
    assert!(
        words.contains("mode=1777") && !words.contains("uid="),
        "{words}"
    );
    let words = argv(&planned(&spec(|spec| spec), &image(|_| {}), &HOST).unwrap()).join(" ");
    assert!(words.contains("uid=65534,gid=65534"), "{words}");
}

#[test]
fn the_environment_is_on_no_command_line_and_the_callers_variables_win() {
    let spec = spec(|spec| spec.env([("HOME", "/elsewhere"), ("TOKEN", "hunter2")]));
    let plan = planned(&spec, &image(|_| {}), &HOST).unwrap();
    assert!(!argv(&plan).join(" ").contains("hunter2"));
    let pairs: Vec<_> = plan.environment.pairs().collect();
    assert!(pairs.contains(&("HOME", "/elsewhere")) && pairs.contains(&("TOKEN", "hunter2")));
    assert!(
        pairs.contains(&("PATH", "/opt/bin:/bin:/work/.local/bin")),
        "{pairs:?}"
    );
}

#[test]
fn everything_that_defines_a_sandbox_is_in_its_definition() {
    let base = planned(&spec(|spec| spec), &image(|_| {}), &HOST)
        .unwrap()
        .definition;
    let mut limits = ResourceLimits::default();
    limits.pids = 255;
    let rows = [
        (
            "limits",
            planned(&spec(|spec| spec.limits(limits)), &image(|_| {}), &HOST),
        ),
        (
            "hardening",
            planned(
                &spec(|spec| spec.hardening(Hardening::AsImage)),
                &image(|_| {}),
                &HOST,
            ),
        ),
        (
            "env",
            planned(&spec(|spec| spec.env([("A", "b")])), &image(|_| {}), &HOST),
        ),
        (
            "image",
            planned(
                &spec(|spec| spec),
                &image(|image| image.id.push('0')),
                &HOST,
            ),
        ),
        (
            "user",
            planned(
                &spec(|spec| spec),
                &image(|image| image.user = Ok(user(7, 7))),
                &HOST,
            ),
        ),
        (
            "execution_contract",
            planned(
                &spec(|spec| spec.execution_contract("v2")),
                &image(|_| {}),
                &HOST,
            ),
        ),
    ];
    for (part, changed) in rows {
        let drift = changed.unwrap().definition.drift(&base.label());
        assert!(drift.iter().any(|field| field == part), "{part}: {drift:?}");
    }
    let labelled = planned(
        &spec(|spec| spec.labels([("note", "x")])),
        &image(|_| {}),
        &HOST,
    );
    assert!(labelled.unwrap().definition.drift(&base.label()).is_empty());
}

#[test]
fn sizes_that_are_no_whole_pages_are_asked_for_as_the_kernel_counts_them() {
    let mut limits = ResourceLimits::default();
    limits.memory = 1_000_000_001;
    limits.work_bytes = 100_000_001;
    limits.tmp_bytes = 1;
    let plan = planned(&spec(|spec| spec.limits(limits)), &image(|_| {}), &HOST).unwrap();
    assert_eq!(
        (plan.memory, plan.expected.memory),
        (999_997_440, 999_997_440)
    );
    let words = argv(&plan).join(" ");
    assert!(
        words.contains("size=100003840,") && words.contains("size=4096,"),
        "{words}"
    );
    let sizes = [("/tmp".to_owned(), 4096), ("/work".to_owned(), 100_003_840)];
    assert_eq!(plan.expected.tmpfs, sizes);
}
