//! How the cost of a request grows: with the number of tools, with its size, with the length of the list it asks for.

use turnbuckle_bench::{
    message::Era,
    work::{Ask, Transport, Work},
};

use super::instructions::{Counted, size};
use crate::figure::Figure;

/// How many tools a server has, and how many calls are counted then. The start of a large one varies by a good deal from run
/// to run: the more calls it is spread over, the less of it is left in each.
const AMONG: [(usize, u64); 4] = [(1, 200), (10, 200), (100, 300), (1_000, 3_000)];

/// How many tools are listed, and how many lists are counted then.
const LISTED: [(usize, u64); 4] = [(1, 200), (10, 200), (100, 100), (1_000, 200)];

/// The largest message whose request fits into a body of 4 MiB, which is what our server takes by default.
const NEARLY_4_MIB: usize = (4 << 20) - (64 << 10);

/// How large a message is, and how many are counted.
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
    let among = AMONG.map(|(count, requests)| Counted {
        tools: Some(count),
        ..counted(
            format!("echo 50 B among {}", tools(count)),
            Ask::Echo(50),
            requests,
        )
    });
    let sizes = SIZES.map(|(bytes, requests)| {
        counted(format!("echo {}", size(bytes)), Ask::Echo(bytes), requests)
    });
    let lists = LISTED.map(|(count, requests)| {
        let case = format!("tools/list of {}", tools(count));
        counted(case, Ask::List(count), requests)
    });
    let all = among.into_iter().chain(sizes).chain(lists);
    all.map(Counted::boxed).collect()
}

fn counted(case: String, ask: Ask, requests: u64) -> Counted {
    Counted {
        group: "growth",
        case,
        work: Work {
            transport: Transport::Http,
            era: Era::Modern,
            ask,
        },
        tools: None,
        checked: false,
        requests,
        goal: None,
    }
}
