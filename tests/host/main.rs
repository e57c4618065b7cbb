//! Another host, as a process of its own that a test or xtask can watch, stop and kill.
//!
//! | words | what it does |
//! |---|---|
//! | `transfers OWNER THREAD PLANE` | moves files in and out until it is ended |
//! | `memory OWNER THREAD PLANE` | moves a large file once, and prints what memory that took |
//! | `look OWNER IMAGE` | looks at what the engine gives, check by check |

#![expect(clippy::unwrap_used, reason = "it is a test, in a process of its own")]
#![expect(clippy::print_stdout, reason = "its test reads what it prints")]

mod look;
mod transfers;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [what @ ("transfers" | "memory"), owner, thread, plane] => {
            transfers::run(what, owner, thread, plane).await;
        }
        ["look", owner, image] => look::run(owner, image).await,
        _ => panic!("{words:?}? See the table in its source"),
    }
}
