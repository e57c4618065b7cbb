//! `stockade run`: one program in a fresh sandbox, which is removed again.

use serde_json::json;
use stockade::{
    Backend as _, Capability, ExecRequest, IsolationScope, Sandbox, SandboxKey, SandboxSpec, Which,
};

use crate::failure::Failure;
use crate::host::{AtConflict, Source, Tree};
use crate::meter::Meter;
use crate::session::{Session, remove};
use crate::spec::{self, Recipe};
use crate::transfer::{Brought, Manner, Output, bring, send};
use crate::{args, exit, host, program, report, request, say};

/// Runs the command; the answer is our own exit code.
pub(crate) async fn run(args: &args::Run) -> u8 {
    let consequence = "ending the program and removing the sandbox";
    match Session::start(args.program.deadline(), args.program.json, consequence) {
        Ok(session) => session.code(ran(args, &session).await),
        Err(failure) => failure.tell(args.program.json, None, None),
    }
}

/// Everything that is known before anything exists.
struct Plan {
    spec: std::sync::Arc<SandboxSpec>,
    command: ExecRequest,
    tree: Tree,
    outputs: Vec<Output>,
}

async fn ran(args: &args::Run, session: &Session) -> Result<u8, Failure> {
    let plan = plan(args).await?;
    let backend = session.connect(&args.engine).await?;
    let call = &session.call;
    let key = SandboxKey::new("cli", "run", "run").with_call(call.id().as_str());
    let result = match backend.acquire(call, &key, &plan.spec).await {
        Ok(sandbox) => in_sandbox(args, session, &sandbox, plan).await,
        Err(error) => Err(error.into()),
    };
    let left = remove(&backend, &key, Which::All).await;
    match result {
        Ok(_) if left => Ok(exit::FAILED),
        result => result,
    }
}

async fn plan(args: &args::Run) -> Result<Plan, Failure> {
    let mut faults = Vec::new();
    let recipe = Recipe::of(&args.sandbox, args.idle_limit, stockade::spec::MAX_AGE);
    let spec = recipe.map_err(|fault| vec![fault]).and_then(|recipe| {
        recipe.spec(
            "run",
            IsolationScope::Call,
            spec::pull(args.sandbox.pull),
            requires(args),
        )
    });
    let command = request::command(&args.program);
    let (spec, command) = match (spec, command) {
        (Ok(spec), Ok(command)) => (spec, command),
        (spec, command) => {
            faults.extend(spec.err().unwrap_or_default());
            faults.extend(command.err().unwrap_or_default());
            return Err(Failure::Usage(faults));
        }
    };
    let work_dir = spec.work_dir();
    let mut sources = Vec::new();
    for argument in &args.file {
        match Source::parse(argument, work_dir) {
            Ok(source) => sources.push(source),
            Err(fault) => faults.push(format!("--file: {fault}")),
        }
    }
    let mut outputs = Vec::new();
    for argument in &args.out {
        match Output::parse(argument, work_dir, &args.out_dir) {
            Ok(output) => outputs.push(output),
            Err(fault) => faults.push(format!("--out: {fault}")),
        }
    }
    if !faults.is_empty() {
        return Err(Failure::Usage(faults));
    }
    faults.extend(
        outputs
            .iter()
            .filter_map(|output| output.obstacle(args.overwrite))
            .map(|unmet| format!("--out: {unmet}")),
    );
    let tree = host::tree(sources, args.follow, &spec).await;
    let tree = match tree {
        Ok(tree) if faults.is_empty() => tree,
        tree => {
            faults.extend(tree.err().unwrap_or_default());
            return Err(Failure::Refused(faults));
        }
    };
    Ok(Plan {
        spec,
        command,
        tree,
        outputs,
    })
}

/// A backend that cannot move files is refused before the program starts.
fn requires(args: &args::Run) -> Vec<Capability> {
    let mut requires = vec![Capability::Exec];
    if !args.file.is_empty() {
        requires.push(Capability::FilesIn);
    }
    if !args.out.is_empty() {
        requires.extend([Capability::FilesOut, Capability::FilesList]);
    }
    requires
}

async fn in_sandbox(
    args: &args::Run,
    session: &Session,
    sandbox: &Sandbox,
    plan: Plan,
) -> Result<u8, Failure> {
    let call = &session.call;
    let json = args.program.json;
    let meter = Meter::start("copying in", plan.tree.files(), plan.tree.bytes(), json);
    let sent = send(call, sandbox, &plan.tree, &meter).await?;
    drop(meter);
    let ran = program::run(&args.program, call, sandbox, plan.command).await?;
    let mut code = ran.code;
    let brought = if plan.outputs.is_empty() {
        Ok(Brought::default())
    } else {
        let manner = Manner {
            overwrite: args.overwrite,
            // What does not land goes away with the sandbox.
            at_conflict: AtConflict::LandTheRest,
            quiet: json,
        };
        bring(call, sandbox, &plan.outputs, manner).await
    };
    let whole = brought.as_ref().is_ok_and(Brought::is_whole);
    if let Some(mut report) = ran.report {
        report["sent"] = json!({ "files": sent.files, "bytes": sent.bytes });
        report["outputs"] = match &brought {
            Ok(brought) => report::brought(brought),
            Err(failure) => failure.object(Some(call)),
        };
        if say::object(&report).is_err() {
            return Ok(exit::FAILED);
        }
    } else {
        tell(&brought);
    }
    // The program's own failure is what a script must hear of.
    if code == 0 && !whole {
        code = brought.map_or_else(|failure| failure.code(), |_| exit::INCOMPLETE);
    }
    Ok(code)
}

/// What did not come, each in a line.
fn tell(brought: &Result<Brought, Failure>) {
    match brought {
        Ok(brought) => {
            say::lines(&brought.missing);
            say::lines(&brought.in_the_way);
            match (brought.in_the_way.len(), brought.files.len()) {
                (0, _) => {}
                (_, 0) => say::line("no output has landed"),
                (lost, landed) => say::line(&format!(
                    "{landed} of {} outputs have landed",
                    landed + lost
                )),
            }
        }
        Err(failure) => {
            failure.say();
            say::line("  no output has landed");
        }
    }
}
