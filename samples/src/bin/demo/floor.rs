//! The bare docker commands that stand beside each step. They show what the
//! same thing costs without Stockade; nothing of Stockade goes through here.

#![expect(
    clippy::disallowed_methods,
    reason = "the floor is the bare command, outside the library"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

/// Runs `docker` as a person would.
pub(crate) struct Floor {
    docker: String,
    name: String,
}

/// What a bare command printed, and how long it took.
pub(crate) struct Bare {
    pub(crate) stdout: String,
    pub(crate) took: Duration,
}

impl Floor {
    pub(crate) fn from_env() -> Result<Self, String> {
        let docker = std::env::var("STOCKADE_DOCKER").unwrap_or_else(|_| "docker".into());
        Ok(Self {
            docker,
            name: format!("stockade-demo-floor-{}", std::process::id()),
        })
    }

    pub(crate) fn version(&self) -> Result<Duration, String> {
        Ok(self
            .docker(&["version", "--format", "{{json .}}"], &[])?
            .took)
    }

    /// `docker run -d`, and then `docker exec`, and then `docker rm -f`.
    pub(crate) fn container(&self, image: &str) -> Result<[Duration; 3], String> {
        let created = self.start(image)?;
        let executed = self.docker(&["exec", &self.name, "true"], &[]);
        let removed = self.docker(&["rm", "-f", &self.name], &[]);
        Ok([created, executed?.took, removed?.took])
    }

    /// `docker cp` of a file into a running container, and out of it again;
    /// then what `docker pause` and `docker unpause` take together.
    pub(crate) fn copies(&self, image: &str, file: &str) -> Result<[Duration; 3], String> {
        self.start(image)?;
        let place = format!("{}:/copied", self.name);
        let verbs: [&[&str]; 4] = [
            &["cp", file, &place],
            &["cp", &place, "-"],
            &["pause", &self.name],
            &["unpause", &self.name],
        ];
        let took = verbs.map(|words| self.docker(words, &[]).map(|bare| bare.took));
        self.docker(&["rm", "-f", &self.name], &[])?;
        let [copied_in, copied_out, paused, thawed] = took;
        Ok([copied_in?, copied_out?, paused? + thawed?])
    }

    fn start(&self, image: &str) -> Result<Duration, String> {
        let run = [
            "run",
            "-d",
            "--rm",
            "--name",
            &self.name,
            "--network",
            "none",
            image,
            "sleep",
            "300",
        ];
        Ok(self.docker(&run, &[])?.took)
    }

    /// `docker run --rm -i`, with standard input.
    pub(crate) fn run(&self, image: &str, argv: &[&str], input: &[u8]) -> Result<Bare, String> {
        let mut words = vec![
            "run",
            "--rm",
            "-i",
            "--name",
            &self.name,
            "--network",
            "none",
            image,
        ];
        words.extend(argv);
        self.docker(&words, input)
    }

    /// Names of containers and volumes that carry an owner's label.
    pub(crate) fn left_of(&self, owner: &str) -> Result<Vec<String>, String> {
        let filter = format!("label=dev.stockade.owner={owner}");
        let containers = ["ps", "-a", "--format", "{{.Names}}", "--filter", &filter];
        let volumes = ["volume", "ls", "--format", "{{.Name}}", "--filter", &filter];
        let mut left = Vec::new();
        for words in [&containers[..], &volumes[..]] {
            left.extend(self.docker(words, &[])?.stdout.lines().map(str::to_owned));
        }
        Ok(left)
    }

    fn docker(&self, words: &[&str], input: &[u8]) -> Result<Bare, String> {
        let shown = || format!("docker {}", words.join(" "));
        let start = Instant::now();
        let mut child = Command::new(&self.docker)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", shown()))?;
        let stdin = child.stdin.take();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input is no fault.
                let _ = stdin.write_all(&input);
            }
        });
        let output = child
            .wait_with_output()
            .map_err(|error| format!("{}: {error}", shown()))?;
        let took = start.elapsed();
        let _ = feeder.join();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{} failed: {said}", shown()));
        }
        Ok(Bare {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            took,
        })
    }
}
