//! The stockade program.

fn main() {}
