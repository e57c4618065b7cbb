//! Commands: arguments, streams, codes and bounds.

use std::time::Duration;

use stockade::exec::{ExecBuilder, ExecStatus, NotStartedWhy};
use stockade::{Call, ExecOutcome, Stdin};
use tokio::time::Instant;

use crate::probe::{Verdict, demand, probes};
use crate::site::{Site, same};
use crate::subject::GuestAction;

probes! { OnSite;
    arguments_arrive_as_they_are: "arguments that are split or expanded run something else than what was asked";
    empty_arguments_arrive: "an argument that is dropped moves all that follow it";
    exit_codes_are_kept: "who cannot see a failure takes it for a success";
    shell_lines_run: "a line is what most callers have";
    the_directory_is_the_work_directory: "relative paths of programs and of file operations must mean the same";
    the_directory_is_honoured: "a command in the wrong directory reads and writes the wrong files";
    streams_stay_apart: "what a program says and what it complains of are not the same";
    every_byte_survives_on_both_streams: "output is bytes, and so are files that come by it";
    standard_input_arrives_whole: "a command that gets half of its input answers half of the question";
    variables_arrive: "a command without its variables does something else";
    a_missing_program_is_an_outcome: "an exit code of 127 could be the program's own";
    a_timeout_ends_the_command: "a command that cannot be ended takes the sandbox with it";
    a_cancel_ends_the_command: "who has gone away must not pay for what goes on";
    the_sandbox_ends_it_without_the_host: "a host that is gone ends nothing";
    the_sandbox_bounds_output_without_the_host: "what is cut at the host has already filled the way to it";
    output_is_bounded: "a flood must not fill the host's memory";
}

/// A timeout that no command of these probes reaches by accident.
const LONG: Duration = Duration::from_secs(60);

async fn run(site: &Site, action: GuestAction) -> Verdict<ExecOutcome> {
    run_with(site, action, |command| command.timeout(LONG)).await
}

async fn run_with(
    site: &Site,
    action: GuestAction,
    with: impl FnOnce(ExecBuilder) -> ExecBuilder,
) -> Verdict<ExecOutcome> {
    let command = with(site.subject().command(&action)?);
    Ok(site.at.exec(command).await?)
}

async fn arguments_arrive_as_they_are(site: &Site) -> Verdict {
    let arguments = [
        &b"two words"[..],
        b"$(echo no)",
        b"`echo no`",
        b"a\"b'c",
        b"*",
        b"-n",
        b"semi;colon",
        b"line\nend",
        b"\xff\xfe",
    ];
    let action = GuestAction::PrintArguments(arguments.iter().map(|a| a.to_vec()).collect());
    let outcome = run(site, action).await?;
    let mut wanted = Vec::new();
    for argument in arguments {
        wanted.extend([b"[", argument, b"]\n"].concat());
    }
    demand!(outcome.success(), "it {}", outcome.status);
    same(&outcome.stdout, &wanted)
}

async fn empty_arguments_arrive(site: &Site) -> Verdict {
    let arguments = vec![Vec::new(), b"x".to_vec(), Vec::new()];
    let outcome = run(site, GuestAction::PrintArguments(arguments)).await?;
    same(&outcome.stdout, b"[]\n[x]\n[]\n")
}

async fn exit_codes_are_kept(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::ExitSeven).await?;
    demand!(
        outcome.code() == Some(7),
        "it {}, not with 7",
        outcome.status
    );
    Ok(())
}

async fn shell_lines_run(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::ShellExitSeven).await?;
    demand!(
        outcome.code() == Some(7),
        "it {}, not with 7",
        outcome.status
    );
    Ok(())
}

async fn the_directory_is_the_work_directory(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::PrintDirectory).await?;
    let wanted = format!("{}\n", site.spec().work_dir());
    same(&outcome.stdout, wanted.as_bytes())
}

async fn the_directory_is_honoured(site: &Site) -> Verdict {
    for cwd in [site.path("here"), site.absolute("here")] {
        site.make_directory("here").await?;
        let outcome = run_with(site, GuestAction::PrintDirectory, |command| {
            command.cwd(&cwd)
        });
        let wanted = [site.absolute("here").as_slice(), b"\n"].concat();
        same(&outcome.await?.stdout, &wanted)?;
    }
    Ok(())
}

async fn streams_stay_apart(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::PrintToBoth).await?;
    same(&outcome.stdout, b"to-stdout\n").map_err(|stop| stop.during("standard output"))?;
    same(&outcome.stderr, b"to-stderr\n").map_err(|stop| stop.during("standard error"))
}

