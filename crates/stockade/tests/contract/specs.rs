//! Specs: defaults, and every fault of every field.

use std::time::Duration;

use proptest::prelude::*;
use stockade::spec::{
    AfterAbort, DeclaredOutput, Hardening, HostTools, IdentityBounds, PullPolicy, Service, Storage,
};
use stockade::vocabulary::{IdentityScope, OsFamily};
use stockade::{
    Capabilities, Capability, Egress, EgressPolicy, EgressRule, Feature, Image, Isolation,
    IsolationScope, ResourceLimits, SandboxSpec, SpecBuilder, TransferLimits,
};

use crate::{builder, spec};

/// The fields that a builder's faults name.
fn fields(builder: SpecBuilder) -> Vec<&'static str> {
    match builder.build() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.faults().iter().map(|fault| fault.field()).collect(),
    }
}

fn limits(change: impl FnOnce(&mut ResourceLimits)) -> SpecBuilder {
    let mut limits = ResourceLimits::default();
    change(&mut limits);
    builder().limits(limits)
}

const MIB: u64 = 1024 * 1024;

#[test]
fn defaults_are_closed_strict_and_bounded() {
    let spec = spec();
    assert_eq!(spec.egress(), &Egress::Closed);
    assert_eq!(spec.work_dir().as_str(), "/work");
    assert_eq!(spec.storage(), Storage::Tmpfs);
    assert_eq!(spec.hardening(), Hardening::Strict);
    assert_eq!(spec.image().pull(), PullPolicy::Missing);
    assert_eq!(spec.requires(), Capabilities::from([Capability::Exec]));
    assert_eq!(spec.isolation_scope(), IsolationScope::Conversation);
    assert_eq!(spec.idle_limit(), Duration::from_secs(30 * 60));
    assert_eq!(spec.max_age(), Duration::from_secs(24 * 3600));
    assert_eq!(spec.after_abort(), AfterAbort::Keep);
    assert_eq!(*spec.files_in(), TransferLimits::new(8 * MIB, 32 * MIB, 64));
    assert_eq!(spec.files_in(), spec.files_out());
    assert!(spec.features().is_empty() && spec.env().is_empty() && spec.labels().is_empty());
    let limits = spec.limits();
    assert_eq!((limits.milli_cpus, limits.pids), (1000, 256));
    assert_eq!((limits.memory, limits.work_bytes), (1024 * MIB, 256 * MIB));
    assert_eq!((limits.tmp_bytes, limits.shm_bytes), (64 * MIB, 64 * MIB));
    assert_eq!(limits.work_inodes, 65_536);
    assert_eq!(
        (limits.open_files_soft, limits.open_files_hard),
        (1024, 4096)
    );
}

#[test]
fn a_sandbox_of_one_call_is_idle_for_less() {
    let of_call = builder().isolation_scope(IsolationScope::Call);
    let idle = of_call.clone().build().unwrap().idle_limit();
    assert_eq!(idle, Duration::from_secs(5 * 60));
    let told = of_call.idle_limit(Duration::from_secs(60));
    assert_eq!(told.build().unwrap().idle_limit(), Duration::from_secs(60));
}

#[test]
fn the_default_idle_limit_never_passes_the_maximum_age() {
    let minute = Duration::from_secs(60);
    let spec = builder().max_age(minute).build().unwrap();
    assert_eq!(spec.idle_limit(), minute);
}

#[test]
fn every_fault_is_reported_at_once_and_says_what_to_do() {
    let broken = SandboxSpec::builder(" ")
        .work_dir("work")
        .env([("A=B", "x")])
        .max_age(Duration::ZERO)
        .requires([Capability::Reclaim])
        .labels([("", "x")]);
    let errors = broken.build().unwrap_err();
    let named: Vec<&str> = errors.faults().iter().map(|fault| fault.field()).collect();
    assert_eq!(
        named,
        [
            "kind", "work_dir", "image", "env", "max_age", "requires", "labels"
        ]
    );
    for fault in errors.faults() {
        assert!(
            !fault.wrong().is_empty() && !fault.remedy().is_empty(),
            "{fault}"
        );
    }
    let text = errors.to_string();
    assert!(text.starts_with("7 faults: (1) kind"), "{text}");
    assert!(!text.contains('\n'));
}

