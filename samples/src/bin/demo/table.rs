//! Times, and the table that shows them.

use std::fmt;
use std::future::Future;
use std::time::Duration;

/// A value and how long it took to get.
pub(crate) struct Timed<T> {
    pub(crate) value: T,
    pub(crate) took: Duration,
}

/// Measures one future.
pub(crate) async fn timed<T>(future: impl Future<Output = T>) -> Timed<T> {
    let start = tokio::time::Instant::now();
    let value = future.await;
    Timed {
        value,
        took: start.elapsed(),
    }
}

/// Rows of a step, its time, its floor, and the floor's time.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// A step for which no bare command does the same.
    pub(crate) fn row_without_floor(&mut self, step: &str, took: Duration, why: &str) {
        self.rows
            .push([step.into(), millis(took), format!("({why})"), "-".into()]);
    }

    pub(crate) fn row(&mut self, step: &str, took: Duration, floor: &str, floor_took: Duration) {
        self.rows
            .push([step.into(), millis(took), floor.into(), millis(floor_took)]);
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["step", "stockade", "bare docker command", "took"];
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].len());
            cells.chain([heads[column].len()]).max().unwrap_or(0)
        };
        let [a, b, c, d] = [width(0), width(1), width(2), width(3)];
        writeln!(
            f,
            "  {:a$}  {:>b$}  {:c$}  {:>d$}",
            heads[0], heads[1], heads[2], heads[3]
        )?;
        for [step, took, floor, floor_took] in &self.rows {
            writeln!(f, "  {step:a$}  {took:>b$}  {floor:c$}  {floor_took:>d$}")?;
        }
        Ok(())
    }
}
