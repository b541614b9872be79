//! How the cost of a request grows: with the number of tools, with its size, with the length of a list.

use turnbuckle_bench::{
    message::Era,
    work::{RequestKind, Transport, Work},
};

use super::instructions::{Counted, size};
use crate::programs::compare::figure::Figure;

/// The number of tools of a server, and the number of counted calls. The start of a large server varies considerably from run
/// to run: the more calls it is divided by, the less of it remains in each.
const TOOL_COUNTS: [(usize, u64); 4] = [(1, 200), (10, 200), (100, 300), (1_000, 3_000)];

/// The number of listed tools, and the number of counted lists.
const LISTED: [(usize, u64); 4] = [(1, 200), (10, 200), (100, 100), (1_000, 200)];

/// The largest message that fits into a request body of 4 MiB, our server's default limit.
const NEARLY_4_MIB: usize = (4 << 20) - (64 << 10);

/// The size of a message, and the number of counted calls.
const SIZES: [(usize, u64); 5] = [
    (50, 200),
    (1 << 10, 200),
    (16 << 10, 60),
    (256 << 10, 12),
    (NEARLY_4_MIB, 3),
];

/// Returns the figures of this table.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    let tools = |tools| match tools {
        1 => "1 tool".to_owned(),
        many => format!("{many} tools"),
    };
    let by_tool_count = TOOL_COUNTS.map(|(count, requests)| Counted {
        tools: Some(count),
        ..counted(
            format!("echo 50 B among {}", tools(count)),
            RequestKind::Echo(50),
            requests,
        )
    });
    let sizes = SIZES.map(|(bytes, requests)| {
        counted(
            format!("echo {}", size(bytes)),
            RequestKind::Echo(bytes),
            requests,
        )
    });
    let lists = LISTED.map(|(count, requests)| {
        let case = format!("tools/list of {}", tools(count));
        counted(case, RequestKind::List(count), requests)
    });
    let all = by_tool_count.into_iter().chain(sizes).chain(lists);
    all.map(Counted::boxed).collect()
}

fn counted(case: String, request: RequestKind, requests: u64) -> Counted {
    Counted {
        group: "growth",
        case,
        work: Work {
            transport: Transport::Http,
            era: Era::Modern,
            request,
        },
        tools: None,
        checked: false,
        requests,
        goal: None,
    }
}
