//! The words of every verb, as docker is given them.

#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot unwrap has failed it"
)]

use std::process::Command;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use docker_driver::{
    Argv, Build, ContainerId, ContainerName, ContainerPath, CopyIn, CreateContainer, CreateVolume,
    CreationMark, DiskUsage, EngineTime, EnvVar, ExecStream, ImageId, ImageRef, InspectContainer,
    InspectContainers, InspectImage, InspectVolume, KillContainer, Label, LineSink, ListContainers,
    ListImages, ListVolumes, Mount, PastEvents, PauseContainer, Platform, Pull, RemoveContainer,
    RemoveImage, RemoveVolume, RunDetached, RunForeground, RunOptions, Signal, StartContainer,
    TmpfsVolume, UnpauseContainer, User, Verb, VolumeName, verb_of,
};
use proptest::prelude::*;

const ID: &str = "4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824";

/// What is the same in every container.
const ALWAYS: &str = "--pull=never --network=none --cap-drop=ALL --security-opt=no-new-privileges \
    --ipc=private --cgroupns=private --log-driver=none --restart=no --init=false --no-healthcheck=true";

fn id() -> ContainerId {
    ContainerId::new(ID).unwrap()
}

fn name() -> ContainerName {
    ContainerName::new("box").unwrap()
}

fn volume() -> VolumeName {
    VolumeName::new("vol").unwrap()
}

fn image() -> ImageRef {
    ImageRef::new("example/image:1").unwrap()
}

fn path(text: &str) -> ContainerPath {
    ContainerPath::new(text).unwrap()
}

fn label(key: &str, value: &str) -> Label {
    Label::new(key, value).unwrap()
}

fn mark() -> CreationMark {
    CreationMark::new(label("mark", "1"))
}

fn bare() -> RunOptions {
    RunOptions::new(name(), mark(), image())
}

fn full() -> RunOptions {
    bare()
        .labels([label("owner", "me, \"myself\"")])
        .platform(Platform::new("linux/amd64").unwrap())
        .program("/.stockade/guest", ["serve", "--name=it's", ""])
        .user(User {
            uid: 1000,
            gid: 100,
        })
        .groups([5, 6])
        .work_dir(path("/work dir"))
        .hostname(ContainerName::new("inside").unwrap())
        .environment([
            EnvVar::new("TOKEN", "s3cret\nvalue").unwrap(),
            EnvVar::new("HTTP_PROXY", "http://s3cret").unwrap(),
        ])
        .mounts([
            Mount::volume(volume(), path("/.stockade")).read_only(),
            Mount::volume(volume(), path("/data,1")),
            Mount::tmpfs(path("/tmp"), 64 << 20, 0o1777),
            Mount::tmpfs_volume(TmpfsVolume {
                path: path("/work"),
                bytes: 1 << 20,
                inodes: 100,
                owner: Some((1000, 100)),
                mode: 0o700,
                labels: vec![label("role", "work"), label("said", "a,\"b\"")],
            }),
        ])
        .read_only()
        .remove_at_end()
        .memory_without_swap(1 << 30)
        .milli_cpus(1050)
        .pids(256)
        .shm_bytes(64 << 20)
        .open_files(1024, 4096)
        .core_bytes(0)
        .stop_signal(Signal::Usr1)
}

#[track_caller]
fn check(argv: &Argv, expected: &str) {
    assert_eq!(argv.to_string(), expected);
}

#[test]
fn a_bare_container_is_closed_and_without_privileges() {
    let options = format!(
        "--name=box --label=mark=1 {ALWAYS} --read-only=false --rm=false '--cidfile=(private file)' example/image:1"
    );
    check(
        &RunDetached(bare()).argv(),
        &format!("docker run --detach=true {options}"),
    );
    check(
        &CreateContainer(bare()).argv(),
        &format!("docker create {options}"),
    );
    check(
        &RunForeground::new(bare(), 1).argv(),
        &format!("docker run {options}"),
    );
}

