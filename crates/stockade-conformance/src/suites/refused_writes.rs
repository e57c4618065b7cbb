//! Files that must not be written.

use stockade::files::EntryKind;
use stockade::{Content, Error, FileWrite};

use super::content::room;
use crate::probe::{Verdict, demand, probes, refused_as};
use crate::site::Site;

probes! { OnSite;
    a_linked_parent_is_refused: "an engine that follows it writes as root wherever the guest points";
    a_linked_parent_further_up_is_refused: "a check of the last directory alone is no check";
    a_linked_parent_inside_is_refused: "a link is refused for what it is, not for where it leads today";
    a_linked_destination_is_refused_not_followed: "the target is whatever the guest chose";
    a_dangling_link_is_refused_not_followed: "a link to nothing makes a file where nobody asked for one";
    a_directory_in_its_place_is_refused: "a directory is not replaced by accident";
    a_file_on_the_way_is_refused: "a file is not replaced by a directory";
    a_fifo_in_its_place_is_refused: "a write to a fifo waits for the guest";
    a_socket_in_its_place_is_refused: "only files are replaced";
    a_device_in_its_place_is_refused: "only files are replaced";
    something_else_where_a_directory_is_asked_is_refused: "a directory entry must not replace a file or follow a link";
    the_work_directory_is_refused: "the base is not a file";
    a_refused_batch_moves_nothing: "who is refused must know what is there";
    duplicates_are_refused: "two contents of one file are a mistake that order must not hide";
    a_file_that_is_also_a_directory_is_refused: "one of the two would be lost";
    a_file_over_its_limit_is_refused_before_its_body: "a refusal after the body has already cost it";
    a_batch_over_its_limit_moves_nothing: "a limit that is found in the middle leaves half a batch";
    too_many_files_are_refused: "files cost time even when they are empty";
    a_reader_that_ends_early_writes_nothing: "half a file that looks whole is worse than none";
    a_reader_that_gives_more_writes_nothing: "a size that was not kept is a mistake of the source";
}

async fn a_linked_parent_is_refused(site: &Site) -> Verdict {
    site.plant_outside("there.txt", b"there").await?;
    site.link(site.outside("."), "link-dir").await?;
    refused_as(
        site.write("link-dir/landed.txt", "no").await,
        "file_linked_parent",
    )?;
    refused_as(
        site.write("link-dir/there.txt", "no").await,
        "file_linked_parent",
    )?;
    site.outside_is_gone("landed.txt").await?;
    site.outside_holds("there.txt", b"there").await
}

async fn a_linked_parent_further_up_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.make_directory("real").await?;
    site.link(site.outside("."), "real/link-dir").await?;
    for below in [
        "real/link-dir/sub/landed.txt",
        "real/link-dir/new/landed.txt",
    ] {
        refused_as(site.write(below, "no").await, "file_linked_parent")?;
    }
    site.outside_is_gone("new").await?;
    site.outside_is_gone("sub/landed.txt").await
}

async fn a_linked_parent_inside_is_refused(site: &Site) -> Verdict {
    site.make_directory("real").await?;
    site.link("real", "link-dir").await?;
    refused_as(
        site.write("link-dir/landed.txt", "no").await,
        "file_linked_parent",
    )?;
    site.is_gone("real/landed.txt").await
}

async fn a_linked_destination_is_refused_not_followed(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"known").await?;
    site.plant("inside.txt", b"known").await?;
    site.link(site.outside("secret.txt"), "link-out").await?;
    site.link("inside.txt", "link-in").await?;
    for link in ["link-out", "link-in"] {
        refused_as(site.write(link, "changed").await, "file_link")?;
        let kind = site.seen(link).await?.kind;
        demand!(kind == EntryKind::Link, "{link} became a {kind}");
    }
    site.outside_holds("secret.txt", b"known").await?;
    site.holds("inside.txt", b"known").await
}

async fn a_dangling_link_is_refused_not_followed(site: &Site) -> Verdict {
    site.link(site.outside("new.txt"), "link-out").await?;
    site.link("new.txt", "link-in").await?;
    for link in ["link-out", "link-in"] {
        refused_as(site.write(link, "no").await, "file_link")?;
    }
    site.outside_is_gone("new.txt").await?;
    site.is_gone("new.txt").await
}

async fn a_directory_in_its_place_is_refused(site: &Site) -> Verdict {
    site.make_directory("empty").await?;
    site.plant("full/file", b"file").await?;
    for below in ["empty", "full"] {
        refused_as(site.write(below, "no").await, "file_is_directory")?;
        let kind = site.seen(below).await?.kind;
        demand!(kind == EntryKind::Directory, "{below} became a {kind}");
    }
    site.holds("full/file", b"file").await
}

async fn a_file_on_the_way_is_refused(site: &Site) -> Verdict {
    site.plant("plain.txt", b"plain").await?;
    for below in ["plain.txt/deeper.txt", "plain.txt/and/deeper.txt"] {
        refused_as(site.write(below, "no").await, "file_parent_not_directory")?;
    }
    site.holds("plain.txt", b"plain").await
}

async fn a_fifo_in_its_place_is_refused(site: &Site) -> Verdict {
    special_is_refused(site, EntryKind::Fifo).await
}

async fn a_socket_in_its_place_is_refused(site: &Site) -> Verdict {
    special_is_refused(site, EntryKind::Socket).await
}

async fn a_device_in_its_place_is_refused(site: &Site) -> Verdict {
    special_is_refused(site, EntryKind::CharDevice).await
}

