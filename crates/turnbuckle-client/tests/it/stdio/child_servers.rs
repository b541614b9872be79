//! Child processes that are servers, by role; see [`child_roles`](crate::stdio::child_roles).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output of the child is tested"
)]

use std::{
    io::{self, BufRead, Write},
    process,
};

use serde_json::{Value, json};
use turnbuckle_server::{Server, Tool, ToolError};

use crate::{
    servers::raw_ndjson::{discover_result, initialize_result, response, text_result},
    stdio::child_roles::{read_all, report_ready, run_until_test_ends, start},
};

/// Runs the server of this role; returns `false` if the role is unknown.
pub(crate) fn run_server_role(role: &str, runtime: &tokio::runtime::Runtime) -> bool {
    let serve = || {
        runtime
            .block_on(turnbuckle_server::stdio::serve(server()))
            .unwrap();
    };
    match role {
        "server" => {
            let _connection = report_ready();
            println!("starting up");
            println!(
                "{}",
                json!({ "level": "info", "text": "a log on the wrong stream" })
            );
            eprintln!("error: this is only talk");
            serve();
        }
        "stubborn server" => {
            serve();
            run_until_test_ends();
        }
        "forking server" => {
            start("stubborn", |_| {});
            serve();
        }
        "recorder" => listen(|request| {
            eprintln!("{request}");
            Some(match request["method"].as_str()? {
                "server/discover" => discover_result(),
                _ => text_result("noted"),
            })
        }),
        "frail" => {
            let _connection = report_ready();
            listen(|request| match request["method"].as_str()? {
                "initialize" => Some(initialize_result()),
                "ping" => Some(json!({})),
                "notifications/initialized" => None,
                other => {
                    eprintln!("cannot bear {other}");
                    process::exit(1);
                }
            });
        }
        "hopeless" => {
            let _connection = report_ready();
            let mut line = String::new();
            io::stdin().read_line(&mut line).unwrap();
            eprintln!("no paper left");
            process::exit(4);
        }
        "endless" => listen(|request| {
            if request["method"] == "server/discover" {
                return Some(discover_result());
            }
            let chunk = vec![b'x'; 1024 * 1024];
            for _ in 0..200 {
                if io::stdout().write_all(&chunk).is_err() {
                    break;
                }
            }
            read_all();
            None
        }),
        _ => return false,
    }
    true
}

fn server() -> Server {
    let echo = Tool::new("echo", async || Ok("echo".to_owned()));
    let die = Tool::new("die", async || -> Result<String, ToolError> {
        eprintln!("out of paper");
        process::exit(3)
    });
    let wait = Tool::new("wait", async || {
        std::future::pending::<()>().await;
        Ok(String::new())
    });
    let server = Server::new("child", "1").tool(echo).tool(die).tool(wait);
    let pupil = server.clone();
    server.add_tool(Tool::new("learn", move || {
        pupil.add_tool(Tool::new("new", async || Ok(String::new())));
        async { Ok(String::new()) }
    }));
    server
}

/// Reads requests, and responds with the results of `each`.
fn listen(mut each: impl FnMut(&Value) -> Option<Value>) {
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let request = serde_json::from_str(&line).expect(&line);
        if let Some(result) = each(&request) {
            println!("{}", response(&request, result));
        }
    }
}
