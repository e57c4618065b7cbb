//! The frame codec against arbitrary bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stockade_tests::fuzzed::frames(data));
