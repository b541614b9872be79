//! A Model Context Protocol client for every server.
