//! Columns for people: aligned, bounded in width, and without anything that a
//! terminal would obey.

use std::fmt;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::say::tame;

/// Between two columns.
const GAP: &str = "  ";

/// Rows under titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    most: usize,
    right: bool,
}

impl Column {
    /// Text, cut where it is wider than `most`.
    pub(crate) const fn text(title: &'static str, most: usize) -> Self {
        Self {
            title,
            most,
            right: false,
        }
    }

    /// A figure, which is never cut.
    pub(crate) const fn figure(title: &'static str) -> Self {
        Self {
            title,
            most: usize::MAX,
            right: true,
        }
    }
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().zip(&self.columns);
        let cells = cells.map(|(cell, column)| cut(&tame(&cell), column.most));
        self.rows.push(cells.collect());
    }
}

/// The titles, and a line for each row; no line ends with spaces.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles: Vec<String> = self.columns.iter().map(|it| it.title.to_owned()).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let rows = self.rows.iter().chain([&titles]);
                rows.map(|row| row[at].width()).max().unwrap_or(0)
            })
            .collect();
        for row in [&titles].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                if !line.is_empty() {
                    line.push_str(GAP);
                }
                let space = " ".repeat(width - cell.width());
                if column.right {
                    line.push_str(&space);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&space);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The text, or as much of it as fits with a mark that there is more.
fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut width = 1;
    let kept = text.chars().take_while(|character| {
        width += character.width().unwrap_or(0);
        width <= most
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_bounded_and_cannot_move_the_cursor() {
        let mut table = Table::new([
            Column::text("NAME", 8),
            Column::figure("SIZE"),
            Column::text("END", 4),
        ]);
        table.row(["a".into(), "1 MiB".into(), String::new()]);
        table.row(["much too long".into(), "12".into(), "x\x1b[2J".into()]);
        table.row(["日本語日本語".into(), "3".into(), "end".into()]);
        let wanted = "NAME       SIZE  END\n\
                      a         1 MiB\n\
                      much to…     12  x\\u…\n\
                      日本語…       3  end\n";
        assert_eq!(table.to_string(), wanted);
    }
}
