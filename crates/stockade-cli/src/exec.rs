//! `stockade exec`: a program in a sandbox that stays.

use crate::failure::Failure;
use crate::named::{self, Name};
use crate::session::Session;
use crate::{args, exit, program, request, say};

/// Runs it; the answer is our own exit code.
pub(crate) async fn exec(args: &args::Exec) -> u8 {
    let program = &args.program;
    match Session::start(program.deadline(), program.json, "ending the program") {
        Ok(session) => session.code(ran(args, &session).await),
        Err(failure) => failure.tell(program.json, None, None),
    }
}

async fn ran(args: &args::Exec, session: &Session) -> Result<u8, Failure> {
    let name = Name::parse(&args.name).map_err(|fault| Failure::Usage(vec![fault]))?;
    let command = request::command(&args.program).map_err(Failure::Usage)?;
    let (_backend, sandbox) = named::find(session, &args.engine, &name).await?;
    let ran = program::run(&args.program, &session.call, &sandbox, command).await?;
    match ran.report {
        Some(report) if say::object(&report).is_err() => Ok(exit::FAILED),
        _ => Ok(ran.code),
    }
}
