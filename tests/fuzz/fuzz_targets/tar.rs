//! The tar decoder against arbitrary bytes.
#![no_main]

#[path = "../bodies/tar.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::tar(data));
