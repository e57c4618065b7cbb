//! From a request to a running program.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;
use stockade_wire::Text;
use stockade_wire::limits::ARGUMENT;
use stockade_wire::message::{NotStarted, NotStartedWhy, Program as Asked, Start};

use crate::files;
use crate::limits::{Limits, OpenFiles};
use crate::sandbox::{Sandbox, Variable};
use crate::sys::{self, Strings};

/// Where a name is looked up when the command's environment has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const SHELL: &str = "/bin/sh";

/// Everything that the last steps need, made before the fork.
pub(crate) enum Program {
    /// A program of the image.
    Command(Command),
    /// The worker of a file operation.
    Files,
}

/// A program to execute.
pub(crate) struct Command {
    /// The files to try, in this order.
    candidates: Vec<CString>,
    arguments: Strings,
    environment: Strings,
    work: CString,
    cwd: Option<CString>,
    shell: bool,
}

/// What becomes of standard input, output and error.
#[derive(Debug)]
pub(crate) enum Stdio {
    Pipes {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// A terminal, which also becomes the controlling one.
    Terminal(OwnedFd),
}

/// The step at which a program failed to start, as a byte on the error pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Terminal = 1,
    Descriptors = 2,
    WorkingDirectory = 3,
    Execute = 4,
}

/// Bytes on the error pipe: the step and the error number.
pub(crate) const FAILURE: usize = 5;

impl Program {
    /// Checks and prepares a request.
    ///
    /// `inherited` is the sandbox's own environment, `work` its work directory.
    ///
    /// # Errors
    ///
    /// Why it can never run.
    pub(crate) fn prepare(
        start: Start,
        inherited: &[Variable],
        work: &CString,
    ) -> Result<Self, NotStarted> {
        let shell = matches!(start.program, Asked::Shell(_));
        let arguments: Vec<Vec<u8>> = match start.program {
            Asked::Argv(words) => words.into_iter().map(|word| word.into_bytes()).collect(),
            Asked::Shell(line) => vec![SHELL.into(), b"-c".to_vec(), line.into_bytes()],
            Asked::Files => return worker(&start),
        };
        let environment = environment(inherited, start.env)?;
        let name = arguments.first().filter(|name| !name.is_empty());
        let path = environment.iter().find(|known| known.name == b"PATH");
        let path = path.map_or(DEFAULT_PATH, |path| &path.value);
        let candidates = candidates(name.ok_or_else(invalid)?, path);
        let environment = environment.into_iter().map(Variable::into_pair);
        Ok(Self::Command(Command {
            candidates: strings(candidates)?,
            arguments: Strings::new(strings(arguments)?),
            environment: Strings::new(strings(environment)?),
            work: work.clone(),
            cwd: start
                .cwd
                .map(|cwd| CString::new(cwd.into_bytes()).map_err(|_| invalid()))
                .transpose()?,
            shell,
        }))
    }

    /// Forks the program off. What goes wrong after the fork is written to
    /// `failure`, which is closed by a successful start.
    pub(crate) fn launch(
        &self,
        stdio: &Stdio,
        sandbox: &Sandbox,
        failure: BorrowedFd<'_>,
    ) -> Result<Pid, NotStarted> {
        match sys::fork() {
            Ok(sys::Forked::Parent(pid)) => Ok(pid),
            Ok(sys::Forked::Child) => {
                let (step, errno) = match self {
                    Self::Command(command) => command.become_it(stdio, &sandbox.limits),
                    Self::Files => become_files(stdio, sandbox),
                };
                let mut bytes = vec![step as u8];
                bytes.extend(errno.to_le_bytes());
                let _ = rustix::io::write(failure, &bytes);
                sys::exit_now(127)
            }
            Err(error) => Err(NotStarted {
                why: NotStartedWhy::Resources,
                errno: error.raw_os_error().unwrap_or(0),
            }),
        }
    }

