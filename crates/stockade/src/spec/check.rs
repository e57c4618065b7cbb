//! The rules of single fields, and between fields.

use std::collections::BTreeSet;
use std::time::Duration;

use super::builder::{MAX_AGE_CEILING, SpecBuilder};
use super::work_dir::is_at_or_under;
use super::{Hardening, IdentityBounds, Storage, WorkDir};
use crate::encoded;
use crate::fault::Fault;
use crate::limits::{MEMORY_FLOOR, ResourceLimits, TransferLimits};
use crate::vocabulary::{Capability, IdentityScope};

/// Most bytes that the variables of a spec may take as JSON.
///
/// They travel with every command, so they and the command share the 1 MiB
/// that a request may have.
pub const ENVIRONMENT_BYTES: usize = 128 * 1024;

/// Most labels.
const LABELS: usize = 64;

/// Most bytes of a label's name, and of its value.
const LABEL_NAME: usize = 128;
const LABEL_VALUE: usize = 4096;

/// Most bytes of an execution contract.
const CONTRACT: usize = 1024;

/// Shortest lifetime: the engine and the guest runtime count in seconds.
const SHORTEST: Duration = Duration::from_secs(1);

/// Adds every fault of a spec to be built, apart from its kind and work directory.
pub(super) fn all(spec: &SpecBuilder, work_dir: &WorkDir, faults: &mut Vec<Fault>) {
    if let Some(image) = &spec.image {
        image.check("image", faults);
    }
    egress(spec, faults);
    storage(spec, faults);
    limits(&spec.limits, spec.storage, faults);
    environment(&spec.env, faults);
    lifetimes(spec, faults);
    transfer("files_in", &spec.files_in, faults);
    transfer("files_out", &spec.files_out, faults);
    outputs(spec, work_dir, faults);
    requires(spec, faults);
    labels(&spec.labels, faults);
    contract(spec.execution_contract.as_deref(), faults);
    host_tools(spec, faults);
    services(spec, faults);
    identity(spec, faults);
}

fn egress(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    let with_credential = spec
        .egress
        .rules()
        .iter()
        .find(|rule| rule.authority().is_some());
    if let Some(rule) = with_credential
        && !spec.requires.contains(Capability::AttachedIdentity)
    {
        faults.push(Fault::new(
            "egress",
            rule,
            "the rule names a credential, and `attached_identity` is not required",
            "require `attached_identity`, or leave the rule's authority out",
        ));
    }
}

fn storage(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    if spec.storage == Storage::Root && spec.hardening == Hardening::Strict {
        faults.push(Fault::new(
            "storage",
            spec.storage,
            "the root of a strictly hardened sandbox cannot be written",
            "choose `tmpfs` or `disk` storage, or `as_image` hardening",
        ));
    }
}

fn limits(limits: &ResourceLimits, storage: Storage, faults: &mut Vec<Fault>) {
    let no_limit = "0 would be no limit at all, not none";
    for (field, value) in [
        ("limits.milli_cpus", limits.milli_cpus),
        ("limits.memory", limits.memory),
        ("limits.pids", limits.pids),
        ("limits.work_bytes", limits.work_bytes),
        ("limits.work_inodes", limits.work_inodes),
        ("limits.tmp_bytes", limits.tmp_bytes),
        ("limits.shm_bytes", limits.shm_bytes),
        ("limits.open_files_soft", limits.open_files_soft),
        ("limits.open_files_hard", limits.open_files_hard),
    ] {
        if value == 0 {
            faults.push(Fault::new(field, value, no_limit, "give a number above 0"));
        }
    }
    if limits.open_files_soft > limits.open_files_hard {
        faults.push(Fault::new(
            "limits.open_files_soft",
            limits.open_files_soft,
            format!("it is above the hard limit {}", limits.open_files_hard),
            "raise `open_files_hard`, or lower it",
        ));
    }
    let needed = limits.least_memory(storage);
    if limits.memory < needed && limits.memory != 0 {
        let work = if storage == Storage::Tmpfs {
            "the work directory, "
        } else {
            ""
        };
        faults.push(Fault::new(
            "limits.memory",
            limits.memory,
            format!(
                "what is written to {work}`/tmp` and `/dev/shm` counts against it, and \
                 {MEMORY_FLOOR} bytes must stay for programs"
            ),
            format!("give at least {needed} bytes, or lower the limits of the directories"),
        ));
    }
}

