//! Files read and looked at: what is answered.

use std::time::{Duration, UNIX_EPOCH};

use stockade::files::EntryKind;
use stockade::{FileRead, GuestPath, ReadRequest};

use super::content::{SIZES, binary, bytes, every_legal_byte, room, trap_names};
use crate::probe::{Verdict, demand, probes};
use crate::site::{Site, same};

probes! { OnSite;
    a_legitimate_read_still_works: "a backend that refuses everything is safe and useless";
    every_byte_survives: "files are bytes: whoever translates them destroys archives and images";
    every_size_survives: "blocks, pages and buffers have edges, and files end at all of them";
    a_file_that_memory_does_not_hold_is_whole: "what is set aside on disk must come back as it was";
    every_legal_name_is_read: "a name is bytes; a backend that takes it for text or options reads another file";
    a_look_tells_size_mode_and_time: "callers decide by them";
    a_read_tells_what_it_read: "size and kind of a file that was read must be the ones of that read";
    a_file_is_read_as_it_is_now: "an answer from before is a lie";
    a_look_at_nothing_is_no_error: "asking whether something is there must not fail when it is not";
    a_batch_keeps_its_order: "an answer is matched to its question by its place";
    an_empty_batch_is_nothing: "no file is no mistake";
}

async fn a_legitimate_read_still_works(site: &Site) -> Verdict {
    site.plant("real/inside.txt", b"inside").await?;
    same(&site.read("real/inside.txt").await?, b"inside")?;
    let stat = site.stat("real/inside.txt").await?;
    let found = stat.as_ref().map(|stat| (stat.kind, stat.size));
    demand!(found == Some((EntryKind::File, Some(6))), "it is {stat:?}");
    Ok(())
}

async fn every_byte_survives(site: &Site) -> Verdict {
    site.plant("binary", &binary()).await?;
    same(&site.read("binary").await?, &binary())
}

async fn every_size_survives(site: &Site) -> Verdict {
    let total: usize = SIZES.iter().sum();
    let most = SIZES[SIZES.len() - 1];
    let limits = site.spec().files_out();
    room(limits, SIZES.len() as u64, most as u64, total as u64)?;
    for size in SIZES {
        site.plant(size.to_string(), &bytes(size)).await?;
    }
    let paths = SIZES.map(|size| site.guest(size.to_string()));
    let paths: Vec<GuestPath> = paths.into_iter().collect::<Verdict<_>>()?;
    let request = ReadRequest::of(paths);
    let files = site.sandbox().read_files(site.call(), request).await?;
    demand!(files.len() == SIZES.len(), "{} files came", files.len());
    for (file, size) in files.iter().zip(SIZES) {
        let content = file.content.to_bytes().await?;
        let same = same(&content, &bytes(size));
        same.map_err(|stop| stop.during(&format!("a file of {size} bytes")))?;
    }
    Ok(())
}

async fn a_file_that_memory_does_not_hold_is_whole(site: &Site) -> Verdict {
    const SIZE: usize = 1024 * 1024 + 70_001;
    room(site.spec().files_out(), 1, SIZE as u64, SIZE as u64)?;
    site.plant("large", &bytes(SIZE)).await?;
    same(&site.read("large").await?, &bytes(SIZE))
}

async fn every_legal_name_is_read(site: &Site) -> Verdict {
    let mut names = trap_names();
    names.push(every_legal_byte());
    for name in names {
        site.plant(&name, &name).await?;
        same(&site.read(&name).await?, &name)?;
    }
    Ok(())
}

async fn a_look_tells_size_mode_and_time(site: &Site) -> Verdict {
    site.plant("file", &bytes(4097)).await?;
    let path = site.absolute("file");
    site.subject().set_mode(&site.at, &path, 0o751).await?;
    site.subject()
        .set_modified(&site.at, &path, 1_234_567_890)
        .await?;
    let stat = site.stat("file").await?;
    let time = UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    let right = stat
        .as_ref()
        .is_some_and(|stat| stat.size == Some(4097) && stat.mode == 0o751 && stat.modified == time);
    demand!(right, "it is {stat:?}");
    site.make_directory("directory").await?;
    let stat = site.stat("directory").await?;
    let right = stat
        .as_ref()
        .is_some_and(|stat| stat.kind == EntryKind::Directory && stat.size.is_none());
    demand!(right, "a directory is {stat:?}");
    Ok(())
}

async fn a_read_tells_what_it_read(site: &Site) -> Verdict {
    site.plant("file", b"content").await?;
    let path = site.absolute("file");
    site.subject().set_mode(&site.at, &path, 0o700).await?;
    let request = ReadRequest::of([site.guest("file")?]);
    let files = site.sandbox().read_files(site.call(), request).await?;
    demand!(files.len() == 1, "{} files came for one", files.len());
    let file = &files[0];
    demand!(
        file.path == site.guest("file")?
            && file.stat.kind == EntryKind::File
            && file.stat.size == Some(7)
            && file.stat.mode == 0o700
            && file.content.len() == 7,
        "it is {file:?}"
    );
    Ok(())
}

async fn a_file_is_read_as_it_is_now(site: &Site) -> Verdict {
    for content in [&b"first"[..], b"second, longer", b""] {
        site.plant("file", content).await?;
        same(&site.read("file").await?, content)?;
        let size = site.stat("file").await?.and_then(|stat| stat.size);
        demand!(size == Some(content.len() as u64), "its size is {size:?}");
    }
    Ok(())
}

async fn a_look_at_nothing_is_no_error(site: &Site) -> Verdict {
    for below in ["missing", "missing/below"] {
        let stat = site.stat(below).await?;
        demand!(stat.is_none(), "{below} is {stat:?}");
    }
    Ok(())
}

async fn a_batch_keeps_its_order(site: &Site) -> Verdict {
    room(site.spec().files_out(), 100, 16, 1600)?;
    let mut reads = Vec::new();
    for number in (0..100).rev() {
        let below = format!("{}/{number}", number % 3);
        let content = format!("file {number}");
        site.plant(&below, content.as_bytes()).await?;
        reads.push(FileRead::new(site.guest(&below)?));
    }
    let request = ReadRequest::new(reads);
    let files = site.sandbox().read_files(site.call(), request).await?;
    demand!(files.len() == 100, "{} files came for 100", files.len());
    for (file, number) in files.iter().zip((0..100).rev()) {
        let wanted = site.guest(format!("{}/{number}", number % 3))?;
        demand!(
            file.path == wanted,
            "{} came in the place of {wanted}",
            file.path
        );
        let content = file.content.to_bytes().await?;
        same(&content, format!("file {number}").as_bytes())?;
    }
    Ok(())
}

async fn an_empty_batch_is_nothing(site: &Site) -> Verdict {
    let request = ReadRequest::default();
    let files = site.sandbox().read_files(site.call(), request).await?;
    demand!(files.is_empty(), "{} files came for none", files.len());
    Ok(())
}
