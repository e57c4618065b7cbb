//! Every input that fuzzing of the tar decoder ever found interesting is tried
//! again.

use std::path::Path;

#[path = "../../../tests/fuzz/bodies/tar.rs"]
mod body;

#[test]
fn the_tar_corpus_breaks_no_promise_of_the_decoder() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus/tar");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is part of the tree") {
        let path = entry.expect("an entry can be read").path();
        body::tar(&std::fs::read(&path).expect("an input can be read"));
        replayed += 1;
    }
    assert!(
        replayed >= 8,
        "only {replayed} inputs in {}",
        corpus.display()
    );
}