fn environment(env: &[(String, String)], faults: &mut Vec<Fault>) {
    for (name, value) in env {
        if let Some((wrong, remedy)) = encoded::variable_fault(name, value.as_bytes()) {
            faults.push(Fault::new("env", name, wrong, remedy));
        }
    }
    let bytes: usize = env
        .iter()
        .map(|(name, value)| encoded::variable(name, value.as_bytes()))
        .sum();
    if bytes > ENVIRONMENT_BYTES {
        faults.push(Fault::new(
            "env",
            format!("{bytes} bytes"),
            format!("all variables together take more than {ENVIRONMENT_BYTES} bytes as JSON"),
            "pass large values on standard input or as files",
        ));
    }
}

fn lifetimes(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    let max_age = spec.max_age;
    if max_age < SHORTEST || max_age > MAX_AGE_CEILING {
        faults.push(Fault::new(
            "max_age",
            format!("{max_age:?}"),
            format!("it is not from {SHORTEST:?} to {MAX_AGE_CEILING:?}"),
            "give an age in that range",
        ));
        return;
    }
    let idle = spec.effective_idle_limit();
    if idle < SHORTEST || idle > max_age {
        faults.push(Fault::new(
            "idle_limit",
            format!("{idle:?}"),
            format!("it is not from {SHORTEST:?} to the maximum age {max_age:?}"),
            "give a time in that range",
        ));
    }
}

fn transfer(field: &'static str, limits: &TransferLimits, faults: &mut Vec<Fault>) {
    if let Some((limit, asked, most)) = limits.first_above(&TransferLimits::CEILING) {
        faults.push(Fault::new(
            field,
            format!("{limit} {asked}"),
            format!("it is above the ceiling {most}"),
            "lower it, and move more in several calls",
        ));
    }
}

fn outputs(spec: &SpecBuilder, work_dir: &WorkDir, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for output in &spec.declared_outputs {
        let path = output.path();
        if let Some(wrong) = output_path_fault(path, work_dir) {
            faults.push(Fault::new(
                "declared_outputs",
                path,
                wrong,
                "name a path below the work directory, such as `out/plot.png`",
            ));
        } else if !seen.insert(path) {
            faults.push(Fault::new(
                "declared_outputs",
                path,
                "it is declared twice",
                "declare it once",
            ));
        }
        let bad_name = |name: &str| {
            name.is_empty() || name.contains(['/', '\\']) || name.chars().any(char::is_control)
        };
        if let Some(name) = output.name().filter(|name| bad_name(name)) {
            faults.push(Fault::new(
                "declared_outputs",
                name,
                "the name is empty or has a slash, a backslash or a control character",
                "give a plain file name",
            ));
        }
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&b);
        let bad_type = |media_type: &str| {
            media_type
                .split('/')
                .filter(|part| !part.is_empty())
                .count()
                != 2
                || media_type.matches('/').count() != 1
                || !media_type.bytes().all(token)
        };
        if let Some(media_type) = output
            .media_type()
            .filter(|media_type| bad_type(media_type))
        {
            faults.push(Fault::new(
                "declared_outputs",
                media_type,
                "it is no media type",
                "write it like `image/png`",
            ));
        }
    }
}

fn output_path_fault(path: &str, work_dir: &WorkDir) -> Option<&'static str> {
    if path.is_empty() || path.contains('\\') || path.chars().any(char::is_control) {
        return Some("it is empty, or has a backslash or a control character");
    }
    let relative = match path.strip_prefix('/') {
        None => path,
        Some(_) if !is_at_or_under(path, work_dir.as_str()) => {
            return Some("it is absolute and not below the work directory");
        }
        Some(_) => path[work_dir.as_str().len()..].trim_start_matches('/'),
    };
    let mut segments = relative.split('/');
    if segments.any(|segment| matches!(segment, "" | "." | "..")) {
        return Some("it is the work directory itself, or has an empty, `.` or `..` segment");
    }
    None
}

