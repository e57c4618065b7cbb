//! The command line.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use stockade_wire::inquiry::Inquiry;

/// Where the runtime volume is mounted.
const RUNTIME_DIR: &str = "/.stockade";

/// How long a relay tries to reach a PID 1 that is just starting.
const WAIT: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Init(Init),
    Attach { wait: Duration },
    Inquire(Inquiry),
    Facts(Facts),
    Version,
}

/// Be PID 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Init {
    /// The work directory.
    pub(crate) work: CString,
    /// End when no host was heard for so long.
    pub(crate) idle_limit: Duration,
    /// End at this age.
    pub(crate) maximum_age: Duration,
    pub(crate) runtime_dir: Vec<u8>,
}

/// Say what an image has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// A user as in the image's configuration.
    pub(crate) user: Vec<u8>,
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) runtime_dir: Vec<u8>,
}

/// How the program is used, for whoever starts it by hand.
pub(crate) const USAGE: &str = "\
usage: guest init --work DIR --idle-limit-ms N --max-age-ms N [--runtime-dir DIR]
       guest attach [--wait-ms N]
       guest status [--journal]
       guest retire [--idle-for-ms N]
       guest facts --user SPEC [--path PATH]... [--runtime-dir DIR]
       guest version
";

/// Reads the arguments after the program's own name.
///
/// # Errors
///
/// A sentence on what is wrong.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut arguments = arguments.into_iter().map(OsString::into_vec);
    let command = arguments.next().ok_or("a command is missing")?;
    let mut options = Options::read(arguments)?;
    let command = match command.as_slice() {
        b"init" => Command::Init(Init {
            work: CString::new(options.required("work")?).map_err(|_| "a NUL in --work")?,
            idle_limit: options.required_millis("idle-limit-ms")?,
            maximum_age: options.required_millis("max-age-ms")?,
            runtime_dir: options.runtime_dir()?,
        }),
        b"attach" => Command::Attach {
            wait: options.millis("wait-ms")?.unwrap_or(WAIT),
        },
        b"status" => Command::Inquire(Inquiry::Status {
            journal: options.flag("journal")?,
        }),
        b"retire" => Command::Inquire(Inquiry::Retire {
            idle_for_ms: options.number_of_millis("idle-for-ms")?.unwrap_or(0),
        }),
        b"facts" => Command::Facts(Facts {
            user: options.required("user")?,
            paths: options.every("path"),
            runtime_dir: options.runtime_dir()?,
        }),
        b"version" => Command::Version,
        other => {
            return Err(format!(
                "{:?} is no command",
                String::from_utf8_lossy(other)
            ));
        }
    };
    options.finish()?;
    Ok(command)
}

/// Options without a value.
const FLAGS: [&str; 1] = ["journal"];

/// Options that nobody asked about yet, `--name value` or `--name=value`, or
/// `--name` for a flag.
struct Options(Vec<(String, Vec<u8>)>);

impl Options {
    fn read(mut words: impl Iterator<Item = Vec<u8>>) -> Result<Self, String> {
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            let option = word
                .strip_prefix(b"--")
                .ok_or_else(|| format!("{:?} is no option", String::from_utf8_lossy(&word)))?;
            let mut parts = option.splitn(2, |byte| *byte == b'=');
            let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
            let is_flag = FLAGS.contains(&name.as_str());
            let value = match parts.next() {
                Some(_) if is_flag => return Err(format!("--{name} takes no value")),
                Some(value) => value.to_vec(),
                None if is_flag => Vec::new(),
                None => words
                    .next()
                    .ok_or_else(|| format!("--{name} is without a value"))?,
            };
            options.push((name, value));
        }
        Ok(Self(options))
    }

    fn every(&mut self, name: &str) -> Vec<Vec<u8>> {
        let (asked, rest) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(known, _)| known == name);
        self.0 = rest;
        let asked: Vec<(String, Vec<u8>)> = asked;
        asked.into_iter().map(|(_, value)| value).collect()
    }

    fn optional(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let mut values = self.every(name);
        let value = values.pop();
        if values.is_empty() {
            return Ok(value);
        }
        Err(format!("--{name} is given twice"))
    }

    fn required(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.optional(name)?
            .ok_or_else(|| format!("--{name} is missing"))
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        Ok(self.optional(name)?.is_some())
    }

    fn number_of_millis(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.optional(name)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&value);
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| format!("--{name} is no number of milliseconds: {text:?}"))
    }

    fn millis(&mut self, name: &str) -> Result<Option<Duration>, String> {
        Ok(self.number_of_millis(name)?.map(Duration::from_millis))
    }

    fn required_millis(&mut self, name: &str) -> Result<Duration, String> {
        self.millis(name)?
            .ok_or_else(|| format!("--{name} is missing"))
    }

    fn runtime_dir(&mut self) -> Result<Vec<u8>, String> {
        let given = self.optional("runtime-dir")?;
        Ok(given.unwrap_or_else(|| RUNTIME_DIR.into()))
    }

    fn finish(self) -> Result<(), String> {
        match self.0.first() {
            Some((name, _)) => Err(format!("--{name} is no option of this command")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        parse(words.iter().map(|word| OsString::from(*word)))
    }

    #[test]
    fn options_come_in_either_form_and_any_order() {
        let expected = Command::Init(Init {
            work: CString::new("/work").unwrap(),
            idle_limit: Duration::from_millis(5),
            maximum_age: Duration::from_secs(1),
            runtime_dir: b"/.stockade".to_vec(),
        });
        let words = [
            "init",
            "--max-age-ms=1000",
            "--work",
            "/work",
            "--idle-limit-ms",
            "5",
        ];
        assert_eq!(parse_words(&words), Ok(expected));
    }

    #[test]
    fn what_may_be_asked_has_defaults() {
        for (words, inquiry) in [
            (&["status"][..], Inquiry::Status { journal: false }),
            (&["status", "--journal"], Inquiry::Status { journal: true }),
            (&["retire"], Inquiry::Retire { idle_for_ms: 0 }),
            (
                &["retire", "--idle-for-ms", "1500"],
                Inquiry::Retire { idle_for_ms: 1500 },
            ),
        ] {
            assert_eq!(parse_words(words), Ok(Command::Inquire(inquiry)));
        }
    }

    #[test]
    fn a_value_may_be_empty_or_hold_anything() {
        let expected = Command::Facts(Facts {
            user: Vec::new(),
            paths: vec![b"/a=b".to_vec(), b"--x".to_vec()],
            runtime_dir: b"/.stockade".to_vec(),
        });
        let words = ["facts", "--user=", "--path=/a=b", "--path", "--x"];
        assert_eq!(parse_words(&words), Ok(expected));
    }

    #[test]
    fn a_mistake_is_named() {
        for (words, part) in [
            (&[][..], "a command is missing"),
            (&["run"], "\"run\" is no command"),
            (&["facts"], "--user is missing"),
            (&["facts", "--user"], "without a value"),
            (&["facts", "--user=a", "--user=b"], "twice"),
            (&["version", "--user=a"], "no option of this command"),
            (
                &["attach", "--wait-ms=x"],
                "no number of milliseconds: \"x\"",
            ),
            (&["status", "--journal=yes"], "--journal takes no value"),
            (&["status", "--journal", "--journal"], "twice"),
            (&["retire", "--journal"], "no option of this command"),
            (&["retire", "--idle-for-ms=-1"], "no number of milliseconds"),
            (&["attach", "now"], "\"now\" is no option"),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
