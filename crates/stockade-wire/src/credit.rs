//! Flow control: bytes that one side may still send on one stream.

use crate::limits::STREAM_CREDIT;

/// The sender's side of one stream: how much it may still send.
#[derive(Debug)]
pub struct SendCredit {
    left: u32,
}

/// The receiver's side of one stream: how much the peer may still send, and
/// when to grant more.
#[derive(Debug)]
pub struct ReceiveCredit {
    granted: u32,
    consumed: u32,
}

/// The peer sent more than it was granted, or granted more than the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("peer broke the credit of a stream")]
#[non_exhaustive]
pub struct CreditError;

impl SendCredit {
    /// A full window of [`STREAM_CREDIT`] bytes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            left: STREAM_CREDIT,
        }
    }

    /// Bytes that may be sent now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.left as usize
    }

    /// Takes note that `bytes` were sent.
    ///
    /// # Errors
    ///
    /// When more is sent than was available: a fault of the caller.
    pub fn spend(&mut self, bytes: usize) -> Result<(), CreditError> {
        let bytes = u32::try_from(bytes).map_err(|_| CreditError)?;
        self.left = self.left.checked_sub(bytes).ok_or(CreditError)?;
        Ok(())
    }

    /// Adds a grant of the peer.
    ///
    /// # Errors
    ///
    /// When the grant would open more than a whole window, which no honest
    /// receiver does.
    pub fn refill(&mut self, bytes: u32) -> Result<(), CreditError> {
        let left = self.left.checked_add(bytes).ok_or(CreditError)?;
        if left > STREAM_CREDIT {
            return Err(CreditError);
        }
        self.left = left;
        Ok(())
    }
}

impl Default for SendCredit {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveCredit {
    /// The peer starts with a whole window.
    #[must_use]
    pub fn new() -> Self {
        Self {
            granted: STREAM_CREDIT,
            consumed: 0,
        }
    }

    /// Takes note that `bytes` arrived.
    ///
    /// # Errors
    ///
    /// When the peer sent more than it was granted.
    pub fn receive(&mut self, bytes: usize) -> Result<(), CreditError> {
        let bytes = u32::try_from(bytes).map_err(|_| CreditError)?;
        self.granted = self.granted.checked_sub(bytes).ok_or(CreditError)?;
        Ok(())
    }

    /// Takes note that the reader consumed `bytes`, and answers with a grant
    /// to send to the peer once half a window has been consumed.
    #[must_use]
    pub fn consume(&mut self, bytes: usize) -> Option<u32> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.consumed = self.consumed.saturating_add(bytes);
        if self.consumed < STREAM_CREDIT / 2 {
            return None;
        }
        let grant = std::mem::take(&mut self.consumed).min(STREAM_CREDIT - self.granted);
        self.granted += grant;
        (grant > 0).then_some(grant)
    }
}

impl Default for ReceiveCredit {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_never_passes_the_window() {
        let mut credit = SendCredit::new();
        credit.spend(STREAM_CREDIT as usize).unwrap();
        assert_eq!(credit.available(), 0);
        assert_eq!(credit.spend(1), Err(CreditError));
        credit.refill(10).unwrap();
        assert_eq!(credit.available(), 10);
        assert_eq!(credit.refill(STREAM_CREDIT), Err(CreditError));
    }

    #[test]
    fn a_receiver_refuses_what_it_did_not_grant_and_grants_in_halves() {
        let mut credit = ReceiveCredit::new();
        credit.receive(STREAM_CREDIT as usize).unwrap();
        assert_eq!(credit.receive(1), Err(CreditError));
        assert_eq!(credit.consume(100), None);
        assert_eq!(
            credit.consume(STREAM_CREDIT as usize - 100),
            Some(STREAM_CREDIT)
        );
        credit.receive(STREAM_CREDIT as usize).unwrap();
    }

    #[test]
    fn a_reader_that_claims_too_much_grants_no_more_than_the_window() {
        let mut credit = ReceiveCredit::new();
        credit.receive(10).unwrap();
        assert_eq!(credit.consume(usize::MAX), Some(10));
    }
}
