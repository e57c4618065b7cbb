//! A sandbox as it is shown.

use std::time::Duration;

use serde_json::{Value, json};
use stockade::SandboxKey;
use stockade_docker::operate::{CommandActivity, DiskUse, Doing, SandboxInfo};

use crate::human::{self, UNKNOWN};
use crate::named::Name;
use crate::table::{Column, Table};

/// Commands of a sandbox that are shown one by one; the others are counted.
const COMMANDS: usize = 3;

/// What is known of one.
#[derive(Debug)]
pub(super) struct Seen {
    id: String,
    container: String,
    owner: String,
    key: SandboxKey,
    kind: String,
    state: &'static str,
    age: Option<Duration>,
    /// What only the object has.
    more: Value,
    answer: Answer,
}

/// What came of asking it.
#[derive(Debug)]
pub(super) enum Answer {
    /// Nobody wanted to know.
    NotAsked,
    /// There is nobody to ask.
    NotRunning,
    /// It is frozen.
    Paused,
    Doing(Box<Doing>),
    /// It runs and did not answer, and why.
    None(String),
}

impl Seen {
    pub(super) fn new(info: SandboxInfo, answer: Answer) -> Self {
        let more = json!({
            "created": info.created.map(human::moment),
            "age_seconds": info.age.map(|age| age.as_secs_f64()),
            "running_seconds": info.running_for.map(|time| time.as_secs_f64()),
            "image": { "id": info.image_id, "name": info.image_name },
            "labels": info.labels,
            "protocol": info.protocol,
            "definition": info.definition,
            "run": info.run,
        });
        Self {
            id: info.id.as_str().to_owned(),
            container: info.name,
            owner: info.owner,
            key: info.key,
            kind: info.kind.as_str().to_owned(),
            state: info.state.as_str(),
            age: info.age,
            more,
            answer,
        }
    }

    /// The engine's full id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The object that says it.
    pub(super) fn object(&self) -> Value {
        let mut object = self.more.clone();
        object["id"] = json!(self.id);
        object["container"] = json!(self.container);
        object["name"] = json!(self.name().map(|name| name.as_str().to_owned()));
        object["owner"] = json!(self.owner);
        object["key"] = key_object(&self.key);
        object["kind"] = json!(self.kind);
        object["state"] = json!(self.state);
        object["activity"] = self.answer.object();
        object
    }

    /// The name that `stockade create` gave it.
    fn name(&self) -> Option<Name> {
        Name::of_key(&self.key, &self.kind)
    }

    fn cells(&self, owners: bool, activity: bool) -> Vec<String> {
        let name = self.name();
        let shown = name.as_ref().map_or(self.container.as_str(), Name::as_str);
        let mut cells = vec![shown.to_owned()];
        if owners {
            cells.push(self.owner.clone());
        }
        cells.push(key_text(&self.key));
        cells.push(self.kind.clone());
        cells.push(self.state.to_owned());
        cells.push(self.age.map_or_else(|| UNKNOWN.to_owned(), human::duration));
        if activity {
            cells.extend(self.answer.cells());
        }
        cells
    }
}

/// The key as an object; a conversation's has no call.
pub(crate) fn key_object(key: &SandboxKey) -> Value {
    json!({
        "scope": key.scope,
        "thread": key.thread_id,
        "agent": key.agent_id,
        "call": key.is_per_call().then_some(&key.call_id),
    })
}

/// `scope/thread/agent`, and the call.
fn key_text(key: &SandboxKey) -> String {
    let mut text = format!("{}/{}/{}", key.scope, key.thread_id, key.agent_id);
    if key.is_per_call() {
        text.push('/');
        text.push_str(&key.call_id);
    }
    text
}

/// The table of all of them.
pub(super) fn table(seen: &[Seen], owners: bool, activity: bool) -> Table {
    let mut columns = vec![Column::text("SANDBOX", 24)];
    if owners {
        columns.push(Column::text("OWNER", 20));
    }
    columns.extend([
        Column::text("FOR", 44),
        Column::text("KIND", 14),
        Column::text("STATE", 9),
        Column::figure("AGE"),
    ]);
    if activity {
        columns.extend([
            Column::figure("IDLE"),
            Column::figure("CPU"),
            Column::figure("MEMORY"),
            Column::figure("PROCS"),
            Column::figure("WORK DIR"),
            Column::text("DOING", 60),
        ]);
    }
    let mut table = Table::new(columns);
    for one in seen {
        table.row(one.cells(owners, activity));
    }
    table
}

