//! Where the specification says something.

const SITE: &str = "https://modelcontextprotocol.io";
const REPOSITORIES: &str = "https://github.com/modelcontextprotocol";

/// Returns the address of the page and section that a row of the ledger comes from; not every row has one.
pub fn page(source: &str) -> Option<String> {
    let (page, section) = source.split_once('#').unwrap_or((source, ""));
    let (first, rest) = page.split_once('/')?;
    let address = match first {
        "docs" => {
            let (_, page) = rest.split_once('/')?;
            format!("{SITE}/docs/{page}")
        }
        "seps" | "extensions" => format!("{SITE}/{page}"),
        _ if first.starts_with("ext-") && rest.starts_with("specification/") => {
            format!("{REPOSITORIES}/{first}/blob/main/{rest}.mdx")
        }
        _ if first.starts_with("ext-") => return Some(format!("{REPOSITORIES}/{first}")),
        _ if first.starts_with("20") => format!("{SITE}/specification/{page}"),
        _ => return None,
    };
    let address = address.strip_suffix("/index").unwrap_or(&address);
    Some(match section {
        "" | "top" => address.to_owned(),
        section => format!("{address}#{section}"),
    })
}

#[cfg(test)]
mod tests {
    use turnbuckle_ledger::table;

    use super::*;

    #[test]
    fn a_row_leads_to_its_page_and_section() {
        let pages = [
            "2026-07-28/basic/index#messages",
            "2025-11-25/basic/transports#session-management",
            "2025-11-25/basic/index#top",
            "docs/2026-07-28/tutorials/security/security_best_practices#confused-deputy-problem",
            "ext-tasks/specification/draft/tasks#task-polling",
            "seps/2575-stateless-mcp#security-implications",
        ];
        let pages: Vec<_> = pages.iter().filter_map(|source| page(source)).collect();

        insta::assert_snapshot!(pages.join("\n"), @r"
        https://modelcontextprotocol.io/specification/2026-07-28/basic#messages
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
        https://modelcontextprotocol.io/specification/2025-11-25/basic
        https://modelcontextprotocol.io/docs/tutorials/security/security_best_practices#confused-deputy-problem
        https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.mdx#task-polling
        https://modelcontextprotocol.io/seps/2575-stateless-mcp#security-implications
        ");
    }

    #[test]
    fn nearly_every_row_has_a_page() {
        let without = table::all().iter().filter(|row| page(row.source).is_none());

        assert!(without.count() < 5);
    }
}
