//! Files removed.

use stockade::files::EntryKind;

use super::content::{every_legal_byte, trap_names};
use crate::probe::{Verdict, demand, probes, refused_as};
use crate::site::Site;

probes! { OnSite;
    a_removal_removes: "success that did nothing is the worst of answers";
    a_missing_path_is_success: "who removes wants it gone, and gone it is";
    a_link_is_removed_never_followed: "the target is whatever the guest chose";
    a_linked_parent_is_refused: "an engine that follows it removes as root wherever the guest points";
    a_linked_parent_further_up_is_refused: "a check of the last directory alone is no check";
    a_directory_needs_recursive: "a tree must not go by accident";
    an_empty_directory_needs_recursive: "what is empty now may be full when it is removed";
    recursive_removes_the_tree: "success that did half is a lie";
    a_link_inside_a_tree_is_unlinked_not_followed: "a removal that follows links empties what the guest chose";
    the_work_directory_is_refused: "everything must not go by accident";
    what_is_below_a_file_is_refused: "a mistake in a path must not be taken for success";
    every_legal_name_is_removed: "a name is bytes; a backend that takes it for patterns or options removes others";
    what_begins_alike_stays: "a removal is of one path";
    what_is_no_file_is_removed: "a fifo can be removed as a file can";
    a_deep_tree_is_removed: "a guest nests directories deeper than a stack is";
}

const BOTH: [bool; 2] = [false, true];

async fn a_removal_removes(site: &Site) -> Verdict {
    for recursive in BOTH {
        site.plant("target", b"target").await?;
        site.plant("bystander", b"bystander").await?;
        site.remove("target", recursive).await?;
        site.is_gone("target").await?;
        site.holds("bystander", b"bystander").await?;
    }
    Ok(())
}

async fn a_missing_path_is_success(site: &Site) -> Verdict {
    site.plant("target", b"target").await?;
    site.remove("target", false).await?;
    for recursive in BOTH {
        site.remove("target", recursive).await?;
        site.remove("never/was/there", recursive).await?;
    }
    Ok(())
}

async fn a_link_is_removed_never_followed(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.plant("inside.txt", b"inside").await?;
    for recursive in BOTH {
        for target in [
            site.outside("secret.txt"),
            site.outside("sub"),
            site.outside("nowhere"),
            b"inside.txt".to_vec(),
        ] {
            site.link(target, "link").await?;
            site.remove("link", recursive).await?;
            site.is_gone("link").await?;
        }
    }
    site.outside_holds("secret.txt", b"secret").await?;
    site.outside_holds("sub/leaf.txt", b"leaf").await?;
    site.holds("inside.txt", b"inside").await
}

async fn a_linked_parent_is_refused(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant("real/inside.txt", b"inside").await?;
    site.link(site.outside("."), "link-out").await?;
    site.link("real", "link-in").await?;
    for recursive in BOTH {
        for below in ["link-out/secret.txt", "link-in/inside.txt", "link-in/none"] {
            let removed = site.remove(below, recursive).await;
            refused_as(removed, "file_linked_parent").map_err(|stop| stop.during(below))?;
        }
    }
    site.outside_holds("secret.txt", b"secret").await?;
    site.holds("real/inside.txt", b"inside").await
}

async fn a_linked_parent_further_up_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.make_directory("real").await?;
    site.link(site.outside("."), "real/link").await?;
    for recursive in BOTH {
        for below in ["real/link/sub/leaf.txt", "real/link/sub"] {
            let removed = site.remove(below, recursive).await;
            refused_as(removed, "file_linked_parent")?;
        }
    }
    site.outside_holds("sub/leaf.txt", b"leaf").await
}

async fn a_directory_needs_recursive(site: &Site) -> Verdict {
    site.plant("full/file", b"file").await?;
    refused_as(site.remove("full", false).await, "file_needs_recursive")?;
    site.holds("full/file", b"file").await
}

async fn an_empty_directory_needs_recursive(site: &Site) -> Verdict {
    site.make_directory("empty").await?;
    refused_as(site.remove("empty", false).await, "file_needs_recursive")?;
    site.is_there("empty").await?;
    site.remove("empty", true).await?;
    site.is_gone("empty").await
}

async fn recursive_removes_the_tree(site: &Site) -> Verdict {
    site.plant("tree/a/b/c", b"c").await?;
    site.plant("tree/.hidden", b"hidden").await?;
    site.make_directory("tree/empty").await?;
    site.plant("neighbour/file", b"file").await?;
    site.remove("tree", true).await?;
    site.is_gone("tree").await?;
    site.holds("neighbour/file", b"file").await
}

async fn a_link_inside_a_tree_is_unlinked_not_followed(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.plant("bystander/file", b"file").await?;
    site.make_directory("tree/deep").await?;
    site.link(site.outside("secret.txt"), "tree/deep/link-file")
        .await?;
    site.link(site.outside("sub"), "tree/link-dir").await?;
    site.link("../bystander", "tree/link-in").await?;
    site.remove("tree", true).await?;
    site.is_gone("tree").await?;
    site.outside_holds("secret.txt", b"secret").await?;
    site.outside_holds("sub/leaf.txt", b"leaf").await?;
    site.holds("bystander/file", b"file").await
}

async fn the_work_directory_is_refused(site: &Site) -> Verdict {
    site.plant("control", b"control").await?;
    let work_dir = site.spec().work_dir().to_string();
    for recursive in BOTH {
        for path in [".", &work_dir] {
            let removed = site.sandbox().remove(site.call(), path, recursive).await;
            refused_as(removed, "file_work_dir")?;
        }
    }
    site.holds("control", b"control").await
}

async fn what_is_below_a_file_is_refused(site: &Site) -> Verdict {
    site.plant("plain.txt", b"plain").await?;
    for recursive in BOTH {
        let removed = site.remove("plain.txt/deeper", recursive).await;
        refused_as(removed, "file_parent_not_directory")?;
    }
    site.holds("plain.txt", b"plain").await
}

async fn every_legal_name_is_removed(site: &Site) -> Verdict {
    let mut names = trap_names();
    names.push(every_legal_byte());
    site.plant("bystander", b"bystander").await?;
    for name in names {
        site.plant(&name, b"").await?;
        site.remove(&name, false).await?;
        site.is_gone(&name).await?;
    }
    site.holds("bystander", b"bystander").await
}

async fn what_begins_alike_stays(site: &Site) -> Verdict {
    site.plant("name", b"name").await?;
    site.plant("name.txt", b"longer").await?;
    site.plant("nam", b"shorter").await?;
    site.remove("name", true).await?;
    site.is_gone("name").await?;
    site.holds("name.txt", b"longer").await?;
    site.holds("nam", b"shorter").await
}

async fn what_is_no_file_is_removed(site: &Site) -> Verdict {
    let path = site.absolute("fifo");
    let kind = EntryKind::Fifo;
    for recursive in BOTH {
        site.subject().plant_special(&site.at, kind, &path).await?;
        site.remove("fifo", recursive).await?;
        site.is_gone("fifo").await?;
    }
    Ok(())
}

async fn a_deep_tree_is_removed(site: &Site) -> Verdict {
    let deep = format!("tree/{}", ["d"; 300].join("/"));
    site.make_directory(&deep).await?;
    demand!(
        site.look(&deep).await?.is_some(),
        "the guest cannot make it"
    );
    site.remove("tree", true).await?;
    site.is_gone("tree").await
}
