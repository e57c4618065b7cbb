//! `stockade df`: what all of an owner takes of the engine's disk.

use serde_json::{Value, json};
use stockade_docker::operate::{Amount, Usage};

use crate::failure::Failure;
use crate::session::Session;
use crate::table::{Column, Table};
use crate::{args, exit, human, report, say};

/// Prints it; the answer is our own exit code.
pub(crate) async fn df(args: &args::Df) -> u8 {
    let look = &args.look;
    match Session::start(look.deadline, look.json, "ending the look") {
        Ok(session) => session.code(told(args, &session).await),
        Err(failure) => failure.tell(look.json, None, None),
    }
}

async fn told(args: &args::Df, session: &Session) -> Result<u8, Failure> {
    let backend = session.connect(&args.look.engine).await?;
    let usage = backend.usage(&session.call).await?;
    let said = if args.look.json {
        let mut object = object(&usage);
        object["owner"] = json!(args.look.engine.owner);
        object["endpoint"] = json!(backend.endpoint());
        say::object(&report::versioned(object))
    } else {
        say::text(&text(&usage))
    };
    Ok(exit::of_writing(&said))
}

/// Each sort: its name in an object, for people, and the amount.
fn sorts(usage: &Usage) -> [(&'static str, &'static str, Amount); 5] {
    [
        ("sandboxes", "sandboxes", usage.sandboxes),
        ("work_dirs", "work directories", usage.work_dirs),
        ("images", "built images", usage.images),
        ("leftovers", "leftovers", usage.leftovers),
        ("runtimes", "guest runtimes", usage.runtimes),
    ]
}

fn object(usage: &Usage) -> Value {
    let amount = |amount: &Amount| {
        json!({
            "count": amount.count,
            "bytes": amount.bytes,
            "freeable": amount.freeable,
        })
    };
    let mut object = json!({ "total": amount(&usage.total()) });
    for (name, _, of) in sorts(usage) {
        object[name] = amount(&of);
    }
    object
}

fn text(usage: &Usage) -> String {
    let mut table = Table::new([
        Column::text("WHAT", 20),
        Column::figure("COUNT"),
        Column::figure("SIZE"),
        Column::figure("FREEABLE"),
    ]);
    let total = ("total", "total", usage.total());
    for (_, what, amount) in sorts(usage).into_iter().chain([total]) {
        table.row([
            what.to_owned(),
            amount.count.to_string(),
            human::size(amount.bytes),
            human::size(amount.freeable),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_has_a_row_and_they_add_up() {
        let mut usage = Usage::default();
        usage.images.count = 2;
        usage.images.bytes = 3 << 20;
        usage.runtimes.count = 1;
        usage.runtimes.bytes = 1 << 20;
        usage.runtimes.freeable = 1 << 20;
        let text = text(&usage);
        let last = text.lines().last().unwrap();
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["total", "3", "4.0", "MiB", "1.0", "MiB"]
        );
        assert_eq!(text.lines().count(), 7);
        let object = object(&usage);
        assert_eq!(object["total"]["freeable"], 1 << 20);
        assert_eq!(object["images"]["count"], 2);
    }
}
