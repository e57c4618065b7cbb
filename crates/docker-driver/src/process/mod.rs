//! Processes of the docker client: started, watched, ended, reaped.

mod capture;
mod spawn;
mod supervise;

pub(crate) use self::capture::{Lines, Sink, Tail};
pub(crate) use self::spawn::{Fate, Group, Process, Program, Start, StartScript, has_ended};
pub(crate) use self::supervise::{Ended, Finished, Limits, drain, supervise, wind_up};
