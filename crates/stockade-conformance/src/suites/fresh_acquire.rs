//! What an acquire says of the sandbox that it returns.

use stockade::{Sandbox, Which};

use crate::probe::{Verdict, demand, probes};
use crate::site::Bench;

probes! { OnBench;
    a_new_sandbox_is_fresh: "who takes a new sandbox for an old one cleans what is clean";
    a_sandbox_that_is_found_is_not_fresh: "who takes an old sandbox for a new one shows one call's files to the next";
    a_handle_keeps_its_word: "a later acquire must not change what an earlier one said";
    a_replacement_is_another_sandbox: "a name that comes back names two sandboxes";
    a_replacement_has_no_old_files: "what was disposed of must not come back";
    keys_do_not_share: "two agents of one conversation are not one";
}

async fn a_new_sandbox_is_fresh(bench: &Bench) -> Verdict {
    let sandbox = bench.acquire(&bench.key("one")).await?;
    demand!(sandbox.freshly_created(), "a new sandbox says it is old");
    demand!(!sandbox.id().as_str().is_empty(), "it has no name");
    Ok(())
}

async fn a_sandbox_that_is_found_is_not_fresh(bench: &Bench) -> Verdict {
    let key = bench.key("one");
    let first = bench.acquire(&key).await?;
    let second = bench.acquire(&key).await?;
    demand!(
        first.id() == second.id(),
        "one key has two sandboxes: {} and {}",
        first.id(),
        second.id()
    );
    demand!(!second.freshly_created(), "an old sandbox says it is new");
    drop((first, second));
    let third = bench.acquire(&key).await?;
    demand!(!third.freshly_created(), "an old sandbox says it is new");
    Ok(())
}

async fn a_handle_keeps_its_word(bench: &Bench) -> Verdict {
    let key = bench.key("one");
    let first = bench.acquire(&key).await?;
    let _second = bench.acquire(&key).await?;
    demand!(
        first.freshly_created(),
        "the first handle changed what it says"
    );
    Ok(())
}

async fn replaced(bench: &Bench) -> Verdict<(Sandbox, Sandbox)> {
    let key = bench.key("one");
    let first = bench.acquire(&key).await?;
    plant(bench, &first).await?;
    let disposed = bench.backend.dispose(&bench.call, &key, Which::All);
    let disposed = disposed.await?;
    demand!(disposed.is_clean(), "{:?}", disposed.folded());
    let second = bench.acquire(&key).await?;
    Ok((first, second))
}

async fn a_replacement_is_another_sandbox(bench: &Bench) -> Verdict {
    let (first, second) = replaced(bench).await?;
    demand!(first.id() != second.id(), "both are named {}", second.id());
    demand!(second.freshly_created(), "a new sandbox says it is old");
    Ok(())
}

async fn a_replacement_has_no_old_files(bench: &Bench) -> Verdict {
    let (_, second) = replaced(bench).await?;
    demand!(!has_plant(bench, &second).await?, "an old file is there");
    Ok(())
}

async fn keys_do_not_share(bench: &Bench) -> Verdict {
    let one = bench.acquire(&bench.key("one")).await?;
    let other = bench.acquire(&bench.key("other")).await?;
    demand!(one.id() != other.id(), "both are named {}", one.id());
    plant(bench, &one).await?;
    demand!(
        !has_plant(bench, &other).await?,
        "one sees the other's file"
    );
    demand!(has_plant(bench, &one).await?, "its own file is not there");
    Ok(())
}

fn planted(bench: &Bench) -> Vec<u8> {
    format!("{}/of-this-sandbox", bench.spec.work_dir()).into_bytes()
}

async fn plant(bench: &Bench, sandbox: &Sandbox) -> Verdict {
    let path = planted(bench);
    let at = bench.at(sandbox);
    Ok(bench.subject.plant_file(&at, &path, b"mine").await?)
}

async fn has_plant(bench: &Bench, sandbox: &Sandbox) -> Verdict<bool> {
    let at = bench.at(sandbox);
    let seen = bench.subject.look(&at, &planted(bench)).await?;
    Ok(seen.is_some())
}
