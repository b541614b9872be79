//! Pagination of a list that changes between pages, and forged cursors.
//!
//! Every line is a step: `+name` adds a tool, `-name` removes one, `>` requests the next page, `=` starts again, `!text`
//! requests a page with any cursor (`@cursor@` is the last one), `?text` requests another list with it.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use turnbuckle_fuzz::{
    bounded, full_server,
    line_peer::{LinePeer, modern},
    marks::Marks,
};
use turnbuckle_server::{Server, Tool};

const PAGE: usize = 3;

fuzz_target!(|input: &str| bounded::run(walk(input)));

async fn walk(input: &str) {
    let mut reader = Reader::new(full_server::server().page_size(PAGE));
    for step in input.lines().take(64) {
        let Some(kind) = step.chars().next() else {
            continue;
        };
        let text = &step[kind.len_utf8()..];
        match kind {
            '+' => reader.add(text),
            '-' => reader.remove(text),
            '>' => reader.next_page().await,
            '=' => reader.begin(),
            '!' => reader.request_any(text).await,
            '?' => reader.request_another_list(text).await,
            _ => {}
        }
    }
    while reader.cursor.is_some() {
        reader.next_page().await;
    }
    reader.peer.finish().await;
}

/// Reads a list page by page, and checks its items.
struct Reader {
    server: Server,
    peer: LinePeer,
    marks: Marks,
    /// The current items.
    listed: Vec<String>,
    /// All items since the first page.
    constant: HashSet<String>,
    seen: Vec<String>,
    cursor: Option<String>,
    given: HashSet<String>,
    /// The item of the cursor was removed, so the start of the next page is undefined.
    lost: bool,
}

impl Reader {
    fn new(server: Server) -> Self {
        let mut reader = Self {
            peer: LinePeer::new(server.clone()),
            server,
            marks: Marks::default(),
            listed: full_server::TOOLS.map(str::to_owned).into(),
            constant: HashSet::new(),
            seen: Vec::new(),
            cursor: None,
            given: HashSet::new(),
            lost: false,
        };
        reader.begin();
        reader
    }

    fn begin(&mut self) {
        self.constant = self.listed.iter().cloned().collect();
        self.seen.clear();
        self.cursor = None;
        self.lost = false;
    }

    fn add(&mut self, name: &str) {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_name || name.len() > 128 || self.listed.len() >= 64 {
            return;
        }
        let tool = Tool::new(name, async || Ok(String::new()));
        self.server.add_tool(tool);
        if !self.listed.iter().any(|listed| listed == name) {
            self.listed.push(name.to_owned());
        }
    }

    fn remove(&mut self, name: &str) {
        let place = self.listed.iter().position(|listed| listed == name);
        assert_eq!(self.server.remove_tool(name), place.is_some());
        if let Some(place) = place {
            self.listed.remove(place);
        }
        self.constant.remove(name);
        self.lost |= self.seen.last().is_some_and(|last| last == name);
    }

    /// Requests the next page; after the last one, the first.
    async fn next_page(&mut self) {
        let params = match self.cursor.take() {
            Some(cursor) => json!({ "cursor": cursor }),
            None => {
                self.begin();
                json!({})
            }
        };
        let result = self.list(params).await["result"].take();
        let page = names(&result);
        assert!(page.len() <= PAGE);
        assert!(
            page.iter().all(|name| self.listed.contains(name)),
            "{result}"
        );
        self.seen.extend(page);
        self.cursor = result["nextCursor"].as_str().map(str::to_owned);
        if self.cursor.is_none() && !self.lost {
            for name in &self.constant {
                let times = self.seen.iter().filter(|seen| *seen == name).count();
                assert_eq!(times, 1, "{name} of {:?}", self.seen);
            }
        }
    }

    async fn request_any(&mut self, text: &str) {
        let text = String::from_utf8(self.marks.fill(text.as_bytes())).expect("text stays text");
        let is_given = self.given.contains(&text);
        let answer = self.list(json!({ "cursor": text })).await;
        if is_given {
            assert!(answer["result"]["tools"].is_array(), "{answer}");
        } else {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }

    async fn request_another_list(&mut self, text: &str) {
        let text = String::from_utf8(self.marks.fill(text.as_bytes())).expect("text stays text");
        for method in ["prompts/list", "resources/list", "resources/templates/list"] {
            let params = modern(json!({ "cursor": text }));
            let answer = self.peer.request(method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }

    async fn list(&mut self, params: Value) -> Value {
        let answer = self.peer.request("tools/list", modern(params)).await;
        self.marks.note_message(&answer);
        if let Some(cursor) = answer["result"]["nextCursor"].as_str() {
            self.given.insert(cursor.to_owned());
        }
        answer
    }
}

fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().expect("a page has tools");
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}
