//! A work directory that is full.

use stockade::FileWrite;
use stockade::spec::Storage;

use super::content::bytes;
use super::refused_writes::says_what_arrived;
use crate::probe::{Stop, Verdict, demand, probes, refused_as};
use crate::site::Site;

probes! { OnSite;
    a_full_work_directory_names_what_arrived: "who is told of half a batch can send the other half";
    a_file_that_does_not_fit_is_not_left_in_part: "half a file that looks whole is worse than none";
    a_work_directory_full_of_files_is_full: "empty files fill a file system as well";
    a_work_directory_can_be_written_again: "full must not be for ever";
}

/// The largest work directory that is filled; more takes too long.
const MOST_BYTES: u64 = 512 * 1024 * 1024;
const MOST_INODES: u64 = 100_000;

/// Fills all but 64 KiB, if filling is bounded.
async fn fill(site: &Site) -> Verdict {
    bounded(site, site.spec().limits().work_bytes <= MOST_BYTES)?;
    let path = site.absolute("filler");
    Ok(site
        .subject()
        .fill_bytes(&site.at, &path, 64 * 1024)
        .await?)
}

fn bounded(site: &Site, small: bool) -> Verdict {
    if site.spec().storage() == Storage::Tmpfs && small {
        return Ok(());
    }
    Err(Stop::Skipped(format!(
        "it needs a work directory in memory, of at most {MOST_BYTES} bytes and {MOST_INODES} files"
    )))
}

async fn a_full_work_directory_names_what_arrived(site: &Site) -> Verdict {
    fill(site).await?;
    let files = vec![
        FileWrite::new(site.guest("before")?, bytes(1000)),
        FileWrite::new(site.guest("large")?, bytes(512 * 1024)),
        FileWrite::new(site.guest("after")?, bytes(1000)),
    ];
    let written = site.write_all(files).await;
    if let Err(error) = &written {
        says_what_arrived(site, error, &["before", "large", "after"]).await?;
        let whole = error.arrived().map(|arrived| arrived.whole.as_slice());
        for path in whole.unwrap_or_default() {
            let name = path.name().unwrap_or_default();
            site.holds(name, &bytes(1000)).await?;
        }
    }
    refused_as(written, "file_no_space")
}

async fn a_file_that_does_not_fit_is_not_left_in_part(site: &Site) -> Verdict {
    fill(site).await?;
    let written = site.write("large", bytes(512 * 1024)).await;
    let told = written.as_ref().err().and_then(|error| error.arrived());
    let path = site.guest("large")?;
    let told = told.is_some_and(|arrived| arrived.partial.contains(&path));
    refused_as(written, "file_no_space")?;
    let there = site.look("large").await?;
    demand!(
        there.is_none() || told,
        "{there:?} is left of it, and nobody said so"
    );
    Ok(())
}

async fn a_work_directory_full_of_files_is_full(site: &Site) -> Verdict {
    bounded(site, site.spec().limits().work_inodes <= MOST_INODES)?;
    site.make_directory("filler").await?;
    site.make_directory("target").await?;
    let path = site.absolute("filler");
    site.subject().fill_inodes(&site.at, &path, 4).await?;
    let names: Vec<String> = (0..16).map(|number| format!("target/{number}")).collect();
    let mut files = Vec::new();
    for name in &names {
        files.push(FileWrite::new(site.guest(name)?, ""));
    }
    let written = site.write_all(files).await;
    if let Err(error) = &written {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        says_what_arrived(site, error, &names).await?;
    }
    refused_as(written, "file_no_space")
}

async fn a_work_directory_can_be_written_again(site: &Site) -> Verdict {
    fill(site).await?;
    refused_as(
        site.write("large", bytes(512 * 1024)).await,
        "file_no_space",
    )?;
    let filler = site.absolute("filler");
    site.subject().clear(&site.at, &filler).await?;
    site.write("large", bytes(512 * 1024)).await?;
    site.holds("large", &bytes(512 * 1024)).await
}
