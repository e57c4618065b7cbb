//! Another host, as a process of its own that a test or xtask can watch, stop and kill.
//!
//! | words | what it does |
//! |---|---|
//! | `transfers OWNER THREAD PLANE` | moves files in and out until it is ended |
//! | `memory OWNER THREAD PLANE` | moves a large file once, and prints what memory that took |
//! | `look OWNER IMAGE` | looks at what the engine gives, check by check |
//! | `race OWNER IMAGE SEED rounds\|seconds COUNT` | acquires, uses, disposes of and reaps one key's sandbox, against others that do the same |
//! | `lives OWNER IMAGE SEED FIRST END` | takes sandboxes of these numbers through their life, whatever is killed meanwhile |
//! | `reap OWNER` | removes everything of an owner, in use or not |
//!
//! `race` and `lives` print one line of JSON for each thing that happens (see `tally`); one whose
//! `named` is false must not happen. With `STOCKADE_TEST_HOST_LEASH` in its environment a host ends
//! when its standard input does, so that it does not outlive whoever started it.

#![expect(clippy::unwrap_used, reason = "it is a test, in a process of its own")]
#![expect(clippy::print_stdout, reason = "its test reads what it prints")]

mod lives;
mod look;
mod race;
mod reap;
mod tally;
mod transfers;

#[tokio::main]
async fn main() {
    if std::env::var_os("STOCKADE_TEST_HOST_LEASH").is_some() {
        std::thread::spawn(end_with_input);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [what @ ("transfers" | "memory"), owner, thread, plane] => {
            transfers::run(what, owner, thread, plane).await;
        }
        ["look", owner, image] => look::run(owner, image).await,
        ["race", owner, image, seed, unit, count] => {
            let length = race::Length::of(unit, count);
            race::run(owner, image, seed.parse().unwrap(), length).await;
        }
        ["lives", owner, image, seed, first, end] => {
            let numbers = first.parse().unwrap()..end.parse().unwrap();
            lives::run(owner, image, seed.parse().unwrap(), numbers).await;
        }
        ["reap", owner] => reap::run(owner).await,
        _ => panic!("{words:?}? See the table in its source"),
    }
}

/// Reads to the end of standard input, which nobody writes to.
#[expect(clippy::exit, reason = "whoever would be told is gone")]
fn end_with_input() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(1);
}
