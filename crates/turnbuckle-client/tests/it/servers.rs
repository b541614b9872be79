//! Servers that the tests connect to: mock servers for exact bytes, and a turnbuckle server.

pub(crate) mod mock_http;
pub(crate) mod mock_mcp_http;
pub(crate) mod mock_ndjson;
pub(crate) mod raw_ndjson;
pub(crate) mod turnbuckle;
