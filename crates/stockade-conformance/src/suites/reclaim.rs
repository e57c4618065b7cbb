//! Directories of the host's own removed.

use crate::probe::{Verdict, probes, refused_as};
use crate::site::Site;

probes! { OnSite;
    a_created_directory_is_gone: "a call's directory that stays is read by the next call";
    nested_content_goes_with_it: "success that did half is a lie";
    a_link_inside_is_unlinked_not_followed: "a removal that follows links empties what the guest chose";
    a_missing_directory_is_success: "who reclaims wants it gone, and gone it is";
    a_missing_place_is_success: "a guest that removed more than that did the host's work";
    a_linked_parent_is_refused: "an engine that follows it removes as root wherever the guest points";
    the_work_directory_is_refused: "the sandbox's base is not one call's own";
    its_name_can_be_used_again: "the next call may have the same name";
}

async fn reclaim(site: &Site, below: &str) -> Result<(), stockade::Error> {
    // As a host does: by the path that it made, which is absolute.
    let path = site.absolute(below);
    site.sandbox().reclaim(site.call(), path).await
}

async fn a_created_directory_is_gone(site: &Site) -> Verdict {
    site.make_directory("call").await?;
    site.plant("bystander", b"bystander").await?;
    reclaim(site, "call").await?;
    site.is_gone("call").await?;
    site.holds("bystander", b"bystander").await
}

async fn nested_content_goes_with_it(site: &Site) -> Verdict {
    site.plant("call/a/b/c", b"c").await?;
    site.plant("call/.hidden", b"hidden").await?;
    site.plant("call-of-another/file", b"file").await?;
    reclaim(site, "call").await?;
    site.is_gone("call").await?;
    site.holds("call-of-another/file", b"file").await
}

async fn a_link_inside_is_unlinked_not_followed(site: &Site) -> Verdict {
    site.plant_outside("secret.txt", b"secret").await?;
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.plant("bystander/file", b"file").await?;
    site.make_directory("call/deep").await?;
    site.link(site.outside("secret.txt"), "call/link-file")
        .await?;
    site.link(site.outside("sub"), "call/deep/link-dir").await?;
    site.link("../bystander", "call/link-in").await?;
    reclaim(site, "call").await?;
    site.is_gone("call").await?;
    site.outside_holds("secret.txt", b"secret").await?;
    site.outside_holds("sub/leaf.txt", b"leaf").await?;
    site.holds("bystander/file", b"file").await
}

async fn a_missing_directory_is_success(site: &Site) -> Verdict {
    for _ in 0..2 {
        reclaim(site, "missing").await?;
    }
    Ok(())
}

async fn a_missing_place_is_success(site: &Site) -> Verdict {
    Ok(reclaim(site, "never/was/there").await?)
}

async fn a_linked_parent_is_refused(site: &Site) -> Verdict {
    site.plant_outside("sub/leaf.txt", b"leaf").await?;
    site.link(site.outside("."), "link").await?;
    refused_as(reclaim(site, "link/sub").await, "file_linked_parent")?;
    site.outside_holds("sub/leaf.txt", b"leaf").await
}

async fn the_work_directory_is_refused(site: &Site) -> Verdict {
    site.plant("control", b"control").await?;
    let reclaimed = site.sandbox().reclaim(site.call(), ".").await;
    refused_as(reclaimed, "file_work_dir")?;
    site.holds("control", b"control").await
}

async fn its_name_can_be_used_again(site: &Site) -> Verdict {
    for content in [&b"first"[..], b"second"] {
        site.plant("call/file", content).await?;
        site.holds("call/file", content).await?;
        site.reclaim("call").await?;
        site.is_gone("call").await?;
    }
    Ok(())
}
