//! Prints the cost of one request in user-space instructions, compared with the lowest possible cost.
//!
//! Runs `echo-server` and `bare` under callgrind. Counted instructions do not depend on the load of the machine, so a budget on them can be a test.

mod records;
mod report;
mod scenario;

use std::{path::PathBuf, thread};

use turnbuckle_bench::{
    Failure,
    callgrind::{Callgrind, Cost},
    message::Era,
    options::Options,
    process::ServerProcess,
    work::{RequestKind, Transport},
};

use self::{
    report::{Report, Row},
    scenario::{FEW_SERVERS, Limit, MANY_SERVERS, SCENARIOS, Scenario},
};
use crate::programs;

const USAGE: &str = "\
usage: turnbuckle-bench instructions [--only NAME] [--requests N] [--keep DIR] [--json | --records] [--check]

  --only NAME   run only scenarios with NAME in their name
  --requests N  count N requests instead of the scenario's own number
  --keep DIR    leave the profiles there, for callgrind_annotate
  --json        print one JSON object
  --records     print the ratios as bench/records.json keeps them
  --check       exit 1 if a budget is exceeded, or a record by more than a tenth";

/// Returns whether every budget is kept; true without `--check`.
pub(super) fn run(mut options: Options) -> Result<bool, Failure> {
    if options.switch("--help") {
        println!("{USAGE}");
        return Ok(true);
    }
    let (json, records) = (options.switch("--json"), options.switch("--records"));
    let check = options.switch("--check");
    let only = options.value::<String>("--only")?.unwrap_or_default();
    let requests = options.value("--requests")?;
    let keep = options.value::<PathBuf>("--keep")?;
    options.finish()?;

    let chosen: Vec<_> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.name.contains(&only))
        .collect();
    if chosen.is_empty() {
        return Err(format!("no scenario is called `{only}`").into());
    }
    let bench = Bench {
        callgrind: Callgrind::new(keep)?,
        requests,
    };
    let mut report = Report::default();
    for scenario in chosen {
        let product = match programs::command(scenario.server) {
            Ok(_) => Some(scenario.server),
            Err(error) if check && scenario.budget.has_record => return Err(error),
            // Built with other features; it does not have a budget.
            Err(_) if check => continue,
            Err(error) => {
                eprintln!("only the limit is measured: {error}");
                None
            }
        };
        eprintln!("{} …", scenario.name);
        report.rows.push(bench.row(scenario, product)?);
    }
    let printed = match (json, records) {
        (true, _) => report.json(),
        (_, true) => report.records(),
        _ => report.table(),
    };
    println!("{printed}");
    Ok(!check || report.within_budget())
}

/// Which of the two programs of a scenario is measured.
#[derive(Clone, Copy)]
enum Role {
    Limit,
    Product,
}

/// The options that all scenarios share.
struct Bench {
    callgrind: Callgrind,
    requests: Option<u64>,
}

impl Bench {
    /// Measures a scenario on both servers, concurrently.
    fn row(&self, scenario: &'static Scenario, product: Option<&str>) -> Result<Row, Failure> {
        let elsewhere = self.callgrind.on(1);
        let cost = |callgrind, program, first, role| match (scenario.limit, role) {
            (Limit::Server, _) => self.cost(callgrind, scenario, program, first),
            (Limit::PlainServer, Role::Limit) => {
                self.cost(callgrind, scenario, program, &["--listen", "127.0.0.1:0"])
            }
            (Limit::Client, _) => self.cost_of_client(callgrind, scenario, program),
            (Limit::Gateway(behind), _) => {
                self.cost_of_gateway(callgrind, scenario, program, behind)
            }
            (Limit::FewUpstreams, Role::Limit) => {
                self.cost_of_upstreams(callgrind, scenario, program, FEW_SERVERS)
            }
            (Limit::FewUpstreams | Limit::PlainServer, Role::Product) => {
                self.cost_of_upstreams(callgrind, scenario, program, MANY_SERVERS)
            }
        };
        let (limit, product) = thread::scope(|scope| {
            let limit = scope.spawn(|| {
                let first = match scenario.work.transport {
                    Transport::Http => ["http", "--listen", "127.0.0.1:0"].as_slice(),
                    Transport::Stdio => &["stdio"],
                };
                cost(&elsewhere, scenario.limit.program(), first, Role::Limit)
            });
            let first = match scenario.work.transport {
                Transport::Http => ["--listen", "127.0.0.1:0"].as_slice(),
                Transport::Stdio => &["--stdio"],
            };
            let product = product
                .map(|product| cost(&self.callgrind, product, first, Role::Product))
                .transpose();
            (limit.join(), product)
        });
        Ok(Row {
            scenario,
            limit: limit.map_err(|_| "the limit could not be measured")??,
            product: product?,
            record: records::record(scenario.name),
        })
    }

