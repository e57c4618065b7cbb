//! The Docker backend of Stockade.

mod channel;