#[test]
fn a_zero_limit_is_refused_since_engines_take_it_for_none() {
    type Change = fn(&mut ResourceLimits);
    let changes: [(&str, Change); 9] = [
        ("limits.milli_cpus", |limits| limits.milli_cpus = 0),
        ("limits.memory", |limits| limits.memory = 0),
        ("limits.pids", |limits| limits.pids = 0),
        ("limits.work_bytes", |limits| limits.work_bytes = 0),
        ("limits.work_inodes", |limits| limits.work_inodes = 0),
        ("limits.tmp_bytes", |limits| limits.tmp_bytes = 0),
        ("limits.shm_bytes", |limits| limits.shm_bytes = 0),
        ("limits.open_files_soft", |limits| {
            limits.open_files_soft = 0
        }),
        ("limits.open_files_hard", |limits| {
            limits.open_files_hard = 0
        }),
    ];
    for (field, change) in changes {
        assert!(fields(limits(change)).contains(&field), "{field}");
    }
}

#[test]
fn memory_covers_every_directory_in_memory_and_a_floor() {
    let exact = 256 * MIB + 64 * MIB + 64 * MIB + 64 * MIB;
    let with = |memory: u64| limits(move |limits| limits.memory = memory);
    assert_eq!(fields(with(exact)), [""; 0]);
    assert_eq!(fields(with(exact - 1)), ["limits.memory"]);
    let elsewhere = exact - 256 * MIB;
    assert_eq!(fields(with(elsewhere).storage(Storage::Disk)), [""; 0]);
    assert_eq!(
        fields(with(elsewhere - 1).storage(Storage::Disk)),
        ["limits.memory"]
    );
    let overflow = limits(|limits| {
        limits.work_bytes = u64::MAX;
        limits.memory = u64::MAX;
    });
    assert_eq!(fields(overflow), [""; 0], "sums saturate");
}

#[test]
fn the_soft_limit_of_open_files_is_below_the_hard_one() {
    let crossed = limits(|limits| limits.open_files_soft = 4097);
    assert_eq!(fields(crossed), ["limits.open_files_soft"]);
}

#[test]
fn a_work_directory_is_an_absolute_plain_path_of_its_own() {
    for good in [
        "/work",
        "/srv/a.b/c-d",
        "/tmpfile",
        "/system",
        "/.stockaded",
        "/w ö",
    ] {
        assert_eq!(fields(builder().work_dir(good)), [""; 0], "{good}");
    }
    let long = format!("/{}", "a".repeat(1024));
    for bad in [
        "",
        "work",
        "/",
        "//",
        "/work/",
        "/a//b",
        "/a/./b",
        "/a/../b",
        "/..",
        "/a\\b",
        "/a\0b",
        "/a\nb",
        "/proc",
        "/proc/1",
        "/sys/fs",
        "/dev/shm",
        "/tmp",
        "/tmp/x",
        "/.stockade",
        &long,
    ] {
        assert_eq!(fields(builder().work_dir(bad)), ["work_dir"], "{bad:?}");
    }
}

#[test]
fn root_storage_needs_a_root_that_can_be_written() {
    assert_eq!(fields(builder().storage(Storage::Root)), ["storage"]);
    let as_image = builder()
        .storage(Storage::Root)
        .hardening(Hardening::AsImage);
    assert_eq!(fields(as_image), [""; 0]);
}

#[test]
fn a_variable_has_a_name_and_no_nul_and_fits() {
    let big = "x".repeat(131_071);
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
        assert_eq!(fields(builder().env([(name, value)])), ["env"], "{name:?}");
    }
    assert!(fields(builder().env([("A", big)])).contains(&"env"));
    let many = (0..20).map(|at| (format!("A{at}"), "x".repeat(10_000)));
    assert_eq!(fields(builder().env(many)), ["env"], "together too large");
}

#[test]
fn values_of_variables_are_never_shown() {
    let secret = "hunter2";
    let spec = builder().env([("TOKEN", secret)]).build().unwrap();
    let shown = format!("{spec:?}");
    assert!(
        shown.contains("TOKEN") && !shown.contains(secret),
        "{shown}"
    );
    let errors = builder().env([("A=B", secret)]).build().unwrap_err();
    assert!(!format!("{errors} {errors:?}").contains(secret));
}