    /// What the error pipe says about a failed start.
    pub(crate) fn why_not(&self, failure: [u8; FAILURE]) -> NotStarted {
        let [step, errno @ ..] = failure;
        let errno = i32::from_le_bytes(errno);
        let why = match step {
            step if step == Step::Terminal as u8 => NotStartedWhy::Terminal,
            step if step == Step::WorkingDirectory as u8 => NotStartedWhy::WorkingDirectory,
            step if step == Step::Execute as u8 => self.why_not_executed(errno),
            _ => resources_or_other(errno),
        };
        NotStarted { why, errno }
    }

    fn why_not_executed(&self, errno: i32) -> NotStartedWhy {
        let shell = matches!(self, Self::Command(command) if command.shell);
        match errno {
            libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP if shell => {
                NotStartedWhy::NoShell
            }
            libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG => {
                NotStartedWhy::NotFound
            }
            libc::EACCES | libc::EPERM | libc::EISDIR => NotStartedWhy::NotExecutable,
            libc::ENOEXEC | libc::ELIBBAD | libc::EINVAL => NotStartedWhy::BadFormat,
            libc::E2BIG => NotStartedWhy::TooLong,
            errno => resources_or_other(errno),
        }
    }
}

impl Command {
    /// The last steps of the new process. Returns only when one failed.
    fn become_it(&self, stdio: &Stdio, limits: &Limits) -> (Step, i32) {
        // Its own session, and so its own process group: signals for the
        // program reach what it started, and no terminal but its own reaches it.
        let _ = rustix::process::setsid();
        if let Stdio::Terminal(terminal) = stdio
            && let Err(error) = sys::control_terminal(terminal.as_fd())
        {
            return (Step::Terminal, error.raw_os_error().unwrap_or(0));
        }
        if let Err(error) = stdio.put_in_place() {
            return (Step::Descriptors, error.raw_os_error().unwrap_or(0));
        }
        limits.restore(OpenFiles::Program);
        sys::unblock_signals();
        let entered = rustix::process::chdir(&self.work);
        let entered = entered.and_then(|()| match &self.cwd {
            Some(cwd) => rustix::process::chdir(cwd),
            None => Ok(()),
        });
        if let Err(error) = entered {
            return (Step::WorkingDirectory, error.raw_os_error());
        }
        (Step::Execute, self.execute())
    }

    /// Tries each candidate as a shell does: one that may not be executed
    /// only counts when there is no better one.
    fn execute(&self) -> i32 {
        let mut result = libc::ENOENT;
        for candidate in &self.candidates {
            match sys::execute(candidate, &self.arguments, &self.environment) {
                libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG => {}
                libc::EACCES => result = libc::EACCES,
                errno => return errno,
            }
        }
        result
    }
}

impl Stdio {
    /// The descriptors that a supervisor must keep until the program runs.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Pipes {
                stdin,
                stdout,
                stderr,
            } => vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            Self::Terminal(terminal) => vec![terminal.as_fd()],
        }
    }

    fn put_in_place(&self) -> std::io::Result<()> {
        let descriptors = self.descriptors();
        let mut descriptors = descriptors.iter().cycle();
        for place in 0..3 {
            if let Some(descriptor) = descriptors.next() {
                sys::put_in_place(*descriptor, place)?;
            }
        }
        Ok(())
    }
}

/// A worker takes its batch from its standard input and everything else from
/// that.
fn worker(start: &Start) -> Result<Program, NotStarted> {
    let plain = start.stdin && start.tty.is_none() && start.cwd.is_none() && start.env.is_empty();
    if plain {
        Ok(Program::Files)
    } else {
        Err(invalid())
    }
}

/// The last steps of a worker's process, which executes nothing. Returns only
/// when one failed.
fn become_files(stdio: &Stdio, sandbox: &Sandbox) -> (Step, i32) {
    let _ = rustix::process::setsid();
    if let Err(error) = stdio.put_in_place() {
        return (Step::Descriptors, error.raw_os_error().unwrap_or(0));
    }
    // As high as it goes, since it holds directories open. Signals stay
    // blocked: a file that grows over a limit is an error and no death.
    sandbox.limits.restore(OpenFiles::Runtime);
    let _ = rustix::thread::set_name(c"stockade-files");
    // Modes are as the host says.
    let _ = rustix::process::umask(rustix::fs::Mode::empty());
    // The error pipe is among them, which says that the program runs.
    sys::close_all_but(&[sandbox.processes.descriptor()]);
    let (from, to) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let code = files::serve(from, to, Some(sandbox.processes.root()));
    sys::exit_now(code.into())
}

