//! Copies within a hold.

use bytes::Bytes;

use super::Hold;
use crate::error::CallError;

/// A tar stream on its way into a held container. Dropped, it is ended.
#[derive(Debug)]
pub struct TarIn<'hold> {
    hold: &'hold Hold,
}

/// A tar stream on its way out of a held container. Dropped, it is ended.
#[derive(Debug)]
pub struct TarOut<'hold> {
    hold: &'hold Hold,
}

impl TarIn<'_> {
    /// Sends the next bytes.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`](crate::CallErrorKind::HoldEnded) before
    /// any of these bytes were sent, and otherwise what docker says.
    ///
    /// # Cancel safety
    ///
    /// None: some of the bytes may have been sent.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), CallError> {
        let _ = (bytes, self.hold);
        todo!()
    }

    /// Ends the stream, and waits until docker has unpacked it.
    ///
    /// # Errors
    ///
    /// What docker says: the copy may be there in part.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the copy.
    pub async fn finish(self) -> Result<(), CallError> {
        todo!()
    }
}

impl TarOut<'_> {
    /// The next bytes, or `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::NoProgress`](crate::CallErrorKind::NoProgress).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let _ = self.hold;
        todo!()
    }

    /// Ends the stream here, because what has come is enough.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`](crate::CallErrorKind::HoldEnded): what has
    /// come may not be of one moment.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn stop(self) -> Result<(), CallError> {
        todo!()
    }

    /// Waits for the end, and says whether what has come is whole and of one
    /// moment.
    ///
    /// # Errors
    ///
    /// What docker says, for instance
    /// [`CallErrorKind::NoSuchPath`](crate::CallErrorKind::NoSuchPath); and
    /// [`CallErrorKind::HoldEnded`](crate::CallErrorKind::HoldEnded).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the copy.
    pub async fn finish(self) -> Result<(), CallError> {
        todo!()
    }
}
