//! Set-up, engine, images, demo, test and bench: what a developer types.

fn main() {}
