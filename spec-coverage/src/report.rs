//! Reads from nextest's JUnit report which tests passed.
//!
//! Not an XML parser: it relies on the layout that nextest writes.

use std::collections::HashSet;

/// A test as nextest names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TestName {
    /// The test binary, for example `turnbuckle-server::it`.
    pub binary: String,
    /// The path of the test inside it, for example `stdio::a_bad_line_is_answered`.
    pub test: String,
}

impl TestName {
    /// Names a test by its binary and its path inside it.
    pub fn new(binary: &str, test: &str) -> Self {
        Self {
            binary: binary.to_owned(),
            test: test.to_owned(),
        }
    }

    /// Returns the package that the test belongs to, for example `turnbuckle-server`.
    pub fn package(&self) -> &str {
        self.binary.split("::").next().unwrap_or(&self.binary)
    }
}

/// Returns the tests that ran and passed.
pub fn passed(junit: &str) -> HashSet<TestName> {
    junit
        .split("<testcase ")
        .skip(1)
        .filter_map(passed_case)
        .collect()
}

/// Reads a test case, from after `<testcase ` up to the next one.
fn passed_case(text: &str) -> Option<TestName> {
    let (opening, rest) = text.split_once('>')?;
    let body = if opening.ends_with('/') {
        ""
    } else {
        rest.split("</testcase>").next()?
    };
    // Test output is escaped in the report, so these are elements.
    if ["<failure", "<error", "<skipped"]
        .iter()
        .any(|element| body.contains(element))
    {
        return None;
    }
    Some(TestName {
        binary: attribute(opening, "classname")?,
        test: attribute(opening, "name")?,
    })
}

fn attribute(opening: &str, name: &str) -> Option<String> {
    let mut parts = opening.split('"');
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        if key.trim() == format!("{name}=") {
            return Some(unescape(value));
        }
    }
    None
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ci" tests="4" failures="1">
    <testsuite name="a-crate::it" tests="4">
        <testcase name="passes" classname="a-crate::it" time="0.01"/>
        <testcase name="prints" classname="a-crate::it" time="0.01">
            <system-out>&lt;failure type=&quot;none&quot;&gt;</system-out>
        </testcase>
        <testcase name="fails" classname="a-crate::it" time="0.01">
            <failure type="test failure">left &lt; right</failure>
        </testcase>
        <testcase name="generic::&lt;u8&gt;" classname="a-crate::it" time="0.01">
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn only_tests_that_passed_count() {
        let expected = ["passes", "prints", "generic::<u8>"];

        let expected = expected.map(|test| TestName::new("a-crate::it", test));

        assert_eq!(passed(REPORT), HashSet::from(expected));
    }

    #[test]
    fn an_empty_report_names_no_test() {
        assert!(passed("<testsuites></testsuites>").is_empty());
    }
}
