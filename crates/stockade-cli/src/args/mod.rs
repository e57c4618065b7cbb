//! The command line, as clap sees it.

mod conformance;
mod files;
mod operate;
mod program;
mod run;
mod sandbox;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use conformance::Conformance;
pub(crate) use files::{Cp, Ls};
pub(crate) use operate::{Completions, Df, Logs, Prune, Ps, Reap, Rm, Setup};
pub(crate) use program::Program;
pub(crate) use run::{Exec, Run};
pub(crate) use sandbox::{Create, HardeningName, Pull, SandboxOptions, StorageName};

/// Runs code that nobody trusts in Docker containers.
#[derive(Debug, Parser)]
#[command(
    name = "stockade",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one program in a fresh sandbox without network, and remove the sandbox.
    Run(Box<Run>),
    /// Make a sandbox that stays, under a name.
    Create(Box<Create>),
    /// Run a program in a sandbox that was created.
    Exec(Box<Exec>),
    /// Copy files and directories into a sandbox, or out of it.
    Cp(Cp),
    /// List a directory of a sandbox.
    Ls(Ls),
    /// Remove sandboxes, or a file in one.
    Rm(Rm),
    /// List sandboxes: for whom, since when, what they do and what they use.
    Ps(Ps),
    /// Show what happened to a sandbox, and why it ended.
    Logs(Logs),
    /// Remove sandboxes by age, idleness or scope.
    Reap(Reap),
    /// Show what all of this owner takes of the engine's disk.
    Df(Df),
    /// Remove images and volumes of ours that nobody uses.
    Prune(Prune),
    /// Make an engine ready ahead, or remove everything of this owner from it.
    Setup(Setup),
    /// Print completions for a shell.
    Completions(Completions),
    /// Check everything that a sandbox needs, and say how to mend what is missing.
    Doctor(Doctor),
    /// Attack the Docker backend with the conformance suites, and report what held.
    Conformance(Conformance),
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Also run a sandbox of this image.
    #[arg(long, env = "STOCKADE_IMAGE", value_name = "REFERENCE")]
    pub(crate) image: Option<String>,
    /// Give up after this time; pulling the image counts.
    #[arg(long, default_value = "15m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// How the engine is reached. Docker's own variables and context apply.
#[derive(Debug, Args)]
pub(crate) struct Engine {
    /// The docker client.
    #[arg(
        long,
        env = "STOCKADE_DOCKER",
        default_value = "docker",
        value_name = "PATH"
    )]
    pub(crate) docker: PathBuf,
    /// Whose sandboxes these are; only the same owner's are ever touched.
    #[arg(
        long,
        env = "STOCKADE_OWNER",
        default_value = "stockade-cli",
        value_name = "NAME"
    )]
    pub(crate) owner: String,
    /// How files are moved. `tar`: through the engine while the sandbox is paused, best for large
    /// files. `guest`: by the guest runtime as the guest's own user, best for many small ones.
    #[arg(long, value_enum, env = "STOCKADE_PLANE", default_value_t = PlaneName::Tar)]
    pub(crate) plane: PlaneName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaneName {
    Tar,
    Guest,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, clap::Error> {
        let words = std::iter::once("stockade").chain(words.iter().copied());
        Cli::try_parse_from(words).map(|cli| cli.command)
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_two_dashes_is_the_program_even_if_it_looks_like_an_option() {
        let Command::Run(run) = parsed(&["run", "--image", "i", "--", "a", "--json"]).unwrap()
        else {
            panic!("not run")
        };
        assert_eq!(run.program.program, ["a", "--json"]);
        assert!(!run.program.json);
    }

    #[test]
    fn files_in_and_out_are_given_as_often_as_needed() {
        let words = [
            "run", "--image", "i", "--file", "a", "--file", "b:c", "--out", "*.png", "--out", "d",
            "--", "p",
        ];
        let Command::Run(run) = parsed(&words).unwrap() else {
            panic!("not run")
        };
        assert_eq!(
            (run.file, run.out),
            (
                vec!["a".into(), "b:c".into()],
                vec!["*.png".into(), "d".into()]
            )
        );
    }

    #[test]
    fn a_copy_needs_two_ends_and_a_program_something_to_run() {
        assert!(parsed(&["cp", "one"]).is_err());
        assert!(parsed(&["cp", "one", "two"]).is_ok());
        assert!(parsed(&["exec", "name"]).is_err());
        assert!(parsed(&["exec", "name", "--", "true"]).is_ok());
        assert!(parsed(&["run", "--image", "i"]).is_err());
    }

    #[test]
    fn a_suite_is_given_as_often_as_needed() {
        let words = [
            "conformance",
            "--image",
            "i",
            "--suite",
            "exec",
            "--suite",
            "list,reach",
        ];
        let Command::Conformance(conformance) = parsed(&words).unwrap() else {
            panic!("not conformance")
        };
        assert_eq!(conformance.suite.len(), 3);
    }

    #[test]
    fn an_image_is_named_or_built_and_not_both() {
        let both = ["run", "--image", "i", "--build", "d", "--", "p"];
        assert!(parsed(&both).is_err());
        let Command::Run(run) = parsed(&["run", "--build", "d", "--", "p"]).unwrap() else {
            panic!("not run")
        };
        assert_eq!(run.sandbox.build, Some("d".into()));
        assert!(parsed(&["run", "--build", "d", "--digest", "x", "--", "p"]).is_err());
    }

    #[test]
    fn a_network_is_no_option_and_the_error_says_what_there_is() {
        for option in [
            "--network=host",
            "--network",
            "--net=none",
            "--allow=pypi.org",
        ] {
            let error = parsed(&["run", option, "--image", "i", "--", "p"]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("loopback and no other network"), "{text}");
        }
    }

    #[test]
    fn how_files_move_is_no_matter_of_who_lists_or_removes() {
        use clap::CommandFactory as _;
        let mut command = Cli::command();
        for (name, wanted) in [("cp", true), ("ps", false), ("reap", false), ("rm", false)] {
            let help = command
                .find_subcommand_mut(name)
                .unwrap()
                .render_long_help();
            assert_eq!(help.to_string().contains("--plane"), wanted, "{name}");
        }
    }
}
