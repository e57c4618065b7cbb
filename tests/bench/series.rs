//! Times, and the rows that they make.

use std::process::Command;
use std::time::Duration;

use tokio::time::Instant;

/// One measured thing: every time it took.
#[derive(Default)]
pub(crate) struct Series(pub(crate) Vec<Duration>);

impl Series {
    /// Measures what blocks.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = work();
        self.0.push(start.elapsed());
        value
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2].as_secs_f64() * 1000.0
    }

    fn range(&self) -> String {
        let millis = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        format!(
            "{:.1} to {:.1}",
            millis(self.0.iter().min()),
            millis(self.0.iter().max())
        )
    }
}

pub(crate) async fn timed<T, E: std::fmt::Debug>(
    series: &mut Series,
    future: impl Future<Output = Result<T, E>>,
) -> T {
    let start = Instant::now();
    let value = future.await;
    series.0.push(start.elapsed());
    value.expect("the operation works")
}

pub(crate) fn docker(series: &mut Series, words: &[&str]) {
    timed_command(series, Command::new("docker").args(words));
}

pub(crate) fn timed_command(series: &mut Series, command: &mut Command) {
    let start = Instant::now();
    let output = command.output().expect("the command starts");
    series.0.push(start.elapsed());
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn row(what: &str, ours: &Series, floor: &Series, command: &str, goal: &str) {
    let (median, bare) = (ours.median(), floor.median());
    println!(
        "| {what} | {median:.1} ({}) | {bare:.1} ({}) | `{command}` | {:.2}× | {goal} |",
        ours.range(),
        floor.range(),
        median / bare,
    );
}
