//! Tests of the server through its transports.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod capabilities;
mod every_way;
mod extensions;
mod guard_bodies;
mod guard_callers;
mod guard_doors;
mod guard_layer;
mod guard_post;
mod guard_scopes;
mod guard_tokens;
mod handles;
mod http_batches;
mod http_bodies;
mod http_caller;
mod http_connections;
mod http_crowds;
mod http_gate;
#[cfg(feature = "http2")]
mod http_http2;
mod http_lingering;
mod http_modern;
mod http_parameters;
mod http_polling;
mod http_quota;
mod http_resumption;
mod http_sessions;
mod http_sse_doors;
mod http_sse_ending;
mod http_sse_messages;
mod http_sse_peer;
mod http_streams;
mod input_edges;
#[cfg(target_os = "linux")]
mod limited;
#[cfg(target_os = "linux")]
mod limited_http;
#[cfg(target_os = "linux")]
mod limited_lines;
mod lines_asking;
mod lines_changes;
mod lines_ending;
mod lines_eras;
mod lines_hostile;
mod lines_lists;
mod lines_messages;
mod lines_peer;
mod lines_rounds;
mod lines_running;
mod listener;
#[cfg(feature = "metrics")]
mod metrics;
mod middleware;
mod middleware_audit;
mod middleware_limits;
mod mounting;
mod objects;
mod older_peers;
#[cfg(feature = "skills")]
mod skills_changing;
#[cfg(feature = "skills")]
mod skills_hostile;
#[cfg(feature = "skills")]
mod skills_place;
#[cfg(feature = "skills")]
mod skills_served;
mod small_print;
mod speaker;
mod spec_asking;
mod spec_content;
mod spec_discretion;
mod spec_elicitation;
mod spec_envelopes;
mod spec_errors;
mod spec_extensions;
mod spec_lists;
mod spec_notices;
mod spec_order;
mod spec_prompts;
mod spec_resources;
mod spec_sampling;
mod spec_schema;
mod spec_streams;
mod spec_tools;
mod spec_visits;
mod stdio_process;
mod tasks_asked;
mod tasks_http;
mod tasks_offered;
mod tasks_owners;
mod tasks_server;
mod testing_desk;
mod testing_failures;
mod testing_http;
mod testing_peer;
#[cfg(feature = "validation")]
mod tools_checked;
#[cfg(not(feature = "validation"))]
mod tools_unchecked;
mod trace_context;
mod tracing_spans;
mod visibility;