/// A request that can never be served.
pub(crate) fn invalid() -> NotStarted {
    NotStarted {
        why: NotStartedWhy::Invalid,
        errno: libc::EINVAL,
    }
}

fn resources_or_other(errno: i32) -> NotStartedWhy {
    match errno {
        libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::ENOSPC => {
            NotStartedWhy::Resources
        }
        _ => NotStartedWhy::Other,
    }
}

/// The sandbox's environment with the command's variables on top; of a name
/// that is given twice, the last value counts.
fn environment(
    inherited: &[Variable],
    own: Vec<(Text, Text)>,
) -> Result<Vec<Variable>, NotStarted> {
    let mut variables = inherited.to_vec();
    for (name, value) in own {
        let (name, value) = (name.into_bytes(), value.into_bytes());
        if name.is_empty() || name.contains(&b'=') {
            return Err(invalid());
        }
        match variables.iter_mut().find(|known| known.name == name) {
            Some(known) => known.value = value,
            None => variables.push(Variable { name, value }),
        }
    }
    Ok(variables)
}

impl Variable {
    fn into_pair(self) -> Vec<u8> {
        [self.name, self.value].join(&b'=')
    }
}

/// The files that a program's name may mean.
fn candidates(name: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if name.contains(&b'/') {
        return vec![name.to_vec()];
    }
    let in_directory = |directory: &[u8]| match directory {
        [] => [b"./", name].concat(), // POSIX: an empty prefix is the current directory
        directory => [directory, b"/", name].concat(),
    };
    path.split(|byte| *byte == b':').map(in_directory).collect()
}

fn strings(texts: impl IntoIterator<Item = Vec<u8>>) -> Result<Vec<CString>, NotStarted> {
    let string = |text: Vec<u8>| {
        if text.len() > ARGUMENT {
            return Err(NotStarted {
                why: NotStartedWhy::TooLong,
                errno: libc::E2BIG,
            });
        }
        CString::new(text).map_err(|_| invalid())
    };
    texts.into_iter().map(string).collect()
}