#[test]
fn a_full_container_has_every_option_as_one_word_and_no_secret() {
    let mounts = "--mount=type=volume,source=vol,destination=/.stockade,volume-nocopy=true,readonly=true \
        '--mount=type=volume,source=vol,\"destination=/data,1\",volume-nocopy=true' \
        --tmpfs=/tmp:rw,exec,nosuid,nodev,size=67108864,mode=1777 \
        '--mount=type=volume,destination=/work,volume-nocopy=true,volume-driver=local,\
        volume-opt=type=tmpfs,volume-opt=device=tmpfs,\
        \"volume-opt=o=size=1048576,nr_inodes=100,mode=700,nosuid,nodev,uid=1000,gid=100\",\
        volume-label=role=work,\"volume-label=said=a,\"\"b\"\"\"'";
    let expected = format!(
        "docker create --name=box --label=mark=1 '--label=owner=me, \"myself\"' {ALWAYS} \
         --read-only=true --rm=true --platform=linux/amd64 --user=1000:100 --group-add=5 --group-add=6 \
         '--workdir=/work dir' --hostname=inside --memory=1073741824 --memory-swap=1073741824 \
         --cpus=1.050 --pids-limit=256 --shm-size=67108864 --ulimit=nofile=1024:4096 --ulimit=core=0:0 \
         --stop-signal=USR1 --entrypoint=/.stockade/guest --env=TOKEN '--env-file=(private file)' \
         '--cidfile=(private file)' {mounts} example/image:1 serve '--name=it'\\''s' ''"
    );
    let argv = CreateContainer(full()).argv();
    check(&argv, &expected);
    assert_eq!(
        argv.env_names().collect::<Vec<_>>(),
        ["TOKEN", "HTTP_PROXY"]
    );
    assert!(!format!("{argv:?} {argv}").contains("s3cret"));
}

#[test]
fn a_tmpfs_volume_without_an_owner_names_none() {
    let volume = TmpfsVolume {
        path: path("/work"),
        bytes: 1,
        inodes: 2,
        owner: None,
        mode: 0o1777,
        labels: vec![],
    };
    let argv = CreateContainer(bare().mounts([Mount::tmpfs_volume(volume)])).argv();
    let word = argv
        .words()
        .find(|word| word.starts_with("--mount="))
        .unwrap()
        .to_owned();
    assert!(
        word.ends_with("\"volume-opt=o=size=1,nr_inodes=2,mode=1777,nosuid,nodev\""),
        "{word}"
    );
}

#[test]
fn an_anonymous_volume_has_no_source_and_is_shared_by_the_id_of_its_container() {
    let mount = Mount::anonymous_volume(path("/work")).labelled([label("role", "work")]);
    let argv = CreateContainer(bare().mounts([mount]).volumes_from(id())).argv();
    let words: Vec<_> = argv.words().collect();
    let mount = "--mount=type=volume,destination=/work,volume-nocopy=true,volume-label=role=work";
    assert!(words.contains(&mount), "{words:?}");
    assert!(
        words.contains(&format!("--volumes-from={ID}").as_str()),
        "{words:?}"
    );
}

#[test]
fn containers_are_looked_at_and_handled_by_name_or_id() {
    check(
        &InspectContainer::new(name()).argv(),
        "docker container inspect box",
    );
    check(&StartContainer::new(name()).argv(), "docker start box");
    check(
        &KillContainer::new(id(), Signal::Usr1).argv(),
        &format!("docker kill --signal=USR1 {ID}"),
    );
    check(
        &PauseContainer::new(id()).argv(),
        &format!("docker pause {ID}"),
    );
    check(
        &UnpauseContainer::new(id()).argv(),
        &format!("docker unpause {ID}"),
    );
    check(
        &RemoveContainer::new(id()).argv(),
        &format!("docker rm --force=true --volumes=true {ID}"),
    );
    check(
        &CopyIn::new(id(), path("/a b"), Bytes::new()).argv(),
        &format!("docker cp - '{ID}:/a b'"),
    );
    check(
        &ExecStream::new(id(), "/.stockade/guest", ["attach"])
            .user(User { uid: 1, gid: 2 })
            .argv(),
        &format!("docker exec --interactive=true --user=1:2 {ID} /.stockade/guest attach"),
    );
}

#[test]
fn lists_are_narrowed_by_filters() {
    let list = ListContainers::labelled([label("a", "b c")])
        .having(&label("d", "x"))
        .only(name());
    check(
        &list.argv(),
        "docker ps --all=true --no-trunc=true '--format={{json .}}' '--filter=label=a=b c' --filter=label=d --filter=name=box",
    );
    check(
        &ListContainers::default().only(id()).argv(),
        &format!("docker ps --all=true --no-trunc=true '--format={{{{json .}}}}' --filter=id={ID}"),
    );
    check(
        &ListVolumes::labelled([label("a", "b")])
            .only(volume())
            .argv(),
        "docker volume ls '--format={{json .}}' --filter=label=a=b --filter=name=vol",
    );
}

#[test]
fn many_containers_are_looked_at_by_their_ids() {
    let (one, two) = ("1".repeat(64), "2".repeat(64));
    let ids = [&two, &one, &one].map(|id| ContainerId::new(id.as_str()).unwrap());
    check(
        &InspectContainers::of(ids.clone())[0].argv(),
        &format!("docker container inspect {one} {two}"),
    );
    check(
        &ListContainers::default().among(ids).argv(),
        &format!(
            "docker ps --all=true --no-trunc=true '--format={{{{json .}}}}' --filter=id={one} --filter=id={two}"
        ),
    );
}