fn requires(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    if spec.requires.contains(Capability::Reclaim) {
        faults.push(Fault::new(
            "requires",
            Capability::Reclaim,
            "it is a backend's evidence for cleanup, not something to ask for",
            "ask for a cleanup with `min_cleanup`",
        ));
    }
}

fn labels(labels: &[(String, String)], faults: &mut Vec<Fault>) {
    if labels.len() > LABELS {
        faults.push(Fault::new(
            "labels",
            labels.len(),
            format!("there are more than {LABELS}"),
            "give fewer",
        ));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
    for (name, value) in labels {
        if name.is_empty() || name.len() > LABEL_NAME || !name.bytes().all(plain) {
            faults.push(Fault::new(
                "labels",
                name,
                format!("the name is not 1 to {LABEL_NAME} letters, digits, `.`, `_`, `-` and `/`"),
                "choose a name of these",
            ));
        }
        if value.len() > LABEL_VALUE || value.chars().any(char::is_control) {
            faults.push(Fault::new(
                "labels",
                name,
                format!("its value has control characters or more than {LABEL_VALUE} bytes"),
                "give a shorter value on one line",
            ));
        }
    }
}

fn contract(contract: Option<&str>, faults: &mut Vec<Fault>) {
    let bad = |text: &&str| {
        text.trim().is_empty() || text.len() > CONTRACT || text.chars().any(char::is_control)
    };
    if let Some(text) = contract.filter(bad) {
        faults.push(Fault::new(
            "execution_contract",
            text,
            format!("it is blank, has control characters or more than {CONTRACT} bytes"),
            "give a short string, or none",
        ));
    }
}

fn host_tools(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    let Some(tools) = &spec.host_tools else {
        return;
    };
    if !spec.requires.contains(Capability::HostTools) {
        faults.push(Fault::new(
            "host_tools",
            "",
            "`host_tools` is not among the required capabilities",
            "require it, or leave the tools out",
        ));
    }
    if tools.names().next().is_none() || tools.max_calls_per_run() == 0 {
        faults.push(Fault::new(
            "host_tools",
            "",
            "they name no tool, or allow no call",
            "name one and allow a call, or leave the tools out",
        ));
    }
    let bad = |name: &&str| {
        name.is_empty() || name.len() > LABEL_NAME || name.chars().any(char::is_control)
    };
    for name in tools.names().filter(bad) {
        faults.push(Fault::new(
            "host_tools",
            name,
            format!("the name is not 1 to {LABEL_NAME} bytes without control characters"),
            "rename the tool",
        ));
    }
}

fn services(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for service in &spec.services {
        let name = service.name();
        if !is_service_name(name) {
            faults.push(Fault::new(
                "services",
                name,
                "the name is not 1 to 31 lower-case letters, digits and inner hyphens, a letter first",
                "choose a name that can stand as a host, such as `db`",
            ));
        } else if !seen.insert(name) {
            faults.push(Fault::new(
                "services",
                name,
                "two services have this name",
                "give each its own",
            ));
        }
        service.image().check("services", faults);
    }
}

fn is_service_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=31).contains(&name.len())
        && name.bytes().all(plain)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

fn identity(spec: &SpecBuilder, faults: &mut Vec<Fault>) {
    let required = spec.requires.contains(Capability::AttachedIdentity);
    match (required, &spec.identity_bounds) {
        (true, None) => faults.push(Fault::new(
            "identity_bounds",
            "",
            "`attached_identity` is required without bounds for it",
            "say how widely the credential may be shared and how long it may be kept",
        )),
        (false, Some(_)) => faults.push(Fault::new(
            "identity_bounds",
            "",
            "there are bounds, and `attached_identity` is not required",
            "require it, or leave the bounds out",
        )),
        (true, Some(bounds)) => identity_bounds(bounds, faults),
        (false, None) => {}
    }
}

fn identity_bounds(bounds: &IdentityBounds, faults: &mut Vec<Fault>) {
    if bounds.max_scope == IdentityScope::None {
        faults.push(Fault::new(
            "identity_bounds",
            bounds.max_scope,
            "no credential fits a scope of none",
            "name the widest scope that is accepted",
        ));
    }
    if bounds.max_retention.is_zero() {
        faults.push(Fault::new(
            "identity_bounds",
            "0s",
            "no credential can be kept for no time",
            "name the longest time that is accepted",
        ));
    }
}
