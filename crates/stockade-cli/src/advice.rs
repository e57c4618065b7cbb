//! Which option of this program helps. The library's own words name the
//! fields of its specs.

use stockade::{Error, FileRefusal, Refusal};

/// What to do about a refusal, in words of the command line.
pub(crate) fn of(error: &Error) -> Option<String> {
    match error.refusal()? {
        Refusal::File { why, .. } => of_file(why).map(str::to_owned),
        Refusal::FilePlane { .. } => Some("give --plane guest".to_owned()),
        Refusal::Drifted { fields } => Some(drifted(fields)),
        Refusal::WorkDirHidesContent { .. } => {
            Some("give another --work-dir, or --storage root --hardening as-image".to_owned())
        }
        _ => None,
    }
}

fn of_file(why: &FileRefusal) -> Option<&'static str> {
    Some(match why {
        FileRefusal::TooLarge { .. } => "64 MiB is the most that one file may have here; split it",
        FileRefusal::NoSpace => {
            "give the sandbox a larger --work-size (and --memory), or more --work-files"
        }
        FileRefusal::MountHidden { .. } => "give --plane guest",
        FileRefusal::NeedsRecursive => "give -r to remove a directory with all that is in it",
        FileRefusal::SourceShort { .. } | FileRefusal::SourceLong { .. } => {
            "the file of the host was written to while it was read; copy it again when nothing writes to it"
        }
        _ => return None,
    })
}

fn drifted(fields: &[String]) -> String {
    let is = |wanted: &str| fields.iter().any(|field| field == wanted);
    if is("paused") {
        "the sandbox is paused; `docker unpause` it, or remove it with `stockade rm`".to_owned()
    } else if is("runtime") {
        "another version of stockade made the sandbox; use that one, or `stockade rm` it".to_owned()
    } else if is("image") {
        "the image's name means another image now; name it by digest, or `stockade rm` the sandbox"
            .to_owned()
    } else {
        "`stockade rm` the sandbox to make it anew".to_owned()
    }
}

/// The option that sets a field of a spec or of a request.
pub(crate) fn option_of(field: &str) -> Option<&'static str> {
    Some(match field {
        "limits.memory" => "--memory",
        "limits.milli_cpus" => "--cpus",
        "limits.pids" => "--pids",
        "limits.work_bytes" => "--work-size",
        "limits.work_inodes" => "--work-files",
        "limits.tmp_bytes" => "--tmp-size",
        "storage" => "--storage",
        "work_dir" => "--work-dir",
        "idle_limit" => "--idle-limit",
        "max_age" => "--max-age",
        "image" => "--image",
        "env" => "--env",
        "timeout" => "--timeout",
        "output_limit" => "--max-output",
        "cwd" => "--cwd",
        "shell" => "--shell",
        _ => return None,
    })
}

/// A fault with the option that it is of.
pub(crate) fn fault(fault: &stockade::Fault) -> String {
    match option_of(fault.field()) {
        Some(option) => format!("{option}: {fault}"),
        None => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use stockade::Operation;

    /// Every option that some command has.
    fn options() -> Vec<String> {
        let command = crate::args::Cli::command();
        let commands = command.get_subcommands();
        commands
            .flat_map(|command| command.get_arguments().filter_map(clap::Arg::get_long))
            .map(|long| format!("--{long}"))
            .collect()
    }

    #[test]
    fn advice_names_options_that_exist() {
        let options = options();
        let path = || stockade::GuestPath::work_dir();
        let refusals = [
            path().refused(FileRefusal::NoSpace),
            path().refused(FileRefusal::NeedsRecursive),
            path().refused(FileRefusal::MountHidden { mount: "/x".into() }),
            Refusal::FilePlane { why: "x".into() },
            Refusal::WorkDirHidesContent { path: "/x".into() },
        ];
        for refusal in refusals {
            let advice = of(&Error::refused(Operation::WriteFiles, refusal)).unwrap();
            let named = advice
                .split([' ', ',', '(', ')', ';'])
                .filter(|word| word.starts_with("--"));
            for word in named {
                assert!(
                    options.iter().any(|option| option == word),
                    "{word} in {advice}"
                );
            }
        }
        let fields = [
            "limits.memory",
            "limits.work_inodes",
            "storage",
            "work_dir",
            "max_age",
            "cwd",
            "shell",
        ];
        for field in fields {
            let option = option_of(field).unwrap();
            assert!(options.iter().any(|known| known == option), "{option}");
        }
    }

    #[test]
    fn a_sandbox_of_another_build_is_told_apart_from_one_of_other_options() {
        let told = |field: &str| {
            let fields = vec![field.to_owned()];
            of(&Error::refused(
                Operation::Acquire,
                Refusal::Drifted { fields },
            ))
            .unwrap()
        };
        assert!(told("runtime").contains("another version"));
        assert!(told("image").contains("another image"));
        assert!(told("limits").contains("stockade rm"));
    }
}
