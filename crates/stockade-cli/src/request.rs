//! From the command line to a spec and a request. Every fault is reported,
//! not the first only.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use stockade::exec::Stdin;
use stockade::spec::{Digest, Hardening, Platform, PullPolicy};
use stockade::{ExecRequest, Image, IsolationScope, ResourceLimits, SandboxSpec};

use crate::args::{HardeningName, Pull, Run};
use crate::terminal;

/// The spec, or what is wrong with it.
pub(crate) fn spec(run: &Run) -> Result<Arc<SandboxSpec>, Vec<String>> {
    let mut faults = Vec::new();
    let image = image(run, &mut faults);
    let limits = limits(run, &mut faults);
    let env = environment(run, &mut faults);
    let hardening = match run.hardening {
        HardeningName::Strict => Hardening::Strict,
        HardeningName::AsImage => Hardening::AsImage,
    };
    let built = SandboxSpec::builder("run")
        .image(image)
        .hardening(hardening)
        .limits(limits)
        .env(env)
        .idle_limit(run.idle_limit)
        .isolation_scope(IsolationScope::Call)
        .build();
    match built {
        Ok(spec) if faults.is_empty() => Ok(spec),
        Ok(_) => Err(faults),
        Err(errors) => {
            faults.extend(errors.faults().iter().map(ToString::to_string));
            Err(faults)
        }
    }
}

/// The command, or what is wrong with it.
pub(crate) fn command(run: &Run) -> Result<ExecRequest, stockade::Error> {
    let builder = match &run.shell {
        Some(line) => ExecRequest::shell(line),
        None => ExecRequest::argv(run.program.iter().map(|word| word.as_bytes())),
    };
    let stdin = match (run.no_stdin, run.json) {
        (true, _) => Stdin::Closed,
        (false, true) => Stdin::reader(tokio::io::stdin()),
        (false, false) => Stdin::Piped,
    };
    let builder = builder.timeout(run.timeout).stdin(stdin);
    let builder = match &run.cwd {
        Some(cwd) => builder.cwd(cwd),
        None => builder,
    };
    let builder = match run.max_output {
        Some(most) => builder.output_limit(most.as_u64()),
        // Passed through, nothing is kept, and the reader's pace is the bound.
        None if !run.json => builder.output_limit(u64::MAX),
        None => builder,
    };
    builder.tty(run.tty.then(terminal::size)).build()
}

fn image(run: &Run, faults: &mut Vec<String>) -> Image {
    let mut image = Image::reference(&run.image).with_pull(match run.pull {
        Pull::Never => PullPolicy::Never,
        Pull::Missing => PullPolicy::Missing,
        Pull::Always => PullPolicy::Always,
    });
    if let Some(digest) = &run.digest {
        match digest.parse::<Digest>() {
            Ok(digest) => image = image.with_digest(digest),
            Err(error) => faults.push(format!("--digest: {error}")),
        }
    }
    if let Some(platform) = &run.platform {
        match platform.parse::<Platform>() {
            Ok(platform) => image = image.with_platform(platform),
            Err(error) => faults.push(format!("--platform: {error}")),
        }
    }
    image
}

fn limits(run: &Run, faults: &mut Vec<String>) -> ResourceLimits {
    let mut limits = ResourceLimits::default();
    limits.memory = run.memory.as_u64();
    limits.pids = run.pids;
    limits.work_bytes = run.work_size.as_u64();
    limits.tmp_bytes = run.tmp_size.as_u64();
    match milli_cpus(run.cpus) {
        Some(milli) => limits.milli_cpus = milli,
        None => faults.push(format!(
            "--cpus: {} is no number of CPUs; give one from 0.001 on, such as 0.5",
            run.cpus
        )),
    }
    limits
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is checked to be positive and below a million"
)]
fn milli_cpus(cpus: f64) -> Option<u64> {
    let milli = (cpus * 1000.0).round();
    (1.0..1e9).contains(&milli).then_some(milli as u64)
}

fn environment(run: &Run, faults: &mut Vec<String>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for entry in &run.env {
        match entry.split_once('=') {
            Some((name, value)) => variables.push((name.to_owned(), value.to_owned())),
            None => match std::env::var(entry) {
                Ok(value) => variables.push((entry.clone(), value)),
                Err(std::env::VarError::NotPresent) => faults.push(format!(
                    "--env {entry}: the environment of stockade has no such variable; set it, or give {entry}=VALUE"
                )),
                Err(std::env::VarError::NotUnicode(_)) => {
                    faults.push(format!("--env {entry}: its value is not UTF-8"));
                }
            },
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_in_thousandths_and_nonsense_is_refused() {
        assert_eq!(milli_cpus(0.5), Some(500));
        assert_eq!(milli_cpus(2.0), Some(2000));
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 0.0001] {
            assert_eq!(milli_cpus(nonsense), None, "{nonsense}");
        }
    }
}
