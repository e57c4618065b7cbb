//! Directories listed.

use std::collections::BTreeMap;

use stockade::files::{EntryKind, FileStat, Listing};
use stockade::{Error, GuestPath, ListRequest, Operation};

use super::content::{every_legal_byte, trap_names};
use crate::probe::{Verdict, demand, probes, refused_as};
use crate::site::Site;

probes! { OnSite;
    a_listing_names_what_is_there: "what is not named is taken for missing";
    a_listing_names_its_links: "who takes a link for a file reads what the guest chose";
    a_listing_names_what_is_no_file: "a fifo that is named a file is read, and waits for the guest";
    a_listing_has_bare_names_of_any_bytes: "a guest's names are bytes, and hidden ones are names as well";
    an_empty_directory_is_empty: "nothing is an answer";
    a_linked_directory_is_not_listed: "what is in it is whatever the guest chose";
    a_listing_through_a_linked_parent_is_refused: "an engine that follows it lists as root wherever the guest points";
    a_listing_under_a_linked_ancestor_is_refused: "a check of the last directory alone is no check";
    a_file_is_not_listed: "an empty answer hides a mistake";
    what_is_below_a_file_is_not_listed: "a mistake in a path must not be taken for an attack, nor for a missing file";
    a_missing_directory_is_refused: "missing is not empty";
    a_listing_says_when_it_is_cut: "a part must not pass for the whole";
    a_listing_of_exactly_its_bound_is_whole: "a bound that is off by one cries wolf";
    a_recursive_listing_goes_everywhere: "what is not named is taken for missing";
    a_recursive_listing_names_directories_first: "who makes them in order needs them first";
    a_recursive_listing_follows_no_link: "a link to a parent never ends, and one to outside is an escape";
    a_recursive_listing_says_when_it_is_cut: "a part must not pass for the whole";
}

fn directory(site: &Site, below: &str) -> Verdict<ListRequest> {
    Ok(ListRequest::new(site.guest(below)?))
}

async fn listed(site: &Site, below: &str) -> Result<Listing, Error> {
    let path = GuestPath::new(site.path(below));
    let path = path.map_err(|why| Error::refused(Operation::ListDir, why))?;
    site.list(ListRequest::new(path)).await
}

/// Entries by their names, none twice.
fn by_name(listing: &Listing) -> Verdict<BTreeMap<&[u8], &FileStat>> {
    let mut entries = BTreeMap::new();
    for entry in &listing.entries {
        let before = entries.insert(entry.name.as_slice(), &entry.stat);
        demand!(before.is_none(), "`{}` is named twice", entry.display());
    }
    Ok(entries)
}

async fn a_listing_names_what_is_there(site: &Site) -> Verdict {
    site.plant("here/file", b"seven b").await?;
    site.make_directory("here/directory").await?;
    site.plant("here/directory/deeper", b"no").await?;
    let listing = listed(site, "here").await?;
    let entries = by_name(&listing)?;
    let names: Vec<&[u8]> = entries.keys().copied().collect();
    demand!(
        names == [&b"directory"[..], b"file"],
        "it names {:?}",
        listing.entries
    );
    let file = entries[&b"file"[..]];
    demand!(
        file.kind == EntryKind::File && file.size == Some(7),
        "the file is {file:?}"
    );
    let kind = entries[&b"directory"[..]].kind;
    demand!(kind == EntryKind::Directory, "the directory is a {kind}");
    demand!(!listing.truncated, "it says that there is more");
    Ok(())
}

async fn a_listing_names_its_links(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.make_directory("here").await?;
    site.link(site.outside("secret.txt"), "here/link-file")
        .await?;
    site.link(site.outside("."), "here/link-dir").await?;
    site.link("nowhere", "here/link-dangling").await?;
    let listing = listed(site, "here").await?;
    let entries = by_name(&listing)?;
    for name in ["link-file", "link-dir", "link-dangling"] {
        let stat = entries.get(name.as_bytes());
        let found = stat.map(|stat| (stat.kind, stat.size));
        demand!(found == Some((EntryKind::Link, None)), "{name} is {stat:?}");
    }
    Ok(())
}

async fn a_listing_names_what_is_no_file(site: &Site) -> Verdict {
    site.make_directory("here").await?;
    let path = site.absolute("here/fifo");
    let kind = EntryKind::Fifo;
    site.subject().plant_special(&site.at, kind, &path).await?;
    let listing = listed(site, "here").await?;
    let stat = by_name(&listing)?.get(&b"fifo"[..]).copied();
    let found = stat.map(|stat| (stat.kind, stat.size));
    demand!(found == Some((kind, None)), "the fifo is {stat:?}");
    Ok(())
}

async fn a_listing_has_bare_names_of_any_bytes(site: &Site) -> Verdict {
    let mut names = trap_names();
    names.extend([
        every_legal_byte(),
        b".hidden".to_vec(),
        b"back\\slash".to_vec(),
    ]);
    for name in &names {
        site.plant([b"here/", &name[..]].concat(), b"").await?;
    }
    let listing = listed(site, "here").await?;
    let found = by_name(&listing)?;
    names.sort();
    demand!(
        found.keys().copied().eq(names.iter().map(Vec::as_slice)),
        "it names {:?}",
        listing.entries
    );
    Ok(())
}

async fn an_empty_directory_is_empty(site: &Site) -> Verdict {
    site.make_directory("empty").await?;
    let listing = listed(site, "empty").await?;
    demand!(
        listing.entries.is_empty() && !listing.truncated,
        "it holds {listing:?}"
    );
    Ok(())
}

