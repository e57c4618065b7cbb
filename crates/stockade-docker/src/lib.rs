//! The Docker backend of Stockade.