async fn every_byte_survives_on_both_streams(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::PrintAllBytes).await?;
    let wanted: Vec<u8> = (0..=u8::MAX).collect();
    same(&outcome.stdout, &wanted).map_err(|stop| stop.during("standard output"))?;
    same(&outcome.stderr, &wanted).map_err(|stop| stop.during("standard error"))?;
    demand!(
        outcome.code() == Some(7),
        "it {}, not with 7",
        outcome.status
    );
    Ok(())
}

async fn standard_input_arrives_whole(site: &Site) -> Verdict {
    let input: Vec<u8> = (0..=u8::MAX).cycle().take(300_001).collect();
    let given = input.clone();
    let outcome = run_with(site, GuestAction::Copy, |command| {
        command.stdin(Stdin::bytes(given))
    });
    same(&outcome.await?.stdout, &input)
}

async fn variables_arrive(site: &Site) -> Verdict {
    let value = b"a b=\"c\"\n$HOME\xff";
    let outcome = run_with(site, GuestAction::PrintVariable, |command| {
        command.env("CONFORMANCE", value)
    });
    same(&outcome.await?.stdout, value)
}

async fn a_missing_program_is_an_outcome(site: &Site) -> Verdict {
    let outcome = run(site, GuestAction::Missing).await?;
    let not_found = matches!(
        outcome.status,
        ExecStatus::NotStarted(not) if not.why == NotStartedWhy::NotFound
    );
    demand!(not_found, "it {}, and never ran", outcome.status);
    Ok(())
}

async fn a_timeout_ends_the_command(site: &Site) -> Verdict {
    let began = Instant::now();
    let outcome = run_with(site, GuestAction::Sleep, |command| {
        command.timeout(Duration::from_secs(1))
    });
    let outcome = outcome.await?;
    let took = began.elapsed();
    demand!(
        outcome.status == ExecStatus::TimedOut,
        "it {}, after {took:?} and with a timeout of one second",
        outcome.status
    );
    // Half of what it would have taken by itself.
    demand!(took < Duration::from_secs(15), "it took {took:?}");
    demand!(took >= Duration::from_millis(500), "it took only {took:?}");
    demand!(outcome.tree_ended, "its processes are not proved dead");
    same(&outcome.stdout, b"begun\n").map_err(|stop| stop.during("what it wrote before"))
}

async fn a_cancel_ends_the_command(site: &Site) -> Verdict {
    let request = site.subject().command(&GuestAction::Sleep)?.build()?;
    // Time for the command to start, which is not what is measured.
    let call: Call = site.call().child(Duration::from_secs(5));
    let began = Instant::now();
    let outcome = site.sandbox().exec(&call, request).await?;
    let took = began.elapsed();
    demand!(
        outcome.status == ExecStatus::Cancelled,
        "it {}, when its call had ended",
        outcome.status
    );
    demand!(took < Duration::from_secs(25), "it took {took:?}");
    demand!(outcome.tree_ended, "its processes are not proved dead");
    Ok(())
}

async fn the_sandbox_ends_it_without_the_host(site: &Site) -> Verdict {
    let command = site.subject().command(&GuestAction::Sleep)?;
    let request = command.timeout(Duration::from_secs(1)).build()?;
    let mut process = site.sandbox().spawn(site.call(), request).await?;
    let exit = process.wait().await?;
    demand!(
        exit.status == ExecStatus::TimedOut && exit.tree_ended,
        "it {}, with a timeout of one second",
        exit.status
    );
    Ok(())
}

async fn the_sandbox_bounds_output_without_the_host(site: &Site) -> Verdict {
    let command = site.subject().command(&GuestAction::Flood)?;
    let request = command.output_limit(100_000).timeout(LONG).build()?;
    let mut process = site.sandbox().spawn(site.call(), request).await?;
    let mut came = 0;
    if let Some(mut output) = process.take_output() {
        while let Some(chunk) = output.next().await {
            came += chunk.bytes.len();
        }
    }
    let exit = process.wait().await?;
    demand!(
        exit.status == ExecStatus::OutputLimit,
        "it {}, and wrote without end",
        exit.status
    );
    demand!(came <= 100_000, "{came} bytes came of 100000");
    Ok(())
}

async fn output_is_bounded(site: &Site) -> Verdict {
    let outcome = run_with(site, GuestAction::Flood, |command| {
        command.output_limit(100_000).timeout(LONG)
    });
    let outcome = outcome.await?;
    demand!(
        outcome.status == ExecStatus::OutputLimit && outcome.truncated,
        "it {}, and wrote without end",
        outcome.status
    );
    let kept = outcome.stdout.len() + outcome.stderr.len();
    demand!(kept == 100_000, "{kept} bytes were kept of 100000");
    Ok(())
}
