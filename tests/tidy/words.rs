//! What must not be left standing in the sources.

use crate::{files, shown};

/// Assembled, so that this file does not find itself.
fn banned() -> Vec<(String, &'static str)> {
    vec![
        (
            format!("#[{}", "ignore"),
            "a test that is left out proves nothing: assert what holds today",
        ),
        (
            format!("#[{}(", "allow"),
            "use #[expect(lint, reason = …)], which says when it is no longer needed",
        ),
        (
            format!("#![{}(", "allow"),
            "use #![expect(lint, reason = …)], which says when it is no longer needed",
        ),
        (format!("{}!(", "todo"), "build it, or refuse it by name"),
        (
            format!("{}!(", "unimplemented"),
            "build it, or refuse it by name",
        ),
        (
            format!("FIX{}", "ME"),
            "fix it, or write down the limit where a user reads it",
        ),
    ]
}

#[test]
fn nothing_is_left_open_or_silenced_in_the_sources() {
    let mut found = Vec::new();
    for path in files("rs") {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        for (number, line) in text.lines().enumerate() {
            for (word, instead) in banned() {
                if line.contains(&word) {
                    found.push(format!(
                        "{}:{}: {word} ({instead})",
                        shown(&path),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