async fn a_linked_directory_is_not_listed(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("real/inside.txt", b"inside").await?;
    site.link(site.outside("."), "link-out").await?;
    site.link("real", "link-in").await?;
    refused_as(listed(site, "link-out").await, "file_link")?;
    refused_as(listed(site, "link-in").await, "file_link")
}

async fn a_listing_through_a_linked_parent_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.plant("real/sub/inside.txt", b"inside").await?;
    site.link(site.outside("."), "link-out").await?;
    site.link("real", "link-in").await?;
    for below in ["link-out/sub", "link-in/sub", "link-in/none"] {
        refused_as(listed(site, below).await, "file_linked_parent")?;
    }
    Ok(())
}

async fn a_listing_under_a_linked_ancestor_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/deep/leaf.txt", b"leaf").await?;
    site.make_directory("real").await?;
    site.link(site.outside("."), "real/link").await?;
    let listing = listed(site, "real/link/sub/deep").await;
    refused_as(listing, "file_linked_parent")
}

async fn a_file_is_not_listed(site: &Site) -> Verdict {
    site.plant("file", b"file").await?;
    refused_as(listed(site, "file").await, "file_not_directory")
}

async fn what_is_below_a_file_is_not_listed(site: &Site) -> Verdict {
    site.plant("file", b"file").await?;
    refused_as(
        listed(site, "file/deeper").await,
        "file_parent_not_directory",
    )
}

async fn a_missing_directory_is_refused(site: &Site) -> Verdict {
    refused_as(listed(site, "missing").await, "file_missing")?;
    refused_as(listed(site, "missing/below").await, "file_missing")
}

async fn five(site: &Site) -> Verdict {
    for number in 0..5 {
        site.plant(format!("here/{number}"), b"").await?;
    }
    Ok(())
}

async fn a_listing_says_when_it_is_cut(site: &Site) -> Verdict {
    five(site).await?;
    for most in [1, 4] {
        let request = directory(site, "here")?.max_entries(most);
        let listing = site.list(request).await?;
        let count = listing.entries.len();
        demand!(
            count == most as usize && listing.truncated,
            "{count} of 5 entries for at most {most}, and cut: {}",
            listing.truncated
        );
    }
    Ok(())
}

async fn a_listing_of_exactly_its_bound_is_whole(site: &Site) -> Verdict {
    five(site).await?;
    for most in [5, 6] {
        let request = directory(site, "here")?.max_entries(most);
        let listing = site.list(request).await?;
        let count = listing.entries.len();
        demand!(
            count == 5 && !listing.truncated,
            "{count} of 5 entries for at most {most}, and cut: {}",
            listing.truncated
        );
    }
    Ok(())
}

async fn tree(site: &Site) -> Verdict {
    site.plant("here/a/b/file", b"one").await?;
    site.plant("here/a.txt", b"two").await?;
    site.plant("here/a/z", b"three").await?;
    site.make_directory("here/empty").await
}

async fn a_recursive_listing_goes_everywhere(site: &Site) -> Verdict {
    tree(site).await?;
    let request = directory(site, "here")?.recursive();
    let listing = site.list(request).await?;
    let entries = by_name(&listing)?;
    let wanted: [&[u8]; 6] = [b"a", b"a.txt", b"a/b", b"a/b/file", b"a/z", b"empty"];
    demand!(
        entries.keys().copied().eq(wanted) && !listing.truncated,
        "it is {listing:?}"
    );
    let size = entries[&b"a/b/file"[..]].size;
    demand!(size == Some(3), "a file of three bytes has {size:?}");
    Ok(())
}

async fn a_recursive_listing_names_directories_first(site: &Site) -> Verdict {
    tree(site).await?;
    let request = directory(site, "here")?.recursive();
    let listing = site.list(request).await?;
    let mut seen: Vec<&[u8]> = Vec::new();
    for entry in &listing.entries {
        let end = entry.name.iter().rposition(|&byte| byte == b'/');
        let parent = end.map(|end| &entry.name[..end]);
        demand!(
            parent.is_none_or(|parent| seen.contains(&parent)),
            "`{}` comes before its directory",
            entry.display()
        );
        seen.push(&entry.name);
    }
    demand!(seen.len() == 6, "{} entries instead of 6", seen.len());
    Ok(())
}

async fn a_recursive_listing_follows_no_link(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("here/sub/file", b"file").await?;
    site.link(site.outside("."), "here/sub/link-out").await?;
    site.plant("other/inside.txt", b"inside").await?;
    site.link("../other", "here/link-in").await?;
    let request = directory(site, "here")?.recursive();
    let listing = site.list(request).await?;
    let names: Vec<&[u8]> = by_name(&listing)?.keys().copied().collect();
    let wanted: [&[u8]; 4] = [b"link-in", b"sub", b"sub/file", b"sub/link-out"];
    demand!(names == wanted, "it is {listing:?}");
    Ok(())
}

async fn a_recursive_listing_says_when_it_is_cut(site: &Site) -> Verdict {
    tree(site).await?;
    let request = directory(site, "here")?.recursive();
    let listing = site.list(request.clone().max_entries(3)).await?;
    demand!(
        listing.entries.len() == 3 && listing.truncated,
        "it is {listing:?}"
    );
    let listing = site.list(request.max_entries(6)).await?;
    demand!(
        listing.entries.len() == 6 && !listing.truncated,
        "it is {listing:?}"
    );
    Ok(())
}
