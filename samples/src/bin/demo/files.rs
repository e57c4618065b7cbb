//! Files in, files out: a program and a real data set go in, a report and a
//! chart come back, and every number in them is counted a second time here.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use stockade::files::FileContent;
use stockade::{
    Backend as _, Call, ExecRequest, ExecStatus, FileWrite, GuestPath, ReadRequest, Sandbox,
    SandboxKey,
};
use stockade_docker::{DockerBackend, DockerConfig, FilePlane};

use crate::Stage;
use crate::steps::{Shown, dispose, expect, spec};
use crate::table::{Table, timed};

/// The program that a model might have written.
const PROGRAM: &str = include_str!("../../../programs/report.py");

/// What it brings back.
const OUTPUTS: [&str; 3] = ["out/report.json", "out/report.md", "out/chart.svg"];

/// How many organisations the report names.
const TOP: usize = 10;

/// What is counted of the data set.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    rows: u64,
    organisations: u64,
    single: u64,
    registries: BTreeMap<String, u64>,
    top: Vec<(String, u64)>,
}

/// What one run moved, and how long that took.
struct Moved {
    written: Duration,
    read: Duration,
    said: String,
    files: Vec<(&'static str, Bytes)>,
}

/// A model's program over a real file, on both planes.
pub(crate) async fn report_and_chart(call: &Call, stage: &Stage, table: &mut Table) -> Shown {
    println!(
        "\n2. A program and a data set of {} KiB go in as files; a report and a chart come back\n",
        stage.data.len() / 1024
    );
    let tar = moved(call, stage, &stage.backend, "tar").await?;
    let config = DockerConfig::new("stockade-demo").file_plane(FilePlane::Guest);
    let backend = DockerBackend::connect(call, config).await?;
    let guest = moved(call, stage, &backend, "guest").await?;
    println!("     {}", tar.said.trim_end());
    if tar.files != guest.files {
        return Err("the two planes brought back different files".into());
    }
    let counted = check(&stage.data, &tar.files)?;
    println!(
        "     counted again here: {} rows, {} organisations, {} with one block, and the same {TOP} at the top",
        counted.rows, counted.organisations, counted.single
    );
    for (name, count) in counted.top.iter().take(3) {
        println!("       {name}: {count}");
    }
    for (path, content) in &tar.files {
        let landed = land(&stage.out, path, content)?;
        println!("     landed: {landed} ({} bytes)", content.len());
    }

    let data = std::env::var("STOCKADE_TEST_DATA")?;
    let [copied_in, copied_out, held] = stage.floor.copies(&stage.python, &data)?;
    let rows = [
        (
            "program and data in",
            &tar.written,
            &guest.written,
            copied_in,
        ),
        ("report and chart out", &tar.read, &guest.read, copied_out),
    ];
    for (what, by_tar, by_guest, bare) in rows {
        let paused = "docker pause, cp, unpause";
        table.row(&format!("{what}, tar plane"), *by_tar, paused, bare + held);
        table.row(
            &format!("{what}, guest plane"),
            *by_guest,
            "docker cp",
            bare,
        );
    }
    Ok(())
}

/// One sandbox: the files go in, the program runs, its files come out.
async fn moved(
    call: &Call,
    stage: &Stage,
    backend: &DockerBackend,
    plane: &str,
) -> Result<Moved, Box<dyn Error>> {
    let spec = spec(&stage.python)?;
    let key = SandboxKey::new("demo", "files", "agent").with_call(plane);
    let sandbox = backend.acquire(call, &key, &spec).await?;
    let moved = in_sandbox(call, stage, &sandbox).await;
    dispose(call, stage, &key).await?;
    moved
}

async fn in_sandbox(
    call: &Call,
    stage: &Stage,
    sandbox: &Sandbox,
) -> Result<Moved, Box<dyn Error>> {
    // The first command opens the channel, which is not what is measured here.
    let warm = sandbox
        .exec(call, ExecRequest::argv(["true"]).build()?)
        .await?;
    expect(&warm, ExecStatus::Exited(0))?;
    let files = vec![
        FileWrite::new(sandbox.path("report.py")?, PROGRAM),
        FileWrite::new(sandbox.path("data/oui.csv")?, stage.data.clone()),
    ];
    let wrote = timed(sandbox.write_files(call, files)).await;
    wrote.value?;
    let request = ExecRequest::argv(["python3", "report.py"]).build()?;
    let outcome = sandbox.exec(call, request).await?;
    expect(&outcome, ExecStatus::Exited(0))?;
    let paths: Result<Vec<GuestPath>, _> = OUTPUTS.iter().map(|path| sandbox.path(path)).collect();
    let read = timed(sandbox.read_files(call, ReadRequest::of(paths?))).await;
    let mut files = Vec::new();
    for (path, file) in OUTPUTS.into_iter().zip(read.value?) {
        let content: FileContent = file.content;
        files.push((path, content.to_bytes().await?));
    }
    Ok(Moved {
        written: wrote.took,
        read: read.took,
        said: outcome.stdout_text().into_owned(),
        files,
    })
}

/// The report's numbers and the chart's bars, against a count of our own.
fn check(data: &[u8], files: &[(&str, Bytes)]) -> Result<Counted, Box<dyn Error>> {
    let counted = count(data)?;
    let text = |wanted: &str| -> Result<&str, Box<dyn Error>> {
        let file = files.iter().find(|(path, _)| *path == wanted);
        let (_, content) = file.ok_or_else(|| format!("{wanted} did not come back"))?;
        Ok(std::str::from_utf8(content)?)
    };
    let report = parsed(text("out/report.json")?)?;
    if report != counted {
        return Err(format!("the report says {report:?}, and there are {counted:?}").into());
    }
    let chart = text("out/chart.svg")?;
    let page = text("out/report.md")?;
    let bars = chart.matches("fill=\"#3b6ea5\"").count();
    let whole = chart.starts_with("<svg ") && chart.trim_end().ends_with("</svg>");
    let told = counted.top.iter().all(|(_, count)| {
        chart.contains(&format!(">{count}</text>")) && page.contains(&format!("| {count} |"))
    });
    if bars != TOP || !whole || !told {
        return Err(format!("the chart has {bars} bars, or not the counts of the report").into());
    }
    Ok(counted)
}

/// Counts what the program counts, without anything of the program's.
fn count(data: &[u8]) -> Result<Counted, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(data);
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    let mut registries: BTreeMap<String, u64> = BTreeMap::new();
    let mut rows = 0;
    for record in reader.records() {
        let record = record?;
        let field = |at: usize| record.get(at).unwrap_or_default().trim().to_owned();
        *registries.entry(field(0)).or_default() += 1;
        *names.entry(field(2)).or_default() += 1;
        rows += 1;
    }
    let mut top: Vec<(String, u64)> = names
        .iter()
        .map(|(name, count)| (name.clone(), *count))
        .collect();
    // The names are in order already, and the sort is stable.
    top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    top.truncate(TOP);
    Ok(Counted {
        rows,
        organisations: names.len() as u64,
        single: names.values().filter(|count| **count == 1).count() as u64,
        registries,
        top,
    })
}

fn parsed(text: &str) -> Result<Counted, Box<dyn Error>> {
    let report: serde_json::Value = serde_json::from_str(text)?;
    let number = |name: &str| {
        report[name]
            .as_u64()
            .ok_or_else(|| format!("the report has no {name}"))
    };
    Ok(Counted {
        rows: number("rows")?,
        organisations: number("organisations")?,
        single: number("single")?,
        registries: serde_json::from_value(report["registries"].clone())?,
        top: serde_json::from_value(report["top"].clone())?,
    })
}

/// Puts a file into the folder under its own name, whole or not at all.
fn land(folder: &Path, path: &str, content: &[u8]) -> Result<String, Box<dyn Error>> {
    let name = Path::new(path).file_name().ok_or("an output has a name")?;
    fs::create_dir_all(folder)?;
    let place = folder.join(name);
    let partial = place.with_extension("part");
    fs::write(&partial, content)?;
    fs::rename(&partial, &place)?;
    Ok(place.display().to_string())
}
