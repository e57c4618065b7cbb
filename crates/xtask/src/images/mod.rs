//! The guest images of demos and tests (`images/README.md` says what each is for).
//!
//! Each is labelled with a digest of all that it is made of. An image that is there under its
//! label is left alone, so a second run only asks for the labels.

mod recipe;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::apt::HostApt;
use crate::bootstrap::{bootstrap, check_permission};
use crate::cache::Cache;
use crate::engine::{Engine, Kind};
use crate::progress::{Stopwatch, say, seconds};

use recipe::{Recipe, Source, recipes};

/// The label that holds an image's recipe.
const LABEL: &str = "dev.stockade.test.recipe";

/// Makes and loads what the engine does not have yet.
///
/// Two runs at once are safe: the second waits, and finds the work done.
pub(crate) fn ensure(cache: &Cache, engine: &Engine) -> Result<()> {
    ensure_all(cache, engine, &recipes()?)
}

/// The same for the one image that all built ones build on, and gives its name.
pub(crate) fn ensure_base(cache: &Cache, engine: &Engine) -> Result<String> {
    let mut recipes = recipes()?;
    recipes.truncate(1);
    ensure_all(cache, engine, &recipes)?;
    Ok(recipes[0].image())
}

fn ensure_all(cache: &Cache, engine: &Engine, recipes: &[Recipe]) -> Result<()> {
    if missing(engine, recipes)?.is_empty() {
        return Ok(());
    }
    let _lock = cache.lock()?;
    for recipe in missing(engine, recipes)? {
        let running = Stopwatch::start();
        make(cache, engine, recipe).with_context(|| format!("making {}", recipe.image()))?;
        say(format_args!(
            "{} made in {}",
            recipe.image(),
            seconds(running.elapsed())
        ));
    }
    Ok(())
}

/// The variable that names each image to a test, and the name.
pub(crate) fn variables() -> Result<Vec<(String, String)>> {
    Ok(recipes()?
        .iter()
        .map(|recipe| (recipe.variable(), recipe.image()))
        .collect())
}

/// What the engine answers about one image.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    repo_tags: Option<Vec<String>>,
    config: Option<Config>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    labels: Option<HashMap<String, String>>,
}

/// The recipes whose image the engine does not have, or has from an older recipe.
fn missing<'a>(engine: &Engine, recipes: &'a [Recipe]) -> Result<Vec<&'a Recipe>> {
    let names = recipes.iter().map(Recipe::image);
    // Its exit code only says that some are missing.
    let answer = engine
        .docker()
        .args(["image", "inspect", "--format", "{{json .}}"])
        .args(names)
        .finish()?;
    let text = String::from_utf8(answer.stdout).context("what docker says about images")?;
    let mut there = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let image: Inspected =
            serde_json::from_str(line).context("what docker says about images")?;
        let digest = image.config.and_then(|config| config.labels?.remove(LABEL));
        for tag in image.repo_tags.into_iter().flatten() {
            there.insert(tag, digest.clone());
        }
    }
    let is_there = |recipe: &&Recipe| {
        there.get(&recipe.image()).and_then(Option::as_deref) == Some(recipe.digest())
    };
    Ok(recipes.iter().filter(|recipe| !is_there(recipe)).collect())
}

fn make(cache: &Cache, engine: &Engine, recipe: &Recipe) -> Result<()> {
    match recipe.source() {
        Source::Empty { platform } => {
            let archive = empty_archive(cache)?;
            import(engine, recipe, &archive, *platform, &[])
        }
        Source::Built { context } => build(engine, recipe, context),
        Source::Packages {
            context,
            packages,
            changes,
        } => {
            // A provisioned engine reaches no registry; another one mostly does.
            if engine.kind == Kind::Found {
                let Err(failure) = build(engine, recipe, context) else {
                    return Ok(());
                };
                if check_permission().is_err() {
                    return Err(failure);
                }
                say(format_args!(
                    "no public image to build on, so it is bootstrapped: {failure:#}"
                ));
            }
            let archive = root_archive(cache, recipe, packages)?;
            import(engine, recipe, &archive, None, changes)
        }
    }
}

fn build(engine: &Engine, recipe: &Recipe, context: &Path) -> Result<()> {
    engine
        .docker()
        // The builder that the engine itself has: no other one sees the engine's images.
        .env("BUILDX_BUILDER", "default")
        .args([
            "build",
            "--quiet",
            "--label",
            &recipe.label(),
            "--tag",
            &recipe.image(),
        ])
        .arg(context)
        .read()
        .map(drop)
}

fn import(
    engine: &Engine,
    recipe: &Recipe,
    archive: &Path,
    platform: Option<&str>,
    changes: &[String],
) -> Result<()> {
    engine
        .docker()
        .args(["import", "--change", &format!("LABEL {}", recipe.label())])
        .args(changes.iter().map(|change| format!("--change={change}")))
        .args(platform.map(|platform| format!("--platform={platform}")))
        .arg(archive)
        .arg(recipe.image())
        .read()
        .map(drop)
}

/// The archive of a root file system in the cache, made when it is not there.
fn root_archive(cache: &Cache, recipe: &Recipe, packages: &[String]) -> Result<PathBuf> {
    let folder = cache.subfolder("images")?;
    let archive = folder.join(format!("{}-{}.tar", recipe.name(), &recipe.digest()[..16]));
    if archive.exists() {
        return Ok(archive);
    }
    // Archives of older recipes, and halves of an interrupted run.
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("reading {}", folder.display()))?
            .path();
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let host = HostApt::read()?;
    let suite = host.guest_suite();
    say(format_args!(
        "bootstrapping a guest from {} (about half a minute)",
        suite.name
    ));
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let partial = folder.join("partial.tar");
    let log = cache.log(&format!("bootstrap-{}", suite.name))?;
    bootstrap(&host, &suite, &packages, &partial, &log)?;
    fs::rename(&partial, &archive).with_context(|| format!("renaming {}", partial.display()))?;
    Ok(archive)
}

/// A tar archive without an entry: two blocks of zeros.
fn empty_archive(cache: &Cache) -> Result<PathBuf> {
    let path = cache.subfolder("images")?.join("empty.tar");
    fs::write(&path, [0; 1024]).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
