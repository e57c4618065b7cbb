//! A call of docker as an inert value.

mod environment;
mod names;
pub(crate) mod quote;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub use self::environment::{EnvVar, InvalidEnvVar, Secret};
pub use self::names::{
    ContainerId, ContainerName, ContainerPath, ContainerRef, CreationMark, ImageId, ImageRef,
    InvalidName, Label, Platform, VolumeName,
};

use self::environment::Road;

/// What is shown for the words whose files exist only while the call runs.
const SHOWN_ENV_FILE: &str = "--env-file=(private file)";
const SHOWN_ID_FILE: &str = "--cidfile=(private file)";
const SHOWN_IMAGE_FILE: &str = "--iidfile=(private file)";

/// One call of docker: its words, and the environment that only it gets.
///
/// Only verbs construct it. Every option is one word, `--name=value`, so that
/// no value can become an option; what stands alone is a checked name.
/// [`Display`](fmt::Display) gives a line that a shell reads back as the same
/// words, but for bytes that are no text; values of environment variables are
/// in none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argv {
    words: Vec<Word>,
    client_env: Vec<EnvVar>,
    file_env: Vec<EnvVar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Plain(String),
    /// Bytes that are no text, and what is shown of them.
    Raw {
        word: OsString,
        shown: String,
    },
    /// `--env-file=` and a file of `file_env`.
    EnvFile,
    /// `--cidfile=` and a file that docker writes the id into.
    IdFile,
    /// `--iidfile=` and the same for an image.
    ImageFile,
}

impl Argv {
    /// Starts with the words of the command, for instance `["volume", "ls"]`.
    pub(crate) fn new(command: &[&'static str]) -> Self {
        let words = command
            .iter()
            .map(|word| Word::Plain((*word).to_owned()))
            .collect();
        Self {
            words,
            client_env: Vec::new(),
            file_env: Vec::new(),
        }
    }

    /// Adds `--name=value`.
    pub(crate) fn option(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.words.push(Word::Plain(format!("--{name}={value}")));
        self
    }

    /// Adds `--name=value` for each value.
    pub(crate) fn options<T: fmt::Display>(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        values
            .into_iter()
            .fold(self, |argv, value| argv.option(name, value))
    }

    /// Adds `--name=value` if there is a value.
    pub(crate) fn maybe(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        self.options(name, value)
    }

    /// Adds `--name=true`.
    pub(crate) fn flag(self, name: &'static str) -> Self {
        self.option(name, true)
    }

    /// Has docker print one JSON document per object.
    pub(crate) fn json(self) -> Self {
        self.option("format", "{{json .}}")
    }

    /// Adds a word that stands alone.
    pub(crate) fn positional(mut self, word: &(impl Positional + ?Sized)) -> Self {
        self.words.push(Word::Plain(word.word()));
        self
    }

    /// Adds a place in a container, `container:path`, exactly.
    pub(crate) fn place(mut self, container: &ContainerRef, path: &ContainerPath) -> Self {
        let shown = format!("{container}:{path}");
        self.words.push(match path.is_text() {
            true => Word::Plain(shown),
            false => {
                let mut word = OsString::from(format!("{container}:"));
                word.push(OsStr::from_bytes(path.as_bytes()));
                Word::Raw { word, shown }
            }
        });
        self
    }

    /// Adds the words of the container's own command. They come after a
    /// positional, where docker reads no options any more.
    pub(crate) fn command(mut self, words: &[String]) -> Self {
        self.words.extend(words.iter().cloned().map(Word::Plain));
        self
    }

    /// Gives the container environment variables by name, each by the road
    /// that fits it.
    pub(crate) fn environment(mut self, variables: &[EnvVar]) -> Self {
        for variable in variables {
            match variable.road() {
                Road::Client => {
                    self = self.option("env", variable.name());
                    self.client_env.push(variable.clone());
                }
                Road::File => self.file_env.push(variable.clone()),
            }
        }
        if !self.file_env.is_empty() {
            self.words.push(Word::EnvFile);
        }
        self
    }

    /// Has docker write the id of the container that it makes into a file as
    /// soon as it has it.
    pub(crate) fn id_file(mut self) -> Self {
        self.words.push(Word::IdFile);
        self
    }

    /// The same for the image that it builds.
    pub(crate) fn image_file(mut self) -> Self {
        self.words.push(Word::ImageFile);
        self
    }

    /// Adds an absolute path of this machine, exactly.
    pub(crate) fn path(mut self, path: &Path) -> Self {
        debug_assert!(path.is_absolute(), "a relative one may be an option");
        self.words.push(match path.to_str() {
            Some(path) => Word::Plain(path.to_owned()),
            None => Word::Raw {
                word: path.into(),
                shown: path.display().to_string(),
            },
        });
        self
    }

    /// The words after the program's name, as they are shown.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| match word {
            Word::Plain(word) | Word::Raw { shown: word, .. } => word.as_str(),
            Word::EnvFile => SHOWN_ENV_FILE,
            Word::IdFile => SHOWN_ID_FILE,
            Word::ImageFile => SHOWN_IMAGE_FILE,
        })
    }

    /// Names of the container's variables, whichever road they take.
    pub fn env_names(&self) -> impl Iterator<Item = &str> {
        self.client_env
            .iter()
            .chain(&self.file_env)
            .map(EnvVar::name)
    }

    /// What docker's own environment carries, values and all.
    pub(crate) fn client_environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.client_env
            .iter()
            .map(|variable| (variable.name(), variable.value().reveal()))
    }

    /// What the file of `--env-file` holds, if there is one.
    pub(crate) fn env_file(&self) -> Option<Secret> {
        (!self.file_env.is_empty()).then(|| environment::file_text(&self.file_env))
    }

    pub(crate) fn wants_id_file(&self) -> bool {
        let is_wanted = |word: &Word| matches!(word, Word::IdFile | Word::ImageFile);
        self.words.iter().any(is_wanted)
    }

    /// The words that docker is started with, once its files have paths.
    pub(crate) fn with_files(&self, env_file: &Path, id_file: &Path) -> Vec<OsString> {
        let option = |name: &str, path: &Path| {
            let mut word = OsString::from(name);
            word.push(path);
            word
        };
        let word = |word: &Word| match word {
            Word::Plain(word) => word.into(),
            Word::Raw { word, .. } => word.clone(),
            Word::EnvFile => option("--env-file=", env_file),
            Word::IdFile => option("--cidfile=", id_file),
            Word::ImageFile => option("--iidfile=", id_file),
        };
        self.words.iter().map(word).collect()
    }
}

impl fmt::Display for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("docker")?;
        for word in self.words() {
            write!(f, " {}", quote::for_shell(word))?;
        }
        Ok(())
    }
}

/// Texts that cannot start with a dash, and so cannot be read as an option.
pub(crate) trait Positional {
    /// The word.
    fn word(&self) -> String;
}

macro_rules! positional {
    ($($type:ty),*) => {
        $(impl Positional for $type {
            fn word(&self) -> String {
                self.as_str().to_owned()
            }
        })*
    };
}

positional!(
    ContainerId,
    ContainerName,
    ContainerRef,
    ImageId,
    ImageRef,
    VolumeName
);

/// Docker's own word for "the tar stream on standard input" or "output". The
/// only one that starts with a dash; it is no option because it is nothing
/// else.
pub(crate) struct StandardStream;

impl Positional for StandardStream {
    fn word(&self) -> String {
        "-".to_owned()
    }
}
