//! Every input that fuzzing ever found interesting is tried again.

use std::path::Path;

#[test]
fn the_frame_corpus_breaks_no_promise_of_the_codec() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/frames");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the tree") {
        let path = entry.expect("an entry can be read").path();
        stockade_tests::fuzzed::frames(&std::fs::read(&path).expect("an input can be read"));
        replayed += 1;
    }
    assert!(
        replayed >= 8,
        "only {replayed} inputs in {}",
        folder.display()
    );
}
