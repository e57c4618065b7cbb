//! A program in a running container, held open.

use crate::argv::{Argv, ContainerRef};
use crate::registry::Streamed;
use crate::verbs::User;

/// `docker exec --interactive`: a program whose standard input and output are
/// the caller's. See [`Docker::open_stream`](crate::Docker::open_stream).
///
/// Ending the docker client does not end the program: it sees the end of its
/// standard input, and has to leave by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecStream {
    container: ContainerRef,
    program: String,
    arguments: Vec<String>,
    user: Option<User>,
}

impl ExecStream {
    /// The name under which calls are counted.
    pub const NAME: &'static str = Streamed::EXEC.name();

    /// Runs this program with these arguments.
    pub fn new<S: Into<String>>(
        container: impl Into<ContainerRef>,
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            container: container.into(),
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            user: None,
        }
    }

    /// Runs as this user; as the container's own if not given.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.user = Some(user);
        self
    }

    /// The words of the call.
    pub fn argv(&self) -> Argv {
        Argv::new(&["exec"])
            .flag("interactive")
            .maybe("user", self.user)
            .positional(&self.container)
            .command(std::slice::from_ref(&self.program))
            .command(&self.arguments)
    }
}
