//! The measured requests, and the budget of each relative to the limit.

use turnbuckle_bench::{
    goals::{CLIENT_TIMES, GATEWAY_TIMES},
    message::Era::{self, Legacy, Modern},
    work::{
        RequestKind,
        Transport::{self, Http, Stdio},
        Work,
    },
};

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    /// How many to count; fewer where one costs more, since valgrind is some 50 times slower than the machine.
    pub(crate) requests: u64,
    pub(crate) budget: Budget,
    /// The measured program.
    pub(crate) server: &'static str,
    /// The program with the lowest possible cost.
    pub(crate) limit: Limit,
}

/// The program with the lowest possible cost, and how both programs are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A server that is called.
    Server,
    /// A client, which calls the bare server.
    Client,
    /// A gateway that is called, in front of a bare server on this transport.
    Gateway(Transport),
    /// Our gateway in front of few servers over HTTP, compared with many.
    FewUpstreams,
    /// Our own server, compared with a gateway that has the same number of tools from many servers over HTTP.
    PlainServer,
}

/// The number of servers that count as few, and as many.
pub(crate) const FEW_SERVERS: usize = 2;
pub(crate) const MANY_SERVERS: usize = 20;

impl Limit {
    /// Returns the name of the program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Limit::Server => "bare",
            Limit::Client => "bare-client",
            Limit::Gateway(_) => "bare-bridge",
            Limit::FewUpstreams => BRIDGE_SERVER,
            Limit::PlainServer => ECHO_SERVER,
        }
    }
}

/// The highest allowed cost of a request; more is a failure of `--check`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The instructions, as a multiple of the limit.
    pub(crate) times: Option<f64>,
    /// The number of allocations.
    pub(crate) allocations: Option<f64>,
    /// The number of writes to a descriptor.
    pub(crate) writes: Option<f64>,
    /// The number of spawned tasks.
    pub(crate) spawns: Option<f64>,
    /// Whether it is compared with its record.
    pub(crate) has_record: bool,
    /// Whether `times` is not reached yet: the report notes it, and only the record is checked.
    pub(crate) is_missed: bool,
    /// How far apart runs of the same program are: a ratio may exceed its limits by this factor.
    pub(crate) spread: f64,
}

impl Budget {
    /// A budget that allows no more than the record.
    const RECORD: Budget = Budget {
        times: None,
        allocations: None,
        writes: None,
        spawns: None,
        has_record: true,
        is_missed: false,
        spread: 1.0,
    };

    /// A budget without limits.
    const NONE: Budget = Budget {
        has_record: false,
        ..Budget::RECORD
    };

    const fn times(times: f64) -> Budget {
        Budget {
            times: Some(times),
            ..Budget::RECORD
        }
    }

    /// Marks `times` as not reached yet.
    const fn missed(self) -> Budget {
        Budget {
            is_missed: true,
            ..self
        }
    }

    /// Allows for how far runs of one gateway can be apart: it has several tasks, which wake each other in any order.
    const fn of_gateway(self) -> Budget {
        Budget {
            spread: 1.08,
            ..self
        }
    }

    /// Allows for how far runs of one client are apart: 2 % were measured. Its background work, such as opening the stream of a
    /// session, falls into the counted requests or not.
    const fn of_client(self) -> Budget {
        Budget {
            spread: 1.03,
            ..self
        }
    }
}

/// The server that is written with our library, the default.
const ECHO_SERVER: &str = "echo-server";

/// The same server, with arguments and results validated against the schemas.
const CHECKED_SERVER: &str = "checked-server";

/// A client that is written with our library.
const ECHO_CLIENT: &str = "echo-client";

/// A gateway that is written with our library.
const BRIDGE_SERVER: &str = "bridge-server";

