//! Files written: what arrives, and how.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stockade::files::EntryKind;
use stockade::{Content, FileWrite};

use super::content::{SIZES, binary, bytes, every_legal_byte, room, trap_names};
use crate::probe::{Verdict, demand, probes};
use crate::site::Site;

probes! { OnSite;
    a_write_lands_and_reads_back: "the least that a write must do";
    every_byte_survives: "files are bytes: whoever translates them destroys archives and images";
    every_size_survives: "blocks, pages and buffers have edges, and files end at all of them";
    text_is_utf8: "what is written is what was given";
    a_second_write_replaces: "an old end behind a new content is a file that nobody wrote";
    directories_are_made: "callers name files and not directories";
    every_legal_name_arrives: "a name is bytes; a backend that takes it for text or options writes another file";
    a_reader_arrives_whole: "a stream comes in pieces of any size";
    a_batch_of_a_hundred_arrives: "a batch must not end at some unsaid number";
    an_empty_batch_is_nothing: "no file is no mistake";
    the_mode_is_kept: "a script that cannot be executed, or a key that all can read, is not what was sent";
    special_bits_are_masked: "setuid in a sandbox is a step out of it";
    the_time_is_kept: "build tools decide by it";
    directories_can_be_written: "an empty directory is a part of a tree";
    directories_on_the_way_are_not_restamped: "a write into a directory must not change whose it is or who may enter";
    a_directory_that_exists_stays_as_it_is: "what exists is the guest's";
}

async fn a_write_lands_and_reads_back(site: &Site) -> Verdict {
    let path = site.absolute("real/written.txt");
    site.sandbox()
        .write_file(site.call(), &path, "written")
        .await?;
    site.holds("real/written.txt", b"written").await
}

async fn every_byte_survives(site: &Site) -> Verdict {
    site.write("binary", binary()).await?;
    site.holds("binary", &binary()).await
}

async fn every_size_survives(site: &Site) -> Verdict {
    let total: usize = SIZES.iter().sum();
    let most = SIZES[SIZES.len() - 1];
    room(
        site.spec().files_in(),
        SIZES.len() as u64,
        most as u64,
        total as u64,
    )?;
    let mut files = Vec::new();
    for size in SIZES {
        let path = site.guest(format!("{size}"))?;
        files.push(FileWrite::new(path, bytes(size)));
    }
    site.write_all(files).await?;
    for size in SIZES {
        site.holds(format!("{size}"), &bytes(size)).await?;
    }
    Ok(())
}

async fn text_is_utf8(site: &Site) -> Verdict {
    let text = "grün 漢字 🦀";
    site.write("text", text).await?;
    site.holds("text", text.as_bytes()).await
}

async fn a_second_write_replaces(site: &Site) -> Verdict {
    for content in [&b"first, and rather long"[..], b"second", b"third, longer"] {
        site.write("file", content).await?;
        site.holds("file", content).await?;
    }
    Ok(())
}

async fn directories_are_made(site: &Site) -> Verdict {
    site.write("deep/er/est/leaf.txt", "leaf").await?;
    site.holds("deep/er/est/leaf.txt", b"leaf").await
}

async fn every_legal_name_arrives(site: &Site) -> Verdict {
    let mut names = trap_names();
    names.push(every_legal_byte());
    let mut files = Vec::new();
    for name in &names {
        files.push(FileWrite::new(site.guest(name)?, name.clone()));
    }
    room(site.spec().files_in(), files.len() as u64, 255, 4096)?;
    site.write_all(files).await?;
    for name in &names {
        site.holds(name, name).await?;
    }
    Ok(())
}

async fn a_reader_arrives_whole(site: &Site) -> Verdict {
    let content = bytes(100_000);
    let reader = Content::reader(100_000, std::io::Cursor::new(content.clone()));
    site.write("read", reader).await?;
    site.holds("read", &content).await
}

async fn a_batch_of_a_hundred_arrives(site: &Site) -> Verdict {
    room(site.spec().files_in(), 100, 16, 1600)?;
    let mut files = Vec::new();
    for number in 0..100 {
        let path = site.guest(format!("{}/{number}", number % 7))?;
        files.push(FileWrite::new(path, format!("file {number}")));
    }
    site.write_all(files).await?;
    for number in 0..100 {
        let wanted = format!("file {number}");
        let seen = site.seen(format!("{}/{number}", number % 7)).await?;
        let whole = seen.kind == EntryKind::File && seen.size == wanted.len() as u64;
        demand!(whole, "file {number} is {seen:?}");
    }
    for number in [0, 50, 99] {
        let wanted = format!("file {number}");
        site.holds(format!("{}/{number}", number % 7), wanted.as_bytes())
            .await?;
    }
    Ok(())
}

