//! The one place in xtask that starts processes.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::progress::Stopwatch;

/// A program to run: an inert value that can be printed before it runs and after it failed.
///
/// Nothing started from here reads the terminal: standard input is empty, or a pipe that says only
/// whether xtask is still there.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    name: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    only_env: bool,
    folder: Option<PathBuf>,
    deadline: Option<Duration>,
}

/// What a program that ran to its end left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A program that runs while xtask goes on, and is killed when this is dropped. Its standard input
/// ends with xtask, however that ends; one that looks at it does not outlive xtask.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            only_env: false,
            folder: None,
            deadline: None,
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let add = |program: Self, (name, value)| program.env(name, value);
        variables.into_iter().fold(self, add)
    }

    /// Runs with the variables given by [`Program::env`] and no others.
    pub(crate) fn only_env(mut self) -> Self {
        self.only_env = true;
        self
    }

    /// Runs in this folder.
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Kills the program, and fails, when it runs for longer than this.
    /// Only [`Program::finish`] and [`Program::read`] look at it.
    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Runs to the end and keeps both output streams. An exit code other than 0 is no failure.
    pub(crate) fn finish(&self) -> Result<Finished> {
        let mut child = self.spawn(Stdio::piped(), Stdio::piped())?;
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let status = self.wait(&mut child)?;
        Ok(Finished {
            status,
            stdout: join(stdout)?,
            stderr: join(stderr)?,
        })
    }

    /// Runs to the end and returns standard output; an exit code other than 0 is a failure.
    pub(crate) fn read(&self) -> Result<String> {
        let finished = self.finish()?;
        if !finished.status.success() {
            bail!("`{self}`: {}\n{}", finished.status, tail(&finished.stderr));
        }
        String::from_utf8(finished.stdout).with_context(|| format!("output of `{self}`"))
    }

    /// Runs to the end with the standard error of xtask itself, and returns standard output; an
    /// exit code other than 0 is a failure.
    pub(crate) fn read_aloud(&self) -> Result<String> {
        let mut child = self.spawn(Stdio::piped(), Stdio::inherit())?;
        let stdout = drain(child.stdout.take());
        let status = self.wait(&mut child)?;
        let stdout = join(stdout)?;
        if !status.success() {
            bail!("`{self}`: {status}");
        }
        String::from_utf8(stdout).with_context(|| format!("output of `{self}`"))
    }

    /// Runs with the output streams of xtask itself, and tells whether the program succeeded.
    pub(crate) fn show(&self) -> Result<bool> {
        let mut child = self.spawn(Stdio::inherit(), Stdio::inherit())?;
        Ok(self.wait(&mut child)?.success())
    }

    /// Runs with both output streams in `log`, whose end is shown on failure.
    pub(crate) fn log_to(&self, log: &Path) -> Result<()> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let other = file.try_clone().context("sharing a log file")?;
        let mut child = self.spawn(file.into(), other.into())?;
        let status = self.wait(&mut child)?;
        if status.success() {
            return Ok(());
        }
        let text = std::fs::read(log).unwrap_or_default();
        bail!(
            "`{self}`: {status}; the end of {}:\n{}",
            log.display(),
            tail(&text)
        );
    }

    /// Starts a program that outlives xtask, with standard error in `log`, and returns the first
    /// line that it writes to standard output.
    ///
    /// An end of the stream without a line is a failure, reported with the end of the log.
    pub(crate) fn first_line(&self, log: &Path) -> Result<String> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let mut child = self.spawn(Stdio::piped(), file.into())?;
        let mut line = String::new();
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| anyhow!("no pipe to `{self}`"))?;
        BufReader::new(stdout)
            .read_line(&mut line)
            .with_context(|| format!("`{self}`"))?;
        self.wait(&mut child)?;
        if line.is_empty() {
            let text = std::fs::read(log).unwrap_or_default();
            bail!(
                "`{self}` ended early; {} says:\n{}",
                log.display(),
                tail(&text)
            );
        }
        Ok(line.trim_end().to_owned())
    }

    /// Starts a program with its output in two files, and goes on.
    pub(crate) fn start(&self, stdout: &Path, stderr: &Path) -> Result<Running> {
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("creating {}", path.display()))
        };
        let mut command = self.command();
        command.stdin(Stdio::piped());
        command.stdout(create(stdout)?).stderr(create(stderr)?);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start `{self}`"))?;
        Ok(Running { child })
    }

    /// Replaces xtask by this program, with nothing on standard input and output.
    /// Returns only to say why that failed.
    #[cfg(target_os = "linux")]
    pub(crate) fn replace(&self) -> anyhow::Error {
        use std::os::unix::process::CommandExt as _;
        let why = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .exec();
        anyhow::Error::new(why).context(format!("`{self}`"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place in xtask that starts a process"
    )]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        if self.only_env {
            command.env_clear();
        }
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    fn spawn(&self, stdout: Stdio, stderr: Stdio) -> Result<Child> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        command
            .spawn()
            .with_context(|| format!("cannot start `{self}`"))
    }

    fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let Some(deadline) = self.deadline else {
            return child
                .wait()
                .with_context(|| format!("waiting for `{self}`"));
        };
        let running = Stopwatch::start();
        loop {
            if let Some(status) = child
                .try_wait()
                .with_context(|| format!("waiting for `{self}`"))?
            {
                return Ok(status);
            }
            if running.elapsed() > deadline {
                child.kill().with_context(|| format!("killing `{self}`"))?;
                child
                    .wait()
                    .with_context(|| format!("waiting for `{self}`"))?;
                bail!("`{self}` did not end within {} s", deadline.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Running {
    /// How it ended, or nothing while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("looking after a process")
    }

    /// Waits for its end, or gives nothing when that takes too long.
    pub(crate) fn wait(&mut self, longest: Duration) -> Result<Option<ExitStatus>> {
        let waiting = Stopwatch::start();
        loop {
            let ended = self.ended()?;
            if ended.is_some() || waiting.elapsed() > longest {
                return Ok(ended);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it, unless it has ended.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing a process")?;
        self.child.wait().context("waiting for a process")?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ended = self.kill();
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", quoted(&self.name))?;
        self.args
            .iter()
            .try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// The path of a program that a shell would start, or nothing when there is none.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// The last lines of a program's output, which is where programs say what went wrong.
pub(crate) fn tail(text: &[u8]) -> String {
    const LINES: usize = 30;
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

type Drain = thread::JoinHandle<std::io::Result<Vec<u8>>>;

fn drain(stream: Option<impl Read + Send + 'static>) -> Option<Drain> {
    let mut stream = stream?;
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map(|_| bytes)
    }))
}

fn join(drain: Option<Drain>) -> Result<Vec<u8>> {
    let Some(drain) = drain else {
        return Ok(Vec::new());
    };
    let read = drain
        .join()
        .map_err(|_| anyhow!("the thread that reads output panicked"))?;
    read.context("reading a program's output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_prints_as_a_shell_would_take_it() {
        let program = Program::new("docker").args(["import", "--change", "CMD [\"it's\"]", ""]);
        assert_eq!(
            program.to_string(),
            r#"docker import --change 'CMD ["it'\''s"]' ''"#
        );
    }

    #[test]
    fn a_failure_shows_the_end_of_standard_error() {
        let failure = Program::new("sh")
            .args(["-c", "echo lost; echo found >&2; exit 3"])
            .read();
        let text = failure.expect_err("exit code 3").to_string();
        assert!(
            text.contains("exit status: 3") && text.ends_with("found"),
            "{text}"
        );
    }

    #[test]
    fn a_deadline_ends_a_program_that_hangs() {
        let program = Program::new("sleep")
            .arg("600")
            .deadline(Duration::from_millis(50));
        assert!(program.finish().is_err());
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = Program::new("no-such-program-here")
            .read()
            .expect_err("there is none");
        assert!(failure.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn a_tail_keeps_the_last_lines() {
        let text: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(tail(text.as_bytes()).starts_with("70\n") && tail(text.as_bytes()).ends_with("99"));
    }
}
