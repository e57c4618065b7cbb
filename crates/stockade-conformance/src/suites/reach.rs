//! That the host does nothing which the guest could not have done, and that
//! the guest owns what it is given. Necessary, and not sufficient.

use std::time::Duration;

use stockade::exec::ExecBuilder;
use stockade::{Error, Refusal};
use tokio::time::Instant;

use crate::probe::{Stop, Verdict, demand, probes, refused_as};
use crate::site::Site;
use crate::subject::GuestAction;

probes! { OnSite;
    a_write_leaves_nothing_beyond_the_guest [FilesIn]: "a file that the guest cannot change or remove is the host's footprint in its sandbox";
    a_replaced_file_is_the_guests [FilesIn]: "a write over the guest's file must not take it away";
    directories_that_are_made_are_the_guests [FilesIn]: "a directory that the guest cannot write to is of no use to it";
    the_guest_can_change_the_mode [FilesIn]: "only an owner can";
    a_write_changes_nothing_beyond_the_guest [FilesIn]: "an engine that writes as root writes where the guest may not";
    a_read_shows_nothing_beyond_the_guest [FilesOut]: "an engine that reads as root reads what the guest may not";
    a_removal_takes_nothing_beyond_the_guest [FilesDelete]: "an engine that removes as root removes what the guest may not";
    a_reclaim_takes_nothing_beyond_the_guest [Reclaim]: "an engine that removes as root removes what the guest may not";
    a_race_is_never_won_by_writes [Exec, FilesIn]: "a check that is not of the same moment as the write is no check";
    a_race_is_never_won_by_reads [Exec, FilesOut]: "a check that is not of the same moment as the read is no check";
    a_race_is_never_won_by_removals [Exec, FilesDelete]: "a check that is not of the same moment as the removal is no check";
}

async fn can_write_and_delete(site: &Site, below: &str) -> Verdict {
    let path = site.absolute(below);
    let can = site.subject().the_guest_can_write(&site.at, &path).await?;
    demand!(can, "the guest cannot write to {below}");
    let can = site.subject().the_guest_can_delete(&site.at, &path).await?;
    demand!(can, "the guest cannot delete {below}");
    Ok(())
}

async fn a_write_leaves_nothing_beyond_the_guest(site: &Site) -> Verdict {
    site.make_directory("own").await?;
    site.write("own/file", "file").await?;
    can_write_and_delete(site, "own/file").await
}

async fn a_replaced_file_is_the_guests(site: &Site) -> Verdict {
    site.plant("file", b"the guest's").await?;
    site.write("file", "the host's").await?;
    site.holds("file", b"the host's").await?;
    can_write_and_delete(site, "file").await
}

async fn directories_that_are_made_are_the_guests(site: &Site) -> Verdict {
    site.write("made/deep/file", "file").await?;
    for below in ["made/other", "made/deep/other"] {
        let planted = site.plant(below, b"other").await;
        planted.map_err(|stop| stop.during("the guest writes to a directory that was made"))?;
    }
    can_write_and_delete(site, "made/deep/file").await
}

async fn the_guest_can_change_the_mode(site: &Site) -> Verdict {
    site.write("made/file", "file").await?;
    for below in ["made/file", "made"] {
        let path = site.absolute(below);
        site.subject().set_mode(&site.at, &path, 0o700).await?;
        let found = site.seen(below).await?.mode;
        demand!(found == 0o700, "mode 0700 became {found:04o}");
    }
    Ok(())
}

/// A directory of somebody else's, in which `kept` must be kept.
async fn protected(site: &Site) -> Verdict {
    let path = site.absolute("protected");
    Ok(site.subject().plant_protected(&site.at, &path).await?)
}

async fn is_kept(site: &Site) -> Verdict {
    let seen = site.seen("protected/kept").await?;
    demand!(seen.size == 4, "what is kept is {seen:?}");
    Ok(())
}

