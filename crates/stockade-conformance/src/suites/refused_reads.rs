//! Files that must not be read.

use stockade::files::EntryKind;
use stockade::{FileRead, GuestPath, ReadRequest};

use super::content::room;
use crate::probe::{Verdict, demand, probes, refused_as};
use crate::site::{Site, same};

probes! { OnSite;
    a_link_is_named_a_link: "who takes it for a file reads what the guest chose";
    a_link_is_never_read: "the target is whatever the guest chose, the host's files included";
    a_look_through_a_linked_parent_is_refused: "that a file exists is a secret as well";
    a_read_through_a_linked_parent_is_refused: "an engine that follows it reads as root wherever the guest points";
    a_link_further_up_is_refused: "a check of the last directory alone is no check";
    a_plain_parent_is_not_an_escape: "a mistake in a path must not be taken for an attack, nor for a missing file";
    a_directory_is_not_read: "a directory has no content, and an empty answer hides a mistake";
    a_fifo_is_not_read: "a read of a fifo waits for the guest";
    a_socket_is_not_read: "only files have content";
    a_device_is_not_read: "a read of a device may never end";
    what_is_missing_is_refused: "an empty answer would be a file that nobody wrote";
    a_file_over_its_limit_is_refused_not_cut: "half a file that looks whole is worse than none";
    a_file_of_exactly_its_limit_is_read: "a limit that is off by one refuses what is right";
    a_file_over_the_limit_of_the_spec_is_refused: "a request must not raise what the spec allows";
    a_batch_over_its_limit_is_refused: "many files fill memory as one does";
    too_many_files_are_refused: "files cost time even when they are empty";
    duplicates_are_refused: "who asks twice has made a mistake";
    a_batch_with_one_missing_gives_nothing: "a part of an answer must not pass for the whole";
}

async fn a_link_is_named_a_link(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("inside.txt", b"inside").await?;
    site.link(site.outside("secret.txt"), "link-out").await?;
    site.link("inside.txt", "link-in").await?;
    site.link("nowhere", "link-dangling").await?;
    for below in ["link-out", "link-in", "link-dangling"] {
        let stat = site.stat(below).await?;
        let found = stat.as_ref().map(|stat| (stat.kind, stat.size));
        demand!(
            found == Some((EntryKind::Link, None)),
            "{below} is {stat:?}"
        );
    }
    Ok(())
}

async fn a_link_is_never_read(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("inside.txt", b"inside").await?;
    site.link(site.outside("secret.txt"), "link-out").await?;
    site.link("inside.txt", "link-in").await?;
    site.link("nowhere", "link-dangling").await?;
    site.link("/etc/passwd", "link-system").await?;
    for below in ["link-out", "link-in", "link-dangling", "link-system"] {
        refused_as(site.read(below).await, "file_link").map_err(|stop| stop.during(below))?;
    }
    Ok(())
}

async fn a_look_through_a_linked_parent_is_refused(site: &Site) -> Verdict {
    linked_parents(site).await?;
    for below in ["link-out/secret.txt", "link-in/inside.txt", "link-in/none"] {
        let stat = site.stat(below).await;
        refused_as(stat, "file_linked_parent").map_err(|stop| stop.during(below))?;
    }
    Ok(())
}

async fn a_read_through_a_linked_parent_is_refused(site: &Site) -> Verdict {
    linked_parents(site).await?;
    for below in ["link-out/secret.txt", "link-in/inside.txt", "link-in/none"] {
        let read = site.read(below).await;
        refused_as(read, "file_linked_parent").map_err(|stop| stop.during(below))?;
    }
    Ok(())
}

async fn linked_parents(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("real/inside.txt", b"inside").await?;
    site.link(site.outside("."), "link-out").await?;
    site.link("real", "link-in").await
}

async fn a_link_further_up_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.make_directory("real").await?;
    site.link(site.outside("."), "real/link-dir").await?;
    let below = "real/link-dir/sub/leaf.txt";
    refused_as(site.stat(below).await, "file_linked_parent")?;
    refused_as(site.read(below).await, "file_linked_parent")
}

async fn a_plain_parent_is_not_an_escape(site: &Site) -> Verdict {
    site.plant("plain.txt", b"plain").await?;
    let below = "plain.txt/deeper.txt";
    refused_as(site.stat(below).await, "file_parent_not_directory")?;
    refused_as(site.read(below).await, "file_parent_not_directory")
}

async fn a_directory_is_not_read(site: &Site) -> Verdict {
    site.make_directory("empty").await?;
    site.plant("full/file", b"file").await?;
    refused_as(site.read("empty").await, "file_is_directory")?;
    refused_as(site.read("full").await, "file_is_directory")
}

