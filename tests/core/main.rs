//! Tests of the pure cores that need neither an engine nor a process.

mod corpus;
