//! One file through standard input or output.

use stockade::files::{FileWrite, Spool};
use stockade::{Call, Content, GuestPath, Interruption, ReadRequest, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::exit;
use crate::failure::Failure;
use crate::transfer::Sent;

/// Reads standard input to its end, which must come within the limit of one
/// file, and writes it.
pub(crate) async fn send(call: &Call, sandbox: &Sandbox, to: GuestPath) -> Result<Sent, Failure> {
    let most = sandbox.spec().files_in().max_bytes_per_file;
    let mut input = tokio::io::stdin();
    let mut spool = Spool::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = call.bound(input.read(&mut piece)).await;
        let read = read.map_err(interrupted)?;
        let read =
            read.map_err(|error| Failure::Host(format!("standard input cannot be read: {error}")))?;
        if read == 0 {
            break;
        }
        if spool.len() + read as u64 > most {
            let text = format!(
                "standard input gives more than the {most} bytes that one file may have; split it"
            );
            return Err(Failure::refused(text));
        }
        spool.push(&piece[..read]).await.map_err(not_set_aside)?;
    }
    let bytes = spool.len();
    let content = spool.finish().await.map_err(not_set_aside)?.part(0, bytes);
    let write = FileWrite::new(to, Content::reader(bytes, content.reader()));
    sandbox.write_files(call, vec![write]).await?;
    Ok(Sent { files: 1, bytes })
}

/// Writes a file to standard output, once all of it is here.
pub(crate) async fn receive(
    call: &Call,
    sandbox: &Sandbox,
    from: GuestPath,
) -> Result<u8, Failure> {
    let files = sandbox.read_files(call, ReadRequest::of([from])).await?;
    let mut output = tokio::io::stdout();
    for file in files {
        let copied = match file.content.copy_to(&mut output).await {
            Ok(()) => output.flush().await,
            Err(error) => Err(error),
        };
        match copied {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(exit::BROKEN_PIPE);
            }
            Err(error) => {
                return Err(Failure::Host(format!(
                    "standard output cannot be written: {error}"
                )));
            }
        }
    }
    Ok(0)
}

fn interrupted(why: Interruption) -> Failure {
    stockade::Error::interrupted(stockade::Operation::WriteFiles, why)
        .message("standard input had not ended; nothing was written")
        .build()
        .into()
}

fn not_set_aside(error: std::io::Error) -> Failure {
    Failure::Host(format!(
        "standard input cannot be set aside in the temporary directory: {error}; free space there, or set TMPDIR"
    ))
}
