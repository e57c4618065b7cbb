//! Which option of this program helps. The library's own words name the
//! fields of its specs.

use stockade::{Error, FileRefusal, Refusal};

/// What to do about a refusal, in words of the command line.
pub(crate) fn of(error: &Error) -> Option<String> {
    match error.refusal()? {
        Refusal::File { why, .. } => of_file(why).map(str::to_owned),
        Refusal::FilePlane { .. } => Some("give --plane guest".to_owned()),
        Refusal::Drifted { fields } => Some(drifted(fields)),
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