impl Answer {
    /// Idle, CPU, memory, processes, work directory, doing.
    fn cells(&self) -> [String; 6] {
        let unknown = |doing: &str| {
            let mut cells = [UNKNOWN; 6].map(str::to_owned);
            doing.clone_into(&mut cells[5]);
            cells
        };
        match self {
            Self::NotAsked => unknown(UNKNOWN),
            Self::NotRunning => unknown("does not run"),
            Self::Paused => unknown("paused"),
            Self::None(_) => unknown("no answer"),
            Self::Doing(doing) => [
                idle(doing),
                format!("{:.1}s", cpu(doing).as_secs_f64()),
                human::share(doing.memory, doing.memory_limit),
                doing.processes.to_string(),
                match &doing.work_dir {
                    // The figures are the engine's disk's.
                    Some(work) if work.shared => "on disk".to_owned(),
                    Some(work) => human::share(Some(work.used), Some(work.size)),
                    None => UNKNOWN.to_owned(),
                },
                commands(doing),
            ],
        }
    }

    fn object(&self) -> Value {
        let unknown = |answer: &str, why: Option<&str>| json!({ "answer": answer, "why": why });
        match self {
            Self::NotAsked => Value::Null,
            Self::NotRunning => unknown("not_running", None),
            Self::Paused => unknown("paused", None),
            Self::None(why) => unknown("none", Some(why)),
            Self::Doing(doing) => doing_object(doing),
        }
    }
}

fn idle(doing: &Doing) -> String {
    if doing.channels == 0 && doing.commands.is_empty() && doing.waiting == 0 {
        human::duration(doing.idle)
    } else {
        "in use".to_owned()
    }
}

/// Of the commands that are alive.
fn cpu(doing: &Doing) -> Duration {
    doing.commands.iter().map(|command| command.cpu).sum()
}

/// The longest first, since it is the one that somebody wonders about.
fn commands(doing: &Doing) -> String {
    let mut running: Vec<&CommandActivity> = doing.commands.iter().collect();
    running.sort_by_key(|command| std::cmp::Reverse(command.running_for));
    let mut told: Vec<String> = running
        .iter()
        .take(COMMANDS)
        .map(|command| {
            let left = if command.ended { "left by " } else { "" };
            format!(
                "{left}{} {}",
                command.program,
                human::duration(command.running_for)
            )
        })
        .collect();
    if let Some(more) = running.len().checked_sub(COMMANDS).filter(|more| *more > 0) {
        told.push(format!("{more} more"));
    }
    if doing.waiting > 0 {
        told.push(format!("{} waiting", doing.waiting));
    }
    if told.is_empty() {
        return match doing.channels {
            0 => UNKNOWN.to_owned(),
            channels => human::count(channels.into(), "host attached", "hosts attached"),
        };
    }
    told.join(", ")
}