#[test]
fn lifetimes_are_ordered_and_bounded() {
    let week = Duration::from_secs(7 * 24 * 3600);
    assert_eq!(fields(builder().max_age(week)), [""; 0]);
    assert_eq!(
        fields(builder().max_age(week + Duration::from_secs(1))),
        ["max_age"]
    );
    let idle = |seconds| builder().idle_limit(Duration::from_secs(seconds));
    assert_eq!(fields(idle(0)), ["idle_limit"]);
    assert_eq!(fields(idle(24 * 3600)), [""; 0]);
    assert_eq!(fields(idle(24 * 3600 + 1)), ["idle_limit"]);
}

#[test]
fn transfer_limits_stay_under_the_ceiling() {
    let ceiling = TransferLimits::CEILING;
    assert_eq!(
        fields(builder().files_in(ceiling).files_out(ceiling)),
        [""; 0]
    );
    let over = TransferLimits::new(ceiling.max_bytes_per_file, ceiling.max_total_bytes, 257);
    assert_eq!(fields(builder().files_in(over)), ["files_in"]);
    assert_eq!(fields(builder().files_out(over)), ["files_out"]);
}

#[test]
fn outputs_lie_below_the_work_directory() {
    let output = |path: &str| builder().declared_outputs([DeclaredOutput::new(path)]);
    for good in ["a", "a/b.c", "/work/a", "..a"] {
        assert_eq!(fields(output(good)), [""; 0], "{good}");
    }
    for bad in [
        "",
        ".",
        "..",
        "a/../b",
        "/work",
        "/work/",
        "/work/../a",
        "/workx/a",
        "/etc/passwd",
        "a//b",
        "a\\b",
        "a\0",
    ] {
        assert_eq!(fields(output(bad)), ["declared_outputs"], "{bad:?}");
    }
    let twice = [DeclaredOutput::new("a"), DeclaredOutput::new("a")];
    assert_eq!(
        fields(builder().declared_outputs(twice)),
        ["declared_outputs"]
    );
    let named = |name: &str| builder().declared_outputs([DeclaredOutput::new("a").with_name(name)]);
    assert_eq!(fields(named("../x")), ["declared_outputs"]);
    let typed =
        |kind: &str| builder().declared_outputs([DeclaredOutput::new("a").with_media_type(kind)]);
    assert_eq!(fields(typed("image/png")), [""; 0]);
    assert_eq!(fields(typed("png")), ["declared_outputs"]);
    assert_eq!(fields(typed("a/b/c")), ["declared_outputs"]);
}

#[test]
fn reclaim_cannot_be_required() {
    assert_eq!(
        fields(builder().requires([Capability::Reclaim])),
        ["requires"]
    );
}

#[test]
fn host_tools_need_their_capability() {
    let tools = HostTools::new(["search"]);
    assert_eq!(tools.max_calls_per_run(), 16);
    assert_eq!(fields(builder().host_tools(tools.clone())), ["host_tools"]);
    let with = builder().requires([Capability::HostTools]);
    assert_eq!(fields(with.clone().host_tools(tools)), [""; 0]);
    assert_eq!(
        fields(with.host_tools(HostTools::new([""; 0]))),
        ["host_tools"]
    );
}

#[test]
fn services_are_named_like_hosts_each_its_own() {
    let service = |name: &str| Service::new(name, Image::reference("postgres"));
    assert_eq!(fields(builder().services([service("db")])), [""; 0]);
    for bad in ["", "DB", "1db", "db-", "d.b", &"d".repeat(32)] {
        assert_eq!(
            fields(builder().services([service(bad)])),
            ["services"],
            "{bad}"
        );
    }
    assert_eq!(
        fields(builder().services([service("db"), service("db")])),
        ["services"]
    );
    let unnamed = Service::new("db", Image::reference(""));
    assert_eq!(fields(builder().services([unnamed])), ["services"]);
}

#[test]
fn an_execution_contract_is_not_blank() {
    assert_eq!(fields(builder().execution_contract("v1")), [""; 0]);
    for bad in ["", "  ", "a\nb"] {
        assert_eq!(
            fields(builder().execution_contract(bad)),
            ["execution_contract"]
        );
    }
}

#[test]
fn an_attached_identity_has_bounds_and_bounds_have_an_identity() {
    let bounds = IdentityBounds::new(IdentityScope::PerScope, Duration::from_secs(60));
    let asked = builder().requires([Capability::AttachedIdentity]);
    assert_eq!(fields(asked.clone()), ["identity_bounds"]);
    assert_eq!(
        fields(builder().identity_bounds(bounds)),
        ["identity_bounds"]
    );
    assert_eq!(fields(asked.clone().identity_bounds(bounds)), [""; 0]);
    let none = IdentityBounds::new(IdentityScope::None, Duration::ZERO);
    assert_eq!(fields(asked.identity_bounds(none)), ["identity_bounds"; 2]);
}

