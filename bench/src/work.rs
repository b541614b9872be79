//! The request that is sent to a server repeatedly, to measure the cost of one.

use crate::{
    Failure,
    message::{self, Era, Headers},
    wire::Received,
};

/// A kind of request, and how it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The transport.
    pub transport: Transport,
    /// The era of the request.
    pub era: Era,
    /// The request.
    pub request: RequestKind,
}

/// The transport of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One keep-alive connection.
    Http,
    /// Two pipes.
    Stdio,
}

/// The request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A call of `echo` with a message of this many bytes.
    Echo(usize),
    /// A call of `add`, which has a structured result.
    Add,
    /// A call of `steps` with a progress token.
    Steps,
    /// `tools/list` of a server with this many tools.
    List(usize),
}

impl RequestKind {
    /// Returns the arguments that a server program needs to support this request.
    pub fn arguments(self) -> Vec<String> {
        match self {
            RequestKind::Echo(_) | RequestKind::Add => Vec::new(),
            RequestKind::Steps => vec!["--more".to_owned()],
            RequestKind::List(tools) => vec!["--tools".to_owned(), tools.to_string()],
        }
    }
}

/// A text that a list contains once for each tool.
const LISTED: &str = r#""inputSchema""#;

/// A kind of request with its text, ready to be sent.
#[derive(Debug)]
pub struct Prepared {
    work: Work,
    arguments: String,
    /// A text that every response contains.
    expected_text: String,
}

impl Prepared {
    /// Prepares the parts that are the same in every request.
    pub fn new(work: Work) -> Prepared {
        let (arguments, expected_text) = match work.request {
            RequestKind::Echo(size) => {
                let text = message::text(size);
                (format!(r#"{{"message":"{text}"}}"#), text)
            }
            RequestKind::Add => (
                r#"{"a":1,"b":2}"#.to_owned(),
                r#""structuredContent""#.into(),
            ),
            RequestKind::Steps => (String::new(), r#""done""#.to_owned()),
            RequestKind::List(_) => (String::new(), LISTED.to_owned()),
        };
        Prepared {
            work,
            arguments,
            expected_text,
        }
    }

    /// Returns the request with this id.
    pub fn body(&self, id: u64) -> String {
        let era = self.work.era;
        match self.tool() {
            None => message::list(era, id),
            Some("steps") => message::call_with_progress(era, id, "steps", "{}"),
            Some(tool) => message::call(era, id, tool, &self.arguments),
        }
    }

    /// Returns the `name: value` pairs that MCP requires on it over HTTP.
    pub fn headers<'a>(&'a self, session: Option<&'a str>) -> Headers<'a> {
        match self.tool() {
            None => message::list_headers(self.work.era, session),
            Some(tool) => message::call_headers(self.work.era, tool, session),
        }
    }

    /// Checks the response to the request with this id.
    pub fn check(&self, id: u64, received: &Received) -> Result<(), Failure> {
        let response = &received.response;
        if !(response.contains(&self.expected_text) && response.contains(&id.to_string())) {
            return Err(format!("wrong response to request {id}: {response:.300}").into());
        }
        if let RequestKind::List(tools) = self.work.request {
            let listed = response.matches(LISTED).count();
            if listed != tools {
                return Err(format!("{listed} tools were listed, not {tools}").into());
            }
        }
        match (self.work.request, received.notifications) {
            (RequestKind::Steps, 3) => Ok(()),
            (RequestKind::Steps, other) => {
                Err(format!("{other} steps were reported, not 3").into())
            }
            _ => Ok(()),
        }
    }

    fn tool(&self) -> Option<&'static str> {
        match self.work.request {
            RequestKind::Echo(_) => Some("echo"),
            RequestKind::Add => Some("add"),
            RequestKind::Steps => Some("steps"),
            RequestKind::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(request: RequestKind) -> Prepared {
        Prepared::new(Work {
            transport: Transport::Http,
            era: Era::Modern,
            request,
        })
    }

    fn received(response: &str, notifications: usize) -> Received {
        Received {
            response: response.to_owned(),
            notifications,
        }
    }

    #[test]
    fn every_request_is_one_json_object_with_its_id() {
        for request in [
            RequestKind::Echo(50),
            RequestKind::Add,
            RequestKind::Steps,
            RequestKind::List(100),
        ] {
            let body = prepared(request).body(70);

            let value: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(value["id"], 70, "{body}");
        }
    }

    #[test]
    fn a_response_to_another_request_or_without_its_steps_is_wrong() {
        let steps = prepared(RequestKind::Steps);

        assert!(
            steps
                .check(70, &received(r#"{"id":70,"text":"done"}"#, 3))
                .is_ok()
        );
        assert!(
            steps
                .check(71, &received(r#"{"id":70,"text":"done"}"#, 3))
                .is_err()
        );
        assert!(
            steps
                .check(70, &received(r#"{"id":70,"text":"done"}"#, 2))
                .is_err()
        );
        assert!(steps.check(70, &received(r#"{"id":70}"#, 3)).is_err());
    }

    #[test]
    fn a_list_is_complete_only_with_all_its_tools() {
        let list = prepared(RequestKind::List(2));
        let two = r#"7 [{"inputSchema":{}},{"inputSchema":{}}]"#;

        assert!(list.check(7, &received(two, 0)).is_ok());
        assert!(
            list.check(7, &received(r#"7 [{"inputSchema":{}}]"#, 0))
                .is_err()
        );
    }
}
