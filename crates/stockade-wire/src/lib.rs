//! Frames and messages between the host and the guest runtime.