async fn an_empty_batch_is_nothing(site: &Site) -> Verdict {
    Ok(site.write_all(Vec::new()).await?)
}

async fn the_mode_is_kept(site: &Site) -> Verdict {
    for mode in [0o600, 0o640, 0o755, 0o444] {
        let name = format!("{mode:o}");
        let file = FileWrite::new(site.guest(&name)?, "mode").mode(mode);
        site.write_all(vec![file]).await?;
        let found = site.seen(&name).await?.mode;
        demand!(found == mode, "mode {mode:04o} became {found:04o}");
    }
    // A file that is replaced has the new mode.
    let file = FileWrite::new(site.guest("600")?, "mode").mode(0o755);
    site.write_all(vec![file]).await?;
    let found = site.seen("600").await?.mode;
    demand!(found == 0o755, "mode 0755 became {found:04o}");
    Ok(())
}

async fn special_bits_are_masked(site: &Site) -> Verdict {
    for (asked, wanted) in [(0o4755, 0o755), (0o2755, 0o755), (0o1777, 0o777)] {
        let name = format!("{asked:o}");
        let file = FileWrite::new(site.guest(&name)?, "mode").mode(asked);
        let directory = FileWrite::directory(site.guest(format!("d{name}"))?).mode(asked);
        site.write_all(vec![file, directory]).await?;
        for name in [name.clone(), format!("d{name}")] {
            let found = site.seen(&name).await?.mode;
            demand!(found == wanted, "mode {asked:04o} became {found:04o}");
        }
    }
    Ok(())
}

async fn the_time_is_kept(site: &Site) -> Verdict {
    for seconds in [0, 1_000_000_000] {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        let name = format!("{seconds}");
        let file = FileWrite::new(site.guest(&name)?, "time").modified(time);
        site.write_all(vec![file]).await?;
        let found = seconds_of(site.seen(&name).await?.modified);
        demand!(found == seconds, "{seconds} became {found}");
    }
    Ok(())
}

async fn directories_can_be_written(site: &Site) -> Verdict {
    let directory = FileWrite::directory(site.guest("a/b")?).mode(0o700);
    let below = FileWrite::new(site.guest("a/b/c")?, "below");
    site.write_all(vec![directory, below]).await?;
    let seen = site.seen("a/b").await?;
    demand!(
        seen.kind == EntryKind::Directory && seen.mode == 0o700,
        "it is {seen:?}"
    );
    site.holds("a/b/c", b"below").await
}

async fn directories_on_the_way_are_not_restamped(site: &Site) -> Verdict {
    site.make_directory("outer/inner").await?;
    stamp(site, "outer/inner", 0o711).await?;
    stamp(site, "outer", 0o700).await?;
    site.write("outer/inner/file", "file").await?;
    let inner = site.seen("outer/inner").await?.mode;
    demand!(inner == 0o711, "mode 0711 became {inner:04o}");
    // Its own content did not change, so neither did its time.
    is_stamped(site, "outer", 0o700).await?;
    site.holds("outer/inner/file", b"file").await
}

async fn a_directory_that_exists_stays_as_it_is(site: &Site) -> Verdict {
    site.plant("there/file", b"file").await?;
    stamp(site, "there", 0o700).await?;
    let directory = FileWrite::directory(site.guest("there")?).mode(0o755);
    site.write_all(vec![directory]).await?;
    is_stamped(site, "there", 0o700).await?;
    site.holds("there/file", b"file").await
}

/// A time that is not now.
const STAMP: u64 = 1_000_000_000;

async fn stamp(site: &Site, below: &str, mode: u32) -> Verdict {
    let path = site.absolute(below);
    site.subject().set_mode(&site.at, &path, mode).await?;
    Ok(site.subject().set_modified(&site.at, &path, STAMP).await?)
}

async fn is_stamped(site: &Site, below: &str, mode: u32) -> Verdict {
    let seen = site.seen(below).await?;
    let found = seconds_of(seen.modified);
    demand!(
        seen.mode == mode && found == STAMP,
        "mode {mode:04o} of {STAMP} became {:04o} of {found}",
        seen.mode
    );
    Ok(())
}

fn seconds_of(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
