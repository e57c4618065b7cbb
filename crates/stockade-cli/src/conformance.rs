//! `stockade conformance`: the suites against the Docker backend.

use std::sync::Arc;

use serde_json::{Value, json};
use stockade::{Backend, Image, SandboxSpec, TransferLimits};
use stockade_conformance::Suite;

use crate::args::PlaneName;
use crate::failure::Failure;
use crate::session::Session;
use crate::{advice, args, exit, report, say};

/// Runs them; the answer is our own exit code.
pub(crate) async fn conformance(args: &args::Conformance) -> u8 {
    match Session::start(args.deadline, args.json, "removing what the suites made") {
        Ok(session) => session.code(proved(args, &session).await),
        Err(failure) => failure.tell(args.json, None, None),
    }
}

async fn proved(args: &args::Conformance, session: &Session) -> Result<u8, Failure> {
    let spec = SandboxSpec::builder("conformance")
        .image(Image::reference(&args.image))
        .files_in(TransferLimits::CEILING)
        .files_out(TransferLimits::CEILING)
        .build()
        .map_err(|errors| Failure::Usage(errors.faults().iter().map(advice::fault).collect()))?;
    let backend = session.connect(&args.engine).await?;
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let suites = if args.suite.is_empty() {
        Suite::ALL
    } else {
        &args.suite
    };
    let conformance = stockade_conformance::Conformance::new(Arc::clone(&backend), spec);
    let found = conformance
        .suites(suites.iter().copied())
        .run(&session.call)
        .await;
    let plane = match args.engine.plane {
        PlaneName::Tar => "tar",
        PlaneName::Guest => "guest",
    };
    let said = if args.json {
        let mut object: Value = serde_json::from_str(&found.to_json())
            .map_err(|error| Failure::Host(format!("the report cannot be read back: {error}")))?;
        object["plane"] = json!(plane);
        say::object(&report::versioned(object))
    } else {
        say::text(&format!("{found}files go by the {plane} plane\n"))
    };
    Ok(if found.is_green() && said.is_ok() {
        0
    } else {
        exit::FAILED
    })
}
