//! The formats that a report is written in.

use std::path::PathBuf;

use clap::ValueEnum as _;
use turnbuckle_check::Report;
use turnbuckle_check::report::{View, html, json, junit, markdown, sarif};

use super::terminal;
use crate::output;
use crate::output::style;

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people at a terminal
    Terminal,
    /// For programs; stable
    Json,
    /// For build servers
    Junit,
    /// For tools that collect findings; version 2.1.0
    Sarif,
    /// For comments and pages of a project
    Markdown,
    /// One page for a browser
    Html,
}

/// A report that is written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) format: Format,
    pub(super) file: PathBuf,
}

impl Format {
    /// Returns a report in this format, without colours.
    pub(super) fn document(self, report: &Report, view: &View, width: usize) -> String {
        match self {
            Self::Terminal => style::without(&terminal::shown(report, view, width)),
            Self::Json => output::json::document(&json::document(report)),
            Self::Junit => junit::document(report, view),
            Self::Sarif => output::json::document(&sarif::document(report, view)),
            Self::Markdown => markdown::document(report, view),
            Self::Html => html::document(report, view),
        }
    }
}

/// Reads `FORMAT=FILE`.
pub(super) fn page(text: &str) -> Result<Page, String> {
    let (format, file) = text.split_once('=').ok_or("write it as FORMAT=FILE")?;
    let format = Format::from_str(format, true).map_err(|_| {
        let known = Format::value_variants().iter();
        let known = known.filter_map(clap::ValueEnum::to_possible_value);
        let known: Vec<_> = known.map(|one| one.get_name().to_owned()).collect();
        format!("there is {}", known.join(", "))
    })?;
    match file.is_empty() {
        true => Err("the name of a file is missing".to_owned()),
        false => Ok(Page {
            format,
            file: file.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_format_and_a_file() {
        let html = page("html=out/a=b.html").unwrap();

        assert_eq!(
            (html.format, html.file),
            (Format::Html, "out/a=b.html".into())
        );
        assert_eq!(page("html").unwrap_err(), "write it as FORMAT=FILE");
        assert_eq!(
            page("pdf=x").unwrap_err(),
            "there is terminal, json, junit, sarif, markdown, html"
        );
        assert_eq!(page("json=").unwrap_err(), "the name of a file is missing");
    }
}
