//! Between the program in the sandbox and our own standard streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stockade::exec::{ProcessOutput, ProcessStdin, StreamName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Copies our standard input to the program until either ends. Input that
/// the program does not read is nobody's fault.
///
/// # Errors
///
/// When our own input cannot be read: half of it must not look like all.
pub(crate) async fn feed(mut program: ProcessStdin) -> std::io::Result<()> {
    let mut input = tokio::io::stdin();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = input.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        if program.write_all(&buffer[..count]).await.is_err() {
            return Ok(());
        }
    }
    // The end of input; a program that is gone does not need to hear it.
    let _ = program.shutdown().await;
    Ok(())
}

/// Copies the program's output to our own streams, and counts the bytes that
/// were taken.
///
/// # Errors
///
/// When ours cannot be written, such as when nobody reads it any more.
pub(crate) async fn pass_on(
    mut output: ProcessOutput,
    taken: Arc<AtomicU64>,
) -> std::io::Result<()> {
    let mut stdout = tokio::io::stdout();
    let mut stderr = tokio::io::stderr();
    while let Some(chunk) = output.next().await {
        taken.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
        match chunk.stream {
            StreamName::Stderr => {
                stderr.write_all(&chunk.bytes).await?;
                stderr.flush().await?;
            }
            _ => {
                stdout.write_all(&chunk.bytes).await?;
                stdout.flush().await?;
            }
        }
    }
    Ok(())
}
