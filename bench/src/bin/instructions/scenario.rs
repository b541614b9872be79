//! What is measured, and how much more than the limit it may cost.

use turnbuckle_bench::message::Era;

/// One kind of call.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) transport: Transport,
    pub(crate) era: Era,
    /// Bytes of the message that is echoed.
    pub(crate) size: usize,
    /// Calls to count; fewer where one costs more, since valgrind is some 50 times slower than the machine.
    pub(crate) calls: u64,
    pub(crate) budget: Budget,
}

/// How many times the limit a call may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// More is a failure of `--check`.
    AtMost(f64),
    /// More is only shown: here the limit itself is not the least possible.
    Aim(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    Stdio,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Bare,
    Product,
}

impl Server {
    pub(crate) fn arguments(self, transport: Transport) -> &'static [&'static str] {
        match (self, transport) {
            (Server::Bare, Transport::Http) => &["http", "--listen", "127.0.0.1:0"],
            (Server::Bare, Transport::Stdio) => &["stdio"],
            (Server::Product, Transport::Http) => &["--listen", "127.0.0.1:0"],
            (Server::Product, Transport::Stdio) => &["--stdio"],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Server::Bare => "bare",
            Server::Product => "echo-server",
        }
    }
}

pub(crate) const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "http-modern-50",
        transport: Transport::Http,
        era: Era::Modern,
        size: 50,
        calls: 1000,
        budget: Budget::AtMost(1.3),
    },
    Scenario {
        name: "http-legacy-50",
        transport: Transport::Http,
        era: Era::Legacy,
        size: 50,
        calls: 1000,
        budget: Budget::AtMost(1.6),
    },
    Scenario {
        name: "http-modern-64k",
        transport: Transport::Http,
        era: Era::Modern,
        size: 65_536,
        calls: 100,
        budget: Budget::Aim(1.05),
    },
    Scenario {
        name: "stdio-legacy-50",
        transport: Transport::Stdio,
        era: Era::Legacy,
        size: 50,
        calls: 2000,
        budget: Budget::AtMost(1.4),
    },
    Scenario {
        name: "stdio-modern-50",
        transport: Transport::Stdio,
        era: Era::Modern,
        size: 50,
        calls: 2000,
        budget: Budget::AtMost(1.4),
    },
];