async fn a_write_changes_nothing_beyond_the_guest(site: &Site) -> Verdict {
    protected(site).await?;
    let refused = |answer| refused_as(answer, "file_denied");
    refused(site.write("protected/new", "no").await)?;
    refused(site.write("protected/deep/new", "no").await)?;
    refused(site.write("protected/kept", "much longer").await)?;
    site.is_gone("protected/new").await?;
    site.is_gone("protected/deep").await?;
    is_kept(site).await
}

async fn a_read_shows_nothing_beyond_the_guest(site: &Site) -> Verdict {
    protected(site).await?;
    refused_as(site.read("protected/kept").await, "file_denied")
}

async fn a_removal_takes_nothing_beyond_the_guest(site: &Site) -> Verdict {
    protected(site).await?;
    for recursive in [false, true] {
        let removed = site.remove("protected/kept", recursive).await;
        refused_as(removed, "file_denied")?;
    }
    refused_as(site.remove("protected", true).await, "file_denied")?;
    is_kept(site).await
}

async fn a_reclaim_takes_nothing_beyond_the_guest(site: &Site) -> Verdict {
    protected(site).await?;
    refused_as(site.reclaim("protected").await, "file_denied")?;
    is_kept(site).await
}

/// How long a race is run, and how many operations it has at most.
const RACE: Duration = Duration::from_secs(6);
const ROUNDS: u32 = 200;

/// Rounds after which the link must have been met, if there is one.
const ENOUGH: u32 = 50;

/// Runs an operation again and again, while the guest makes `swapped` a
/// directory and a link to the probe's directory outside, in turns.
async fn race<T, F>(site: &Site, operation: impl Fn(u32) -> F) -> Verdict<Vec<T>>
where
    F: Future<Output = Result<T, Error>>,
{
    let action = GuestAction::SwapDirectory {
        path: site.absolute("swapped"),
        target: site.outside("target"),
    };
    let command: ExecBuilder = site.subject().command(&action)?;
    let request = command.timeout(RACE * 10).build()?;
    let guest = site.sandbox().spawn(site.call(), request).await?;
    let began = Instant::now();
    let mut succeeded = Vec::new();
    let mut round = 0;
    let mut met = false;
    while round < ROUNDS && began.elapsed() < RACE {
        match operation(round).await {
            Ok(answer) => succeeded.push(answer),
            // The guest may be in the way; it may not be followed.
            Err(error) if error.refusal().is_some() => {
                let code = error.refusal().map(Refusal::code);
                met |= code == Some("file_linked_parent");
            }
            Err(error) => return Err(error.into()),
        }
        round += 1;
        tokio::task::yield_now().await;
    }
    drop(guest);
    demand!(
        met || round < ENOUGH,
        "in {round} rounds the guest's link was never refused: it was followed, or never there"
    );
    Ok(succeeded)
}

async fn a_race_is_never_won_by_writes(site: &Site) -> Verdict {
    site.plant_outside("target/known", b"known").await?;
    race(site, |round| async move {
        site.write("swapped/known", "changed").await?;
        site.write(format!("swapped/{round}"), "landed").await
    })
    .await?;
    site.outside_holds("target/known", b"known").await?;
    for round in 0..ROUNDS {
        let path = site.outside(format!("target/{round}"));
        let seen = site.subject().look(&site.at, &path).await?;
        demand!(seen.is_none(), "a write landed outside");
    }
    Ok(())
}

async fn a_race_is_never_won_by_reads(site: &Site) -> Verdict {
    site.plant_outside("target/secret", b"secret").await?;
    let read = race(site, |_| site.read("swapped/secret")).await?;
    if read.is_empty() {
        return Ok(());
    }
    // The guest never writes such a file into its own directory.
    Err(Stop::Failed(format!(
        "{} reads showed what is outside",
        read.len()
    )))
}

async fn a_race_is_never_won_by_removals(site: &Site) -> Verdict {
    site.plant_outside("target/kept", b"kept").await?;
    race(site, |_| site.remove("swapped/kept", true)).await?;
    site.outside_holds("target/kept", b"kept").await
}
