//! Files and functions end where a reader's attention does.

use crate::{files, shown};

const LINES_PER_FILE: usize = 600;
const LINES_PER_FUNCTION: usize = 100;

#[test]
fn files_end_at_600_lines() {
    let long: Vec<_> = files("rs")
        .iter()
        .map(|path| (shown(path), read(path).lines().count()))
        .filter(|(_, lines)| *lines > LINES_PER_FILE)
        .collect();
    assert!(
        long.is_empty(),
        "files over {LINES_PER_FILE} lines: {long:#?}"
    );
}

#[test]
fn functions_end_at_100_lines() {
    let mut long = Vec::new();
    for path in files("rs") {
        for (name, lines) in functions(&read(&path)) {
            if lines > LINES_PER_FUNCTION {
                long.push(format!("{}: {name} has {lines} lines", shown(&path)));
            }
        }
    }
    assert!(
        long.is_empty(),
        "functions over {LINES_PER_FUNCTION} lines: {long:#?}"
    );
}

#[test]
fn a_function_is_measured_from_its_head_to_its_closing_brace() {
    let source =
        "fn a() {\n    1\n}\n\nimpl X {\n    pub async fn b(\n        c: u8,\n    ) {\n    }\n}\n";
    assert_eq!(
        functions(source),
        [("a".to_owned(), 3), ("b".to_owned(), 4)]
    );
}

/// Name and length of each function. Relies on rustfmt: a body closes with a
/// brace at the indentation of its head.
fn functions(source: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = source.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let one_line = line.trim_end().ends_with('}') || line.trim_end().ends_with(';');
        let length = if one_line {
            1
        } else {
            lines[start..]
                .iter()
                .position(|line| *line == close)
                .map_or(1, |at| at + 1)
        };
        found.push((name, length));
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    loop {
        match words.next()? {
            "fn" => break,
            word if word.starts_with("pub") || word.starts_with("extern") => {}
            "async" | "const" | "unsafe" | "\"C\"" => {}
            _ => return None,
        }
    }
    let name = words.next()?;
    Some(name.split(['(', '<']).next()?.to_owned())
}

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).expect("a source file is UTF-8")
}