#[cfg(test)]
mod tests {
    use stockade_wire::message::TtySize;

    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        Variable {
            name: name.into(),
            value: value.into(),
        }
    }

    fn start(words: &[&[u8]]) -> Start {
        Start {
            program: Asked::Argv(words.iter().map(|word| Text::from(*word)).collect()),
            env: Vec::new(),
            cwd: None,
            stdin: false,
            tty: None,
            timeout_ms: None,
            output_limit: None,
            background: false,
        }
    }

    fn prepare(start: Start) -> Result<Program, NotStarted> {
        Program::prepare(start, &[], &CString::new("/").unwrap())
    }

    fn why(start: Start) -> Option<NotStartedWhy> {
        prepare(start).err().map(|not_started| not_started.why)
    }

    #[test]
    fn a_name_is_looked_up_along_the_path_and_a_file_is_taken_as_it_is() {
        assert_eq!(candidates(b"a", b"/x:/y"), [b"/x/a", b"/y/a"]);
        assert_eq!(candidates(b"a", b":/y"), [&b"./a"[..], b"/y/a"]);
        assert_eq!(candidates(b"./a", b"/x:/y"), [b"./a"]);
    }

    #[test]
    fn the_path_is_that_of_the_command_itself() {
        let mut request = start(&[b"a"]);
        request.env = vec![("PATH".into(), "/own".into())];
        let inherited = [variable("PATH", "/inherited")];
        let program = Program::prepare(request, &inherited, &CString::new("/").unwrap()).unwrap();
        let Program::Command(command) = program else {
            panic!("a program of the image");
        };
        assert_eq!(command.candidates, [CString::new("/own/a").unwrap()]);
    }

    #[test]
    fn the_last_value_of_a_variable_counts() {
        let inherited = [variable("A", "1"), variable("B", "2")];
        let own = vec![
            ("A".into(), "3".into()),
            ("A".into(), "4=5\n".into()),
            ("C".into(), "".into()),
        ];
        let variables = environment(&inherited, own).unwrap();
        let expected = [("A", "4=5\n"), ("B", "2"), ("C", "")];
        assert_eq!(
            variables,
            expected.map(|(name, value)| variable(name, value))
        );
    }

    #[test]
    fn what_no_kernel_takes_is_refused_before_the_fork() {
        assert_eq!(why(start(&[])), Some(NotStartedWhy::Invalid));
        assert_eq!(why(start(&[b""])), Some(NotStartedWhy::Invalid));
        assert_eq!(why(start(&[b"a", b"b\0c"])), Some(NotStartedWhy::Invalid));
        let long = vec![b'x'; ARGUMENT + 1];
        assert_eq!(why(start(&[b"a", &long])), Some(NotStartedWhy::TooLong));
        for name in ["", "A=B", "A\0"] {
            let mut request = start(&[b"a"]);
            request.env = vec![(name.into(), "x".into())];
            assert_eq!(why(request), Some(NotStartedWhy::Invalid), "{name:?}");
        }
        let mut request = start(&[b"a"]);
        request.cwd = Some(Text::from(&b"a\0b"[..]));
        assert_eq!(why(request), Some(NotStartedWhy::Invalid));
    }

    #[test]
    fn a_file_operation_takes_its_standard_input_and_nothing_else() {
        let mut files = start(&[]);
        files.program = Asked::Files;
        assert_eq!(why(files.clone()), Some(NotStartedWhy::Invalid));
        files.stdin = true;
        assert_eq!(why(files.clone()), None);
        let mut elsewhere = files.clone();
        elsewhere.cwd = Some("/".into());
        let mut with_variables = files.clone();
        with_variables.env = vec![("A".into(), "b".into())];
        let mut on_terminal = files;
        on_terminal.tty = Some(TtySize {
            rows: 1,
            columns: 1,
        });
        for request in [elsewhere, with_variables, on_terminal] {
            assert_eq!(why(request), Some(NotStartedWhy::Invalid));
        }
    }

    #[test]
    fn each_error_of_the_kernel_has_its_reason() {
        let program = prepare(start(&[b"a"])).unwrap();
        let mut shell = start(&[]);
        shell.program = Asked::Shell("exit".into());
        let shell = prepare(shell).unwrap();
        let at = |step: Step, errno: i32| {
            let [a, b, c, d] = errno.to_le_bytes();
            [step as u8, a, b, c, d]
        };
        for (step, errno, expected) in [
            (Step::Execute, libc::ENOENT, NotStartedWhy::NotFound),
            (Step::Execute, libc::EACCES, NotStartedWhy::NotExecutable),
            (Step::Execute, libc::ENOEXEC, NotStartedWhy::BadFormat),
            (Step::Execute, libc::E2BIG, NotStartedWhy::TooLong),
            (Step::Execute, libc::ENOMEM, NotStartedWhy::Resources),
            (Step::Execute, libc::EIO, NotStartedWhy::Other),
            (
                Step::WorkingDirectory,
                libc::ENOENT,
                NotStartedWhy::WorkingDirectory,
            ),
            (Step::Terminal, libc::EIO, NotStartedWhy::Terminal),
            (Step::Descriptors, libc::EMFILE, NotStartedWhy::Resources),
        ] {
            let found = program.why_not(at(step, errno));
            assert_eq!((found.why, found.errno), (expected, errno), "{step:?}");
        }
        let found = shell.why_not(at(Step::Execute, libc::ENOENT));
        assert_eq!(found.why, NotStartedWhy::NoShell);
    }
}