#[test]
fn the_engine_is_asked() {
    check(&EngineTime.argv(), "docker info '--format={{json .}}'");
    check(
        &DiskUsage.argv(),
        "docker system df --verbose=true '--format={{json .}}'",
    );
    let at = |nanoseconds| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    let past = PastEvents::between(at(1_000_000_002), at(3_456_000_000));
    check(
        &past.argv(),
        "docker events --since=1.000000002 --until=3.456000000 '--format={{json .}}'",
    );
    let past = past
        .labelled([label("a", "b c")])
        .kind("container")
        .action("die")
        .action("oom")
        .container(name());
    check(
        &past.argv(),
        "docker events --since=1.000000002 --until=3.456000000 '--format={{json .}}' \
         '--filter=label=a=b c' --filter=type=container --filter=event=die --filter=event=oom \
         --filter=container=box",
    );
}

#[test]
fn builds_and_images() {
    let build = Build::new("/a folder/-x").unwrap();
    check(
        &build.argv(),
        "docker build --force-rm=true '--iidfile=(private file)' '/a folder/-x'",
    );
    let full = build
        .labels([label("a", "b c")])
        .platform(Platform::new("linux/arm64").unwrap())
        .offline()
        .tag(image());
    check(
        &full.argv(),
        "docker build --force-rm=true '--iidfile=(private file)' --platform=linux/arm64 \
         --network=none --tag=example/image:1 '--label=a=b c' '/a folder/-x'",
    );
    let relative = Build::new("-x").unwrap().argv();
    assert!(relative.words().last().unwrap().starts_with('/'));
    assert!(Build::new("").is_err());
    let id = ImageId::new(format!("sha256:{ID}")).unwrap();
    check(
        &RemoveImage::new(id.clone()).argv(),
        &format!("docker image rm sha256:{ID}"),
    );
    check(
        &ListImages::labelled([label("a", "b")]).argv(),
        "docker image ls --all=false --no-trunc=true '--format={{json .}}' --filter=label=a=b",
    );
    check(
        &ListImages::default().only(id).argv(),
        "docker image ls --all=true --no-trunc=true '--format={{json .}}'",
    );
}

#[test]
fn streams_are_told_by_their_words() {
    let argv = ExecStream::new(id(), "/guest", ["ps"]).argv();
    let words: Vec<_> = argv.words().collect();
    assert_eq!(verb_of(&words), Some(ExecStream::NAME));
}

#[test]
fn images_and_volumes() {
    check(
        &InspectImage::new(image()).argv(),
        "docker image inspect example/image:1",
    );
    check(
        &Pull::new(image()).argv(),
        "docker pull --quiet=true example/image:1",
    );
    let told = Pull::new(image())
        .platform(Platform::new("linux/arm64").unwrap())
        .tell(LineSink::new(|_| {}));
    check(
        &told.argv(),
        "docker pull --quiet=false --platform=linux/arm64 example/image:1",
    );
    check(
        &CreateVolume::new(volume(), mark())
            .labels([label("a", "b")])
            .argv(),
        "docker volume create --driver=local --label=mark=1 --label=a=b vol",
    );
    check(
        &InspectVolume::new(volume()).argv(),
        "docker volume inspect vol",
    );
    check(&RemoveVolume::new(volume()).argv(), "docker volume rm vol");
}

/// The words that a shell makes of a line.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell is the judge here, not the driver"
)]
fn words_of_a_shell(line: &str) -> Vec<String> {
    let script = format!("docker() {{ printf '%s\\0' \"$@\"; }}; {line}");
    let output = Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<_> = text.split('\0').map(str::to_owned).collect();
    words[..words.len() - 1].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_shown_command_is_read_back_by_a_shell_as_the_same_words(
        program in "[^\\x00]{1,20}",
        arguments in prop::collection::vec("[^\\x00]{0,20}", 0..6),
        value in "\\PC{0,20}",
    ) {
        let options = bare().program(program, arguments).labels([label("key", &value)]);
        let argv = RunDetached(options).argv();
        let words: Vec<_> = argv.words().map(str::to_owned).collect();
        prop_assert_eq!(words_of_a_shell(&argv.to_string()), words);
    }

    #[test]
    fn no_name_can_be_read_as_an_option(text in "\\PC{0,40}") {
        let names = [
            ContainerName::new(text.as_str()).map(|name| name.to_string()),
            ContainerId::new(text.as_str()).map(|name| name.to_string()),
            VolumeName::new(text.as_str()).map(|name| name.to_string()),
            ImageRef::new(text.as_str()).map(|name| name.to_string()),
            ImageId::new(text.as_str()).map(|name| name.to_string()),
            ContainerPath::new(text.as_str()).map(|name| name.to_string()),
            Platform::new(text.as_str()).map(|name| name.to_string()),
        ];
        for name in names.into_iter().flatten() {
            prop_assert!(!name.starts_with('-') && !name.is_empty());
            prop_assert_eq!(&name, &text);
        }
    }
}