fn doing_object(doing: &Doing) -> Value {
    let command = |command: &CommandActivity| {
        json!({
            "number": command.number,
            "program": command.program,
            "background": command.background,
            "ended": command.ended,
            "running_seconds": command.running_for.as_secs_f64(),
            "pid": command.pid,
            "cpu_seconds": command.cpu.as_secs_f64(),
            "memory": command.memory,
            "processes": command.processes,
        })
    };
    let disk = |disk: &DiskUse| {
        json!({
            "shared": disk.shared,
            "used": disk.used,
            "size": disk.size,
            "files_used": disk.inodes_used,
            "files": disk.inodes,
        })
    };
    json!({
        "answer": "given",
        "version": doing.version,
        "running_seconds": doing.age.as_secs_f64(),
        "max_age_seconds": doing.max_age.as_secs_f64(),
        "idle_seconds": doing.idle.as_secs_f64(),
        "unheard_seconds": doing.unheard.as_secs_f64(),
        "idle_limit_seconds": doing.idle_limit.as_secs_f64(),
        "hosts": doing.channels,
        "commands": doing.commands.iter().map(command).collect::<Value>(),
        "waiting": doing.waiting,
        "cpu_seconds": cpu(doing).as_secs_f64(),
        "processes": doing.processes,
        "left_processes": doing.leftovers,
        "memory": doing.memory,
        "memory_peak": doing.memory_peak,
        "memory_limit": doing.memory_limit,
        "tasks": doing.tasks,
        "tasks_limit": doing.tasks_limit,
        "out_of_memory_kills": doing.out_of_memory_kills,
        "work_dir": doing.work_dir.as_ref().map(disk),
        "tmp": doing.tmp.as_ref().map(disk),
        "kills": doing.kills,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(key: SandboxKey, kind: &str, answer: Answer) -> Seen {
        Seen {
            id: "f".repeat(64),
            container: "stockade-0123456789ab".to_owned(),
            owner: "me".to_owned(),
            key,
            kind: kind.to_owned(),
            state: "running",
            age: Some(Duration::from_secs(65)),
            more: json!({ "age_seconds": 65.0 }),
            answer,
        }
    }

    fn busy() -> Answer {
        let mut doing = Doing::default();
        doing.channels = 1;
        doing.memory = Some(45 << 20);
        doing.memory_limit = Some(1 << 30);
        doing.processes = 7;
        doing.waiting = 2;
        for (at, program) in ["python3", "sh -c", "files", "x\x1b[2J"].iter().enumerate() {
            let mut command = CommandActivity::default();
            (*program).clone_into(&mut command.program);
            command.running_for = Duration::from_secs(100 - at as u64);
            command.cpu = Duration::from_millis(300);
            doing.commands.push(command);
        }
        Answer::Doing(Box::new(doing))
    }

    #[test]
    fn a_busy_sandbox_shows_its_oldest_commands_and_what_it_uses() {
        let key = SandboxKey::new("tenant", "thread", "agent").with_call("call-1");
        let text = table(&[seen(key, "python", busy())], true, true).to_string();
        let row = text.lines().nth(1).unwrap();
        for word in [
            "stockade-0123456789ab",
            "me",
            "tenant/thread/agent/call-1",
            "1m 5s",
            "in use",
            "1.2s",
            "45.0 MiB/1.0 GiB",
            "python3 1m 40s, sh -c 1m 39s, files 1m 38s, 1 more, 2 waiti",
        ] {
            assert!(row.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_named_sandbox_shows_its_name_and_a_silent_one_that_it_is() {
        let named = seen(
            Name::parse("box").unwrap().key(),
            "named",
            Answer::None("x".into()),
        );
        let text = table(&[named], false, true).to_string();
        let row = text.lines().nth(1).unwrap();
        assert!(
            row.starts_with("box ") && row.ends_with("no answer"),
            "{text}"
        );
    }

    #[test]
    fn an_idle_one_says_for_how_long_and_a_paused_one_that_it_is() {
        let mut doing = Doing::default();
        doing.idle = Duration::from_secs(7_200);
        let key = || SandboxKey::new("a", "b", "c");
        let all = [
            seen(key(), "k", Answer::Doing(Box::new(doing))),
            seen(key(), "k", Answer::Paused),
        ];
        let text = table(&all, false, true).to_string();
        assert!(text.contains("2h 0m") && text.contains("paused"), "{text}");
        let short = table(&all, false, false).to_string();
        assert!(
            !short.contains("IDLE") && !short.contains("paused"),
            "{short}"
        );
    }

    #[test]
    fn no_label_and_no_name_of_a_guest_reaches_the_terminal_as_it_is() {
        let key = SandboxKey::new("a\x1b]0;x\x07", "b\u{202e}", "c\n");
        let one = seen(key, "k\r", busy());
        let text = table(&[one], true, true).to_string();
        assert!(
            !text.contains(|it: char| it != '\n' && crate::say::is_unseen(it)),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn the_object_has_the_container_the_full_id_and_the_key() {
        let key = SandboxKey::new("a", "b", "c").with_call("d");
        let object = seen(key, "k", busy()).object();
        assert_eq!(object["id"].as_str().map(str::len), Some(64));
        assert_eq!(object["container"], "stockade-0123456789ab");
        assert_eq!(object["key"]["call"], "d");
        assert_eq!(object["name"], Value::Null);
        assert_eq!(object["activity"]["answer"], "given");
        assert_eq!(object["activity"]["commands"][0]["program"], "python3");
        assert_eq!(object["age_seconds"], 65.0);
    }
}