async fn a_fifo_is_not_read(site: &Site) -> Verdict {
    special_is_not_read(site, EntryKind::Fifo).await
}

async fn a_socket_is_not_read(site: &Site) -> Verdict {
    special_is_not_read(site, EntryKind::Socket).await
}

async fn a_device_is_not_read(site: &Site) -> Verdict {
    special_is_not_read(site, EntryKind::CharDevice).await
}

async fn special_is_not_read(site: &Site, kind: EntryKind) -> Verdict {
    let path = site.absolute("special");
    site.subject().plant_special(&site.at, kind, &path).await?;
    refused_as(site.read("special").await, "file_not_regular")?;
    let stat = site.stat("special").await?;
    let found = stat.as_ref().map(|stat| (stat.kind, stat.size));
    demand!(found == Some((kind, None)), "a {kind} is {stat:?}");
    Ok(())
}

async fn what_is_missing_is_refused(site: &Site) -> Verdict {
    for below in ["missing", "missing/below"] {
        refused_as(site.read(below).await, "file_missing")?;
    }
    Ok(())
}

async fn read_up_to(site: &Site, below: &str, most: u64) -> Result<Vec<u8>, stockade::Error> {
    let path = GuestPath::new(site.path(below));
    let path = path.map_err(|why| stockade::Error::refused(stockade::Operation::ReadFiles, why))?;
    let request = ReadRequest::new([FileRead::new(path).max_bytes(most)]);
    let files = site.sandbox().read_files(site.call(), request).await?;
    let mut read = Vec::new();
    for file in files {
        // What cannot be read from memory here differs below.
        read.extend(file.content.to_bytes().await.unwrap_or_default());
    }
    Ok(read)
}

async fn a_file_over_its_limit_is_refused_not_cut(site: &Site) -> Verdict {
    site.plant("eleven", b"eleven byte").await?;
    refused_as(read_up_to(site, "eleven", 10).await, "file_too_large")?;
    refused_as(read_up_to(site, "eleven", 0).await, "file_too_large")
}

async fn a_file_of_exactly_its_limit_is_read(site: &Site) -> Verdict {
    site.plant("eleven", b"eleven byte").await?;
    same(&read_up_to(site, "eleven", 11).await?, b"eleven byte")?;
    site.plant("none", b"").await?;
    same(&read_up_to(site, "none", 0).await?, b"")
}

async fn a_file_over_the_limit_of_the_spec_is_refused(site: &Site) -> Verdict {
    let most = site.spec().files_out().max_bytes_per_file;
    let path = site.absolute("large");
    site.subject()
        .plant_zeros(&site.at, &path, most + 1)
        .await?;
    refused_as(site.read("large").await, "file_too_large")?;
    refused_as(read_up_to(site, "large", u64::MAX).await, "file_too_large")
}

async fn a_batch_over_its_limit_is_refused(site: &Site) -> Verdict {
    let limits = site.spec().files_out();
    let each = limits.max_bytes_per_file;
    let needed = limits.max_total_bytes / each + 1;
    room(limits, needed, 0, 0)?;
    let mut paths = Vec::new();
    for number in 0..needed {
        let path = site.absolute(number.to_string());
        site.subject().plant_zeros(&site.at, &path, each).await?;
        paths.push(site.guest(number.to_string())?);
    }
    let request = ReadRequest::of(paths);
    let read = site.sandbox().read_files(site.call(), request).await;
    refused_as(read, "file_batch_too_large")
}

async fn too_many_files_are_refused(site: &Site) -> Verdict {
    let mut paths = Vec::new();
    for number in 0..=site.spec().files_out().max_files {
        paths.push(site.guest(number.to_string())?);
    }
    let request = ReadRequest::of(paths);
    let read = site.sandbox().read_files(site.call(), request).await;
    refused_as(read, "file_too_many")
}

async fn duplicates_are_refused(site: &Site) -> Verdict {
    site.plant("file", b"file").await?;
    let request = ReadRequest::of([site.guest("file")?, site.guest("./file")?]);
    let read = site.sandbox().read_files(site.call(), request).await;
    refused_as(read, "file_duplicate")
}

async fn a_batch_with_one_missing_gives_nothing(site: &Site) -> Verdict {
    site.plant("one", b"one").await?;
    site.plant("three", b"three").await?;
    let names = ["one", "two", "three"].map(|name| site.guest(name));
    let paths: Vec<GuestPath> = names.into_iter().collect::<Verdict<_>>()?;
    let request = ReadRequest::of(paths);
    let read = site.sandbox().read_files(site.call(), request).await;
    if let Err(error) = &read {
        let named = error.to_string().contains("two");
        demand!(named, "the error does not name the file: {error}");
    }
    refused_as(read, "file_missing")
}