const fn scenario(
    name: &'static str,
    (transport, era, request): (Transport, Era, RequestKind),
    requests: u64,
    budget: Budget,
) -> Scenario {
    Scenario {
        name,
        work: Work {
            transport,
            era,
            request,
        },
        requests,
        budget,
        server: ECHO_SERVER,
        limit: Limit::Server,
    }
}

/// A call of `echo` with 50 bytes, measured at the client.
const fn call(name: &'static str, era: Era, budget: Budget) -> Scenario {
    Scenario {
        server: ECHO_CLIENT,
        limit: Limit::Client,
        ..scenario(name, (Http, era, RequestKind::Echo(50)), 300, budget)
    }
}

/// A call of `echo` with 50 bytes over HTTP, measured at a gateway in front of a server on this transport.
const fn relayed(name: &'static str, era: Era, behind: Transport) -> Scenario {
    Scenario {
        server: BRIDGE_SERVER,
        limit: Limit::Gateway(behind),
        ..scenario(
            name,
            (Http, era, RequestKind::Echo(50)),
            300,
            Budget::times(GATEWAY_TIMES).missed().of_gateway(),
        )
    }
}

pub(crate) const SCENARIOS: [Scenario; 19] = [
    scenario(
        "http-modern-50",
        (Http, Modern, RequestKind::Echo(50)),
        500,
        Budget {
            allocations: Some(30.0),
            writes: Some(1.0),
            spawns: Some(0.0),
            ..Budget::times(1.3)
        },
    ),
    scenario(
        "http-legacy-50",
        (Http, Legacy, RequestKind::Echo(50)),
        500,
        Budget::times(1.6),
    ),
    scenario(
        "http-modern-add",
        (Http, Modern, RequestKind::Add),
        500,
        Budget::RECORD,
    ),
    scenario(
        "http-modern-64k",
        (Http, Modern, RequestKind::Echo(65_536)),
        50,
        Budget::times(1.05),
    ),
    Scenario {
        server: CHECKED_SERVER,
        ..scenario(
            "http-modern-64k-checked",
            (Http, Modern, RequestKind::Echo(65_536)),
            50,
            Budget::NONE,
        )
    },
    scenario(
        "http-modern-list",
        (Http, Modern, RequestKind::List(100)),
        200,
        Budget::times(1.2),
    ),
    scenario(
        "http-legacy-list",
        (Http, Legacy, RequestKind::List(100)),
        200,
        Budget::times(1.2),
    ),
    scenario(
        "http-modern-steps",
        (Http, Modern, RequestKind::Steps),
        300,
        Budget::RECORD,
    ),
    scenario(
        "http-legacy-steps",
        (Http, Legacy, RequestKind::Steps),
        300,
        Budget::RECORD,
    ),
    scenario(
        "stdio-legacy-50",
        (Stdio, Legacy, RequestKind::Echo(50)),
        1000,
        Budget::times(1.4),
    ),
    scenario(
        "stdio-modern-50",
        (Stdio, Modern, RequestKind::Echo(50)),
        1000,
        Budget::times(1.4),
    ),
    call(
        "client-modern-50",
        Modern,
        Budget::times(CLIENT_TIMES).of_client(),
    ),
    call(
        "client-legacy-50",
        Legacy,
        Budget::times(CLIENT_TIMES).of_client(),
    ),
    relayed("gateway-modern-stdio", Modern, Stdio),
    relayed("gateway-legacy-stdio", Legacy, Stdio),
    relayed("gateway-modern-http", Modern, Http),
    relayed("gateway-legacy-http", Legacy, Http),
    Scenario {
        limit: Limit::FewUpstreams,
        budget: Budget::times(1.0).of_gateway(),
        ..relayed("gateway-many-servers", Modern, Http)
    },
    Scenario {
        server: BRIDGE_SERVER,
        limit: Limit::PlainServer,
        ..scenario(
            "gateway-many-tools",
            (Http, Legacy, RequestKind::List(1_000)),
            50,
            Budget::times(1.3).of_gateway(),
        )
    },
];
