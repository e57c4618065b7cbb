//! The README is the first thing that a newcomer runs.

fn readme() -> String {
    std::fs::read_to_string(crate::root().join("README.md")).expect("there is a README.md")
}

#[test]
fn the_readme_shows_both_commands_before_anything_else_is_asked_of_the_reader() {
    let readme = readme();
    let first_section: String = readme.lines().take(25).collect::<Vec<_>>().join("\n");
    for command in ["cargo xtask demo", "cargo xtask test"] {
        assert!(
            first_section.contains(command),
            "the top of README.md does not show `{command}`"
        );
    }
}

#[test]
fn every_local_link_of_the_documentation_leads_somewhere() {
    let mut broken = Vec::new();
    for path in crate::files("md") {
        let text = std::fs::read_to_string(&path).expect("a page is UTF-8");
        let folder = path.parent().expect("a file has a folder");
        for target in links(&text) {
            let local = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || target.starts_with("mailto:");
            if !outside && !local.is_empty() && !folder.join(local).exists() {
                broken.push(format!("{}: {target}", crate::shown(&path)));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_link_is_what_stands_in_round_brackets_after_square_ones() {
    assert_eq!(
        links("see [a](b.md) and [c](d/e.md#f), not (g.md)"),
        ["b.md", "d/e.md#f"]
    );
}

fn links(text: &str) -> Vec<&str> {
    let starts = text.match_indices("](").map(|(at, found)| at + found.len());
    starts
        .filter_map(|at| text[at..].split_once(')').map(|(target, _)| target))
        .collect()
}
