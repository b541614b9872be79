//! Tables with aligned columns; the last column is wrapped to the terminal.

use super::{style, wrap};

/// Rows below a header. Cells are plain text; the first column has the style of names.
#[derive(Debug)]
pub(crate) struct TextTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// The space between two columns.
const COLUMN_GAP: usize = 2;
/// The minimum width of the last column.
const MIN_LAST_COLUMN: usize = 20;

impl TextTable {
    /// Creates a table without rows.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<_> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.head.len());
        self.rows.push(row);
    }

    /// Returns the table, with styles, for a terminal width.
    pub(crate) fn render(&self, width: usize) -> String {
        let widths = self.widths(width);
        let head: Vec<_> = self.head.iter().map(|&name| name.to_owned()).collect();
        let mut text = render_row(&head, &widths, |_| style::HEAD);
        for row in &self.rows {
            text += &render_row(row, &widths, |column| match column {
                0 => style::NAME,
                _ => anstyle::Style::new(),
            });
        }
        text
    }

    /// Returns the column widths.
    ///
    /// If all columns fit, each gets the width it needs. Otherwise the last column gets at least a quarter of the
    /// terminal, and the others share the rest, narrow ones first: a wrapped URI is hard to copy, a wrapped
    /// description is not.
    fn widths(&self, width: usize) -> Vec<usize> {
        let needed = |column: usize| {
            let cells = self.rows.iter().map(|row| wrap::width(&row[column]));
            cells.max().unwrap_or(0).max(wrap::width(self.head[column]))
        };
        let mut widths: Vec<_> = (0..self.head.len()).map(needed).collect();
        let all: usize = widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1);
        let Some((last, others)) = widths.split_last_mut() else {
            return widths;
        };
        if all <= width {
            return widths;
        }
        let mut room = width
            .saturating_sub(COLUMN_GAP * others.len())
            .saturating_sub(usize::max(MIN_LAST_COLUMN, width / 4));
        let mut narrow_first: Vec<_> = others.iter_mut().collect();
        narrow_first.sort();
        let mut left = narrow_first.len();
        for column in narrow_first {
            *column = usize::min(*column, usize::max(room / left, 8));
            room = room.saturating_sub(*column);
            left -= 1;
        }
        let used: usize = others.iter().map(|column| column + COLUMN_GAP).sum();
        *last = usize::min(*last, width.saturating_sub(used).max(MIN_LAST_COLUMN));
        widths
    }
}

fn render_row(
    row: &[String],
    widths: &[usize],
    style_of: impl Fn(usize) -> anstyle::Style,
) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .map(|(cell, &width)| wrap::lines(cell, width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..height {
        let mut padding = 0;
        for (column, cell) in cells.iter().enumerate() {
            let part = cell.get(line).map_or("", String::as_str);
            if !part.is_empty() {
                text.extend(std::iter::repeat_n(' ', padding));
                text += &style::styled(style_of(column), part);
                padding = 0;
            }
            padding += widths[column] - wrap::width(part) + COLUMN_GAP;
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_display_width() {
        let mut table = TextTable::new(&["name", "description"]);
        table.row(["oslo".to_owned(), "the capital".to_owned()]);
        table.row(["東京都".to_owned(), "another one".to_owned()]);
        table.row(["x".to_owned(), String::new()]);

        insta::assert_snapshot!(style::strip(&table.render(80)), @r"
        name    description
        oslo    the capital
        東京都  another one
        x
        ");
    }

    #[test]
    fn a_long_name_gets_the_space_of_narrow_columns() {
        let mut table = TextTable::new(&["resource", "type", "description"]);
        table.row([
            "demo://static/document/architecture.md".to_owned(),
            "text/markdown".to_owned(),
            "How the parts of the server fit together".to_owned(),
        ]);

        insta::assert_snapshot!(style::strip(&table.render(80)), @r"
        resource                                type           description
        demo://static/document/architecture.md  text/markdown  How the parts of the
                                                               server fit together
        ");
    }

    #[test]
    fn the_last_column_wraps_to_the_terminal() {
        let mut table = TextTable::new(&["name", "description"]);
        table.row([
            "forecast".to_owned(),
            "Says what the weather will be like".to_owned(),
        ]);

        insta::assert_snapshot!(style::strip(&table.render(32)), @r"
        name      description
        forecast  Says what the weather
                  will be like
        ");
    }
}
