//! The variables through which tests, demo and benches find what xtask has prepared.
//! Their table is in the documentation of `main.rs`.

use std::ffi::OsString;

use anyhow::{Context as _, Result};

use crate::cache::Cache;
use crate::dataset;
use crate::engine::{Engine, Kind};
use crate::images;
use crate::process::on_path;

/// The variables, by name and value.
pub(crate) fn variables(cache: &Cache, engine: &Engine) -> Result<Vec<(String, OsString)>> {
    let mut variables = reaching(engine)?;
    let mut add = |name: &str, value: OsString| variables.push((name.to_owned(), value));
    if engine.kind == Kind::Provisioned {
        let own = std::env::current_exe().context("the path of xtask itself")?;
        add("STOCKADE_TEST_XTASK", own.into());
    }
    for (name, image) in images::variables()? {
        add(&name, image.into());
    }
    add("STOCKADE_TEST_DATA", dataset::path(cache)?.into());
    Ok(variables)
}

/// Those through which an engine is reached, whichever it is.
pub(crate) fn reaching(engine: &Engine) -> Result<Vec<(String, OsString)>> {
    let mut variables = vec![("STOCKADE_TEST_ENGINE".to_owned(), OsString::from("1"))];
    let mut add = |name: &str, value: OsString| variables.push((name.to_owned(), value));
    if let Some(host) = &engine.docker_host {
        add("DOCKER_HOST", host.into());
    }
    if on_path("docker").as_ref() != Some(&engine.client) {
        let own = engine
            .client
            .parent()
            .context("the folder of the docker client")?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = [own.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&others));
        add("PATH", std::env::join_paths(folders).context("PATH")?);
    }
    Ok(variables)
}

/// The variables as a shell takes them.
pub(crate) fn script(variables: &[(String, OsString)]) -> String {
    let line = |(name, value): &(String, OsString)| {
        let quoted = value.to_string_lossy().replace('\'', r"'\''");
        format!("export {name}='{quoted}'")
    };
    variables.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_survives_the_shell() {
        let variables = [("A".to_owned(), OsString::from("it's $HOME"))];
        assert_eq!(script(&variables), r"export A='it'\''s $HOME'");
    }
}
