//! Tests of the gateway, in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod aggregation;
mod audit;
mod caller_logins;
mod client_tasks;
mod era_pairs;
mod failing_server;
mod failure_table;
mod failures;
mod first_client;
mod http_clients;
mod isolation;
mod list_changes;
mod list_limits;
mod lock;
mod names;
mod outside_of_calls;
mod param_headers;
mod policy;
mod rate_limits;
mod raw;
mod reload;
mod resources;
mod rings;
mod roots;
mod round_trips;
mod scripted;
mod scripts;
mod search;
mod server_states;
mod shared_connections;
mod sharing;
mod skills;
mod slow_clients;
mod suspended;
mod suspended_rules;
mod tasks;
mod token_exchange;
mod trace_context;
mod upstreams;
mod url_elicitation;
mod views;