async fn special_is_refused(site: &Site, kind: EntryKind) -> Verdict {
    let path = site.absolute("special");
    site.subject().plant_special(&site.at, kind, &path).await?;
    refused_as(site.write("special", "no").await, "file_not_regular")?;
    let found = site.seen("special").await?.kind;
    demand!(found == kind, "the {kind} became a {found}");
    Ok(())
}

async fn something_else_where_a_directory_is_asked_is_refused(site: &Site) -> Verdict {
    site.plant("file", b"file").await?;
    site.make_directory("real").await?;
    site.link("real", "link").await?;
    let directory = |below| -> Verdict<_> { Ok(vec![FileWrite::directory(site.guest(below)?)]) };
    let written = site.write_all(directory("file")?).await;
    refused_as(written, "file_not_directory")?;
    refused_as(site.write_all(directory("link")?).await, "file_link")?;
    site.holds("file", b"file").await
}

async fn the_work_directory_is_refused(site: &Site) -> Verdict {
    site.plant("control.txt", b"control").await?;
    let written = site.sandbox().write_file(site.call(), ".", "no").await;
    refused_as(written, "file_work_dir")?;
    site.holds("control.txt", b"control").await
}

async fn a_refused_batch_moves_nothing(site: &Site) -> Verdict {
    site.plant("inside.txt", b"known").await?;
    site.link("inside.txt", "link").await?;
    let files = vec![
        FileWrite::new(site.guest("before.txt")?, "before"),
        FileWrite::new(site.guest("link")?, "no"),
        FileWrite::new(site.guest("after.txt")?, "after"),
    ];
    let written = site.write_all(files).await;
    if let Err(error) = &written {
        says_what_arrived(site, error, &["before.txt", "after.txt"]).await?;
    }
    refused_as(written, "file_link")
}

/// Each of these files is there exactly when the error says so.
pub(super) async fn says_what_arrived(site: &Site, error: &Error, files: &[&str]) -> Verdict {
    for below in files {
        let path = site.guest(below)?;
        let arrived = error.arrived();
        let told = arrived.is_some_and(|arrived| {
            [&arrived.whole, &arrived.partial, &arrived.unknown]
                .iter()
                .any(|paths| paths.contains(&path))
        });
        let there = site.look(below).await?.is_some();
        demand!(
            told || !there,
            "{below} is there, and the error does not say so: {error}"
        );
        let whole = arrived.is_some_and(|arrived| arrived.whole.contains(&path));
        demand!(
            there || !whole,
            "{below} is not there, and the error says that it arrived: {error}"
        );
    }
    Ok(())
}

async fn duplicates_are_refused(site: &Site) -> Verdict {
    let files = vec![
        FileWrite::new(site.guest("file")?, "one"),
        FileWrite::new(site.guest("./file")?, "two"),
    ];
    refused_as(site.write_all(files).await, "file_duplicate")?;
    site.is_gone("file").await
}

async fn a_file_that_is_also_a_directory_is_refused(site: &Site) -> Verdict {
    let files = vec![
        FileWrite::new(site.guest("a/b")?, "below"),
        FileWrite::new(site.guest("a.b")?, "beside"),
        FileWrite::new(site.guest("a")?, "above"),
    ];
    refused_as(site.write_all(files).await, "file_also_directory")?;
    site.is_gone("a").await?;
    site.is_gone("a.b").await
}

async fn a_file_over_its_limit_is_refused_before_its_body(site: &Site) -> Verdict {
    let most = site.spec().files_in().max_bytes_per_file;
    // A source that is asked for a byte of it says that it ended early.
    let never_read = Content::reader(most + 1, tokio::io::empty());
    let files = vec![
        FileWrite::new(site.guest("before")?, "before"),
        FileWrite::new(site.guest("file")?, never_read),
    ];
    refused_as(site.write_all(files).await, "file_too_large")?;
    site.is_gone("before").await?;
    site.is_gone("file").await
}

async fn a_batch_over_its_limit_moves_nothing(site: &Site) -> Verdict {
    let limits = site.spec().files_in();
    let each = limits.max_bytes_per_file;
    let needed = limits.max_total_bytes / each + 2;
    room(limits, needed, 0, 0)?;
    let mut files = vec![FileWrite::new(site.guest("first")?, "first")];
    for number in 1..needed {
        let never_read = Content::reader(each, tokio::io::empty());
        files.push(FileWrite::new(site.guest(number.to_string())?, never_read));
    }
    refused_as(site.write_all(files).await, "file_batch_too_large")?;
    site.is_gone("first").await
}

async fn too_many_files_are_refused(site: &Site) -> Verdict {
    let mut files = Vec::new();
    for number in 0..=site.spec().files_in().max_files {
        files.push(FileWrite::new(site.guest(number.to_string())?, "one more"));
    }
    refused_as(site.write_all(files).await, "file_too_many")?;
    site.is_gone("0").await
}

async fn a_reader_that_ends_early_writes_nothing(site: &Site) -> Verdict {
    let reader = Content::reader(11, std::io::Cursor::new(b"ten bytes.".to_vec()));
    let files = vec![
        FileWrite::new(site.guest("before")?, "before"),
        FileWrite::new(site.guest("file")?, reader),
    ];
    refused_as(site.write_all(files).await, "file_source_short")?;
    site.is_gone("before").await?;
    site.is_gone("file").await
}

async fn a_reader_that_gives_more_writes_nothing(site: &Site) -> Verdict {
    let reader = Content::reader(9, std::io::Cursor::new(b"ten bytes.".to_vec()));
    refused_as(site.write("file", reader).await, "file_source_long")?;
    site.is_gone("file").await
}
