//! Paths: what they may be, and that all operations mean the same by one.

use stockade::files::EntryKind;
use stockade::{FileWrite, GuestPath, ListRequest};

use crate::probe::{Verdict, demand, probes, refused_as};
use crate::site::{Site, same};

probes! { OnSite;
    the_work_directory_is_a_directory [FilesOut]: "who cannot look at the base cannot look at anything";
    the_work_directory_is_not_read [FilesOut]: "a directory has no content, and an empty answer hides a mistake";
    the_work_directory_is_listed_by_bare_names [FilesList]: "names must mean the same to the next operation";
    relative_and_absolute_paths_agree [FilesIn, FilesOut]: "a file that is written by one and read by the other must be the same";
    dots_and_doubled_slashes_mean_nothing [FilesIn, FilesOut]: "two spellings of one path must not be two files";
    parent_steps_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "what `..` means depends on links that the guest makes";
    paths_outside_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "the host's authority ends at the work directory";
    a_sibling_that_begins_alike_is_outside [FilesIn, FilesOut, FilesDelete, Reclaim]: "`/work-outside` begins like `/work` and is not below it";
    backslashes_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "another system takes them for separators";
    nul_is_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "a system call ends the path there";
    empty_paths_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "nothing must not mean the work directory";
    long_names_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "no file system has them, and an engine fails late and in its own words";
    deep_paths_are_refused [FilesIn, FilesOut, FilesDelete, Reclaim]: "each name costs a look while the guest is held";
    the_longest_name_works [FilesIn, FilesOut]: "a limit that is off by one refuses what is right";
    the_deepest_path_works [FilesIn]: "a limit that is off by one refuses what is right";
}

async fn the_work_directory_is_a_directory(site: &Site) -> Verdict {
    let work_dir = site.spec().work_dir().to_string();
    for path in [".", &work_dir, &format!("{work_dir}/")] {
        let stat = site.sandbox().stat(site.call(), path).await?;
        let kind = stat.map(|stat| stat.kind);
        demand!(kind == Some(EntryKind::Directory), "`{path}` is {kind:?}");
    }
    Ok(())
}

async fn the_work_directory_is_not_read(site: &Site) -> Verdict {
    let read = site.sandbox().read_file(site.call(), ".").await;
    refused_as(read, "file_is_directory")
}

async fn the_work_directory_is_listed_by_bare_names(site: &Site) -> Verdict {
    let listing = site.list(ListRequest::new(GuestPath::work_dir())).await?;
    let own = site.path("");
    let own = own.strip_suffix(b"/").unwrap_or(&own);
    let found = listing.entries.iter().any(|entry| entry.name == own);
    demand!(found, "the probe's own directory is not listed");
    for entry in &listing.entries {
        let bare = !entry.name.contains(&b'/');
        demand!(bare, "`{}` is no bare name", entry.display());
    }
    Ok(())
}

async fn relative_and_absolute_paths_agree(site: &Site) -> Verdict {
    let (sandbox, call) = (site.sandbox(), site.call());
    let absolute = site.absolute("by-absolute.txt");
    sandbox.write_file(call, &absolute, "absolute").await?;
    site.holds("by-absolute.txt", b"absolute").await?;
    same(&site.read("by-absolute.txt").await?, b"absolute")?;
    site.write("by-relative.txt", "relative").await?;
    let absolute = site.absolute("by-relative.txt");
    same(&sandbox.read_file(call, &absolute).await?, b"relative")?;
    let one = sandbox.stat(call, &absolute).await?;
    let other = site.stat("by-relative.txt").await?;
    demand!(one.is_some() && one == other, "{one:?} is not {other:?}");
    Ok(())
}

async fn dots_and_doubled_slashes_mean_nothing(site: &Site) -> Verdict {
    site.write(".//a/././b.txt", "one").await?;
    site.holds("a/b.txt", b"one").await?;
    same(&site.read("a//b.txt").await?, b"one")
}

/// Every operation that takes a path refuses this one, and so does a path.
async fn all_refuse(site: &Site, path: &[u8], code: &str) -> Verdict {
    let (sandbox, call) = (site.sandbox(), site.call());
    let shown = String::from_utf8_lossy(&path[..path.len().min(60)]).into_owned();
    let during = |what: &str| format!("{what} of `{shown}`");
    let check = |what, answer| refused_as(answer, code).map_err(|stop| stop.during(&during(what)));
    let stat = sandbox.stat(call, path).await;
    check("stat", stat.map(drop))?;
    check("read", sandbox.read_file(call, path).await.map(drop))?;
    check("write", sandbox.write_file(call, path, "no").await)?;
    check("removal", sandbox.remove(call, path, false).await)?;
    check("recursive removal", sandbox.remove(call, path, true).await)?;
    check("reclaim", sandbox.reclaim(call, path).await)
}

async fn parent_steps_are_refused(site: &Site) -> Verdict {
    let inside = site.path("a/../b.txt");
    let absolute = site.absolute("../b.txt");
    for path in [&b"../escape.txt"[..], b"..", &inside, &absolute] {
        all_refuse(site, path, "file_path_parent").await?;
    }
    site.is_gone("b.txt").await
}

async fn paths_outside_are_refused(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    for path in [
        site.outside("secret.txt"),
        b"/".to_vec(),
        b"/etc/passwd".to_vec(),
    ] {
        all_refuse(site, &path, "file_path_outside").await?;
    }
    site.outside_holds("secret.txt", b"secret").await
}

async fn a_sibling_that_begins_alike_is_outside(site: &Site) -> Verdict {
    let path = format!("{}-outside/secret.txt", site.spec().work_dir());
    all_refuse(site, path.as_bytes(), "file_path_outside").await
}

async fn backslashes_are_refused(site: &Site) -> Verdict {
    all_refuse(site, &site.path("sub\\file.txt"), "file_path_backslash").await
}

async fn nul_is_refused(site: &Site) -> Verdict {
    all_refuse(site, &site.path("file.txt\0.png"), "file_path_nul").await?;
    site.is_gone("file.txt").await
}

async fn empty_paths_are_refused(site: &Site) -> Verdict {
    all_refuse(site, b"", "file_path_empty").await
}

async fn long_names_are_refused(site: &Site) -> Verdict {
    all_refuse(site, &site.path("n".repeat(300)), "file_name_too_long").await?;
    all_refuse(site, &site.path("n".repeat(256)), "file_name_too_long").await
}

async fn deep_paths_are_refused(site: &Site) -> Verdict {
    all_refuse(site, &site.path("d/".repeat(5_000)), "file_path_too_long").await?;
    // The probe's own directory is one name of 65.
    all_refuse(site, &site.path(["d"; 64].join("/")), "file_path_too_deep").await
}

async fn the_longest_name_works(site: &Site) -> Verdict {
    let name = "n".repeat(255);
    site.write(&name, "long").await?;
    site.holds(&name, b"long").await?;
    same(&site.read(&name).await?, b"long")
}

async fn the_deepest_path_works(site: &Site) -> Verdict {
    let deep = ["d"; 63].join("/");
    let file = FileWrite::new(site.guest(&deep)?, "deep");
    site.write_all(vec![file]).await?;
    site.holds(&deep, b"deep").await
}