#[test]
fn a_rule_with_a_credential_needs_an_attached_identity() {
    let rule = EgressRule::new("a.test")
        .unwrap()
        .with_authority("x")
        .unwrap();
    let egress = Egress::from_rules([rule]).unwrap();
    assert_eq!(fields(builder().egress(egress)), ["egress"]);
}

#[test]
fn no_rules_are_closed_egress_and_never_an_empty_policy() {
    assert_eq!(Egress::from_rules([]), Ok(Egress::Closed));
    let rules = [EgressRule::new("a.test").unwrap()];
    assert!(matches!(
        Egress::from_rules(rules),
        Ok(Egress::Allowlist(_))
    ));
}

#[test]
fn rules_with_methods_or_paths_need_more_of_a_backend() {
    let policy = EgressPolicy::parse(["GET a.test", "b.test/v1/*"]).unwrap();
    let spec = builder().egress(Egress::Allowlist(policy)).build().unwrap();
    let needed = [
        Capability::Exec,
        Capability::EgressMethods,
        Capability::EgressPaths,
    ];
    assert_eq!(spec.required_capabilities(), Capabilities::from(needed));
    assert_eq!(spec.requires(), Capabilities::from([Capability::Exec]));
}

#[test]
fn labels_are_few_short_and_plain() {
    assert_eq!(
        fields(builder().labels([("team/a.b-c_d", "any text, also ü")])),
        [""; 0]
    );
    for (name, value) in [("a b", "x"), ("a=b", "x"), ("a", "x\ny"), ("ä", "x")] {
        assert_eq!(
            fields(builder().labels([(name, value)])),
            ["labels"],
            "{name}"
        );
    }
    let many = (0..65).map(|at| (format!("l{at}"), ""));
    assert_eq!(fields(builder().labels(many)), ["labels"]);
}

#[test]
fn each_part_that_is_no_capability_is_a_feature() {
    let all = builder()
        .image(Image::build("dir"))
        .hardening(Hardening::AsImage)
        .storage(Storage::Root)
        .declared_outputs([DeclaredOutput::new("a")])
        .exclusive_admission(true)
        .min_cleanup(stockade::vocabulary::Cleanup::Reset)
        .execution_contract("v1")
        .services([Service::new("db", Image::reference("postgres"))])
        .after_abort(AfterAbort::Discard)
        .requires([Capability::HostTools])
        .host_tools(HostTools::new(["search"]))
        .build()
        .unwrap();
    let mut expected: Vec<Feature> = Feature::ALL.to_vec();
    expected.retain(|feature| *feature != Feature::StorageDisk);
    assert_eq!(all.features().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn only_what_defines_a_sandbox_is_drift() {
    let plain = spec();
    let harmless = builder()
        .labels([("a", "b")])
        .files_in(TransferLimits::new(1, 1, 1))
        .min_isolation(Isolation::Vm)
        .os_family(OsFamily::Posix)
        .build()
        .unwrap();
    assert_eq!(plain.drift(&harmless), [""; 0]);
    let other = builder()
        .image(Image::reference("other"))
        .env([("A", "b")])
        .work_dir("/srv")
        .build()
        .unwrap();
    assert_eq!(plain.drift(&other), ["image", "work_dir", "env"]);
    let allow = |host: &str| {
        let rules = [EgressRule::new(host).unwrap()];
        builder()
            .egress(Egress::from_rules(rules).unwrap())
            .build()
            .unwrap()
    };
    assert_eq!(plain.drift(&allow("a.test")), ["egress"]);
    assert_eq!(
        allow("a.test").drift(&allow("b.test")),
        [""; 0],
        "policies change live"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_builder_panic(
        kind in any::<String>(), image in any::<String>(), dir in any::<String>(),
        name in any::<String>(), value in any::<String>(), output in any::<String>(),
    ) {
        let built = SandboxSpec::builder(kind)
            .image(Image::reference(image))
            .work_dir(dir)
            .env([(name.clone(), value.clone())])
            .labels([(name, value)])
            .declared_outputs([DeclaredOutput::new(output)])
            .build();
        if let Err(errors) = built {
            prop_assert!(!errors.to_string().chars().any(char::is_control));
        }
    }
}