    /// Measures a client that calls the bare server.
    fn cost_of_client(
        &self,
        callgrind: &Callgrind,
        scenario: &Scenario,
        client: &str,
    ) -> Result<Cost, Failure> {
        let mut server = programs::command("bare")?;
        server.args(["http", "--listen", "127.0.0.1:0"]);
        let calls = self.requests.unwrap_or(scenario.requests);
        let name = format!("{}.{client}", scenario.name);
        let client = programs::command(client)?;
        callgrind.per_call(scenario.work.era, calls, &client, &mut server, &name)
    }

    /// Measures a gateway in front of the bare server.
    fn cost_of_gateway(
        &self,
        callgrind: &Callgrind,
        scenario: &Scenario,
        program: &str,
        behind: Transport,
    ) -> Result<Cost, Failure> {
        let listen = ["--listen", "127.0.0.1:0"];
        let mut first = listen.to_vec();
        if scenario.work.era == Era::Legacy {
            first.push("--legacy");
        }
        match behind {
            // The gateway starts it.
            Transport::Stdio => self.cost(callgrind, scenario, program, &first),
            Transport::Http => {
                let mut server = programs::command("bare")?;
                server.arg("http").args(listen);
                let server = ServerProcess::start(&mut server)?;
                let address = server.address().to_string();
                first.extend(["--upstream", &address]);
                let cost = self.cost(callgrind, scenario, program, &first)?;
                server.terminate()?;
                Ok(cost)
            }
        }
    }

    /// Measures our gateway in front of a bare server that it uses several times. A list has its tools from all of them.
    fn cost_of_upstreams(
        &self,
        callgrind: &Callgrind,
        scenario: &Scenario,
        program: &str,
        servers: usize,
    ) -> Result<Cost, Failure> {
        let listen = ["--listen", "127.0.0.1:0"];
        let mut behind = programs::command("bare")?;
        behind.arg("http").args(listen);
        let servers_text = servers.to_string();
        let mut first = listen.to_vec();
        first.extend(["--share", "--servers", &servers_text]);
        if scenario.work.era == Era::Legacy {
            first.push("--legacy");
        }
        match scenario.work.request {
            RequestKind::List(tools) => {
                behind.args(RequestKind::List(tools / servers).arguments());
            }
            _ => first.push("--no-prefix"),
        }
        let behind = ServerProcess::start(&mut behind)?;
        let address = behind.address().to_string();
        first.extend(["--upstream", &address]);
        let name = format!("{}.{program}-{servers}", scenario.name);
        let cost = self.cost_named(callgrind, scenario, program, &first, &name)?;
        behind.terminate()?;
        Ok(cost)
    }

    fn cost(
        &self,
        callgrind: &Callgrind,
        scenario: &Scenario,
        program: &str,
        first: &[&str],
    ) -> Result<Cost, Failure> {
        let name = format!("{}.{program}", scenario.name);
        self.cost_named(callgrind, scenario, program, first, &name)
    }

    /// Measures a program. `name` is that of its profiles, which no other measurement has at the same time.
    fn cost_named(
        &self,
        callgrind: &Callgrind,
        scenario: &Scenario,
        program: &str,
        first: &[&str],
        name: &str,
    ) -> Result<Cost, Failure> {
        let mut command = programs::command(program)?;
        command.args(first).args(scenario.work.request.arguments());
        let requests = self.requests.unwrap_or(scenario.requests);
        callgrind.per_request(scenario.work, requests, &command, name)
    }
}
