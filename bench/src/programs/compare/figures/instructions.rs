//! The cost of one request in instructions and allocations: counted, so that it does not depend on the load of the machine.

use std::process::Command;

use turnbuckle_bench::{
    Failure,
    callgrind::Callgrind,
    cores::Cores,
    message::Era,
    work::{RequestKind, Transport, Work},
};

use crate::programs::compare::{
    checked,
    figure::{Figure, Goal, Metric, Sample},
    peer::{Ability, Peer, Role},
};

/// Returns the figures of this table.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    use Transport::{Http, Stdio};
    let times = |times| Some(Goal::times(Metric::Instructions, times));
    let counted = |transport, era, request, requests, goal| Counted {
        group: "instructions",
        case: case(transport, era, request),
        work: Work {
            transport,
            era,
            request,
        },
        tools: None,
        checked: false,
        requests,
        goal,
    };
    let (modern, legacy) = (Era::Modern, Era::Legacy);
    let mut figures = vec![
        counted(Http, modern, RequestKind::Echo(50), 300, times(1.3)),
        counted(Http, legacy, RequestKind::Echo(50), 300, times(1.6)),
        counted(Http, modern, RequestKind::Echo(65_536), 30, times(1.05)),
        counted(Http, modern, RequestKind::Add, 300, None),
        counted(Http, modern, RequestKind::List(100), 60, times(1.2)),
        counted(Http, legacy, RequestKind::List(100), 60, times(1.2)),
        counted(Http, modern, RequestKind::Steps, 200, None),
        counted(Http, legacy, RequestKind::Steps, 200, None),
        counted(Stdio, modern, RequestKind::Echo(50), 500, times(1.4)),
        counted(Stdio, legacy, RequestKind::Echo(50), 500, times(1.4)),
    ];
    let unchecked = counted(Http, modern, RequestKind::Echo(65_536), 30, None);
    figures.push(Counted {
        case: format!("{}, checked against its schema", unchecked.case),
        checked: true,
        ..unchecked
    });
    figures.into_iter().map(Counted::boxed).collect()
}

fn case(transport: Transport, era: Era, request: RequestKind) -> String {
    let transport = match transport {
        Transport::Http => "HTTP",
        Transport::Stdio => "stdio",
    };
    let era = match era {
        Era::Modern => "modern",
        Era::Legacy => "session",
    };
    let request = match request {
        RequestKind::Echo(bytes) => format!("echo {}", size(bytes)),
        RequestKind::Add => "add".to_owned(),
        RequestKind::Steps => "three steps of progress".to_owned(),
        RequestKind::List(tools) => format!("tools/list of {tools}"),
    };
    format!("{transport} {era} {request}")
}

/// Formats a number of bytes.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => format!("{} KiB", bytes / 1024),
    }
}

/// One kind of request, counted.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) group: &'static str,
    pub(super) case: String,
    pub(super) work: Work,
    /// The number of tools of the server, if the request does not determine it.
    pub(super) tools: Option<usize>,
    /// Whether ours validates arguments and results against the schemas of its tools, which is a feature.
    pub(super) checked: bool,
    pub(super) requests: u64,
    pub(super) goal: Option<Goal>,
}

impl Counted {
    pub(super) fn boxed(self) -> Box<dyn Figure> {
        Box::new(self)
    }

    fn command(&self, peer: &Peer) -> Result<Option<Command>, Failure> {
        let mut more = self.work.request.arguments();
        more.extend(self.tools.map(|_| "--tools".to_owned()));
        more.extend(self.tools.map(|tools| tools.to_string()));
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        let command = match self.work.transport {
            Transport::Http => peer.http(&more),
            Transport::Stdio => peer.stdio(&more),
        };
        let Some(command) = command else {
            return Ok(None);
        };
        if !self.checked || peer.role != Role::Ours {
            return Ok(Some(command));
        }
        let mut other = Command::new(checked::binary()?);
        other.arg("checked-server").args(command.get_args().skip(1));
        Ok(Some(other))
    }
}

impl Figure for Counted {
    fn group(&self) -> &'static str {
        self.group
    }

    fn case(&self) -> String {
        self.case.clone()
    }

    fn goal(&self) -> Option<Goal> {
        self.goal
    }

    fn needs(&self) -> &'static [Ability] {
        let has_tools = self.tools.is_some() || matches!(self.work.request, RequestKind::List(_));
        match (self.work.era, self.work.request) {
            (Era::Modern, RequestKind::Steps) => &[Ability::Modern, Ability::Steps],
            (Era::Legacy, RequestKind::Steps) => &[Ability::Legacy, Ability::Steps],
            (Era::Modern, _) if has_tools => &[Ability::Modern, Ability::Tools],
            (Era::Legacy, _) if has_tools => &[Ability::Legacy, Ability::Tools],
            (Era::Modern, _) => &[Ability::Modern],
            (Era::Legacy, _) => &[Ability::Legacy],
        }
    }

    fn leaves_out(&self, peer: &Peer) -> Option<&'static str> {
        if peer.role != Role::Peer {
            return None;
        }
        if self.checked {
            return Some("is measured as it comes");
        }
        let command = self.command(peer).ok()??;
        let program = std::path::Path::new(command.get_program()).file_name()?;
        let program = program.to_string_lossy();
        let is_interpreter = program == "node" || program.starts_with("python");
        is_interpreter.then_some("instructions of an interpreter are not counted")
    }

    /// Counts are the same each time.
    fn rounds(&self) -> usize {
        1
    }

    fn round(&self, peer: &Peer, _: Cores) -> Result<Option<Sample>, Failure> {
        let Some(command) = self.command(peer)? else {
            return Ok(None);
        };
        let callgrind = Callgrind::new(None)?;
        // Peers take longer, and need no third digit.
        let requests = match peer.role {
            Role::Limit | Role::Ours => self.requests,
            Role::Peer => self.requests.div_ceil(3),
        };
        let name = format!("{}.{}", self.case.replace(['/', ' '], "-"), peer.name);
        let cost = callgrind.per_request(self.work, requests, &command, &name)?;
        let mut sample = vec![
            (Metric::Instructions, cost.instructions),
            (Metric::Allocations, cost.allocations),
            (Metric::Writes, cost.writes),
        ];
        sample.extend(cost.spawns.map(|tasks| (Metric::Tasks, tasks)));
        Ok(Some(sample))
    }
}
