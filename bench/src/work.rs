//! What is asked of a server, again and again, to see what one time costs.

use crate::{
    Failure,
    message::{self, Era, Headers},
    wire::Received,
};

/// One kind of request, and how it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What carries it.
    pub transport: Transport,
    /// Which of the two ways of living it uses.
    pub era: Era,
    /// What is asked.
    pub ask: Ask,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One keep-alive connection.
    Http,
    /// Two pipes.
    Stdio,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A call of `echo` with a message of this many bytes.
    Echo(usize),
    /// A call of `add`, whose result has structured content.
    Add,
    /// A call of `steps` by someone who wants to hear of them.
    Steps,
    /// The list of tools, which has this many.
    List(usize),
}

impl Ask {
    /// The arguments that a server program needs to be able to answer.
    pub fn arguments(self) -> Vec<String> {
        match self {
            Ask::Echo(_) | Ask::Add => Vec::new(),
            Ask::Steps => vec!["--more".to_owned()],
            Ask::List(tools) => vec!["--tools".to_owned(), tools.to_string()],
        }
    }
}

/// A kind of request with its text, ready to be sent.
#[derive(Debug)]
pub struct Prepared {
    work: Work,
    arguments: String,
    /// What every answer has in it.
    said: String,
}

impl Prepared {
    /// Writes down what does not change from one request to the next.
    pub fn new(work: Work) -> Prepared {
        let (arguments, said) = match work.ask {
            Ask::Echo(size) => {
                let text = message::text(size);
                (format!(r#"{{"message":"{text}"}}"#), text)
            }
            Ask::Add => (
                r#"{"a":1,"b":2}"#.to_owned(),
                r#""structuredContent""#.into(),
            ),
            Ask::Steps => (String::new(), r#""done""#.to_owned()),
            Ask::List(tools) => match tools.checked_sub(3) {
                Some(last) => (String::new(), format!(r#""tool-{last:03}""#)),
                None => (String::new(), r#""echo""#.to_owned()),
            },
        };
        Prepared {
            work,
            arguments,
            said,
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

    /// Returns the `name: value` pairs that MCP wants on it over HTTP.
    pub fn headers<'a>(&'a self, session: Option<&'a str>) -> Headers<'a> {
        match self.tool() {
            None => message::list_headers(self.work.era, session),
            Some(tool) => message::call_headers(self.work.era, tool, session),
        }
    }

    /// Checks what came back for the request with this id.
    pub fn check(&self, id: u64, received: &Received) -> Result<(), Failure> {
        let answer = &received.answer;
        if !(answer.contains(&self.said) && answer.contains(&id.to_string())) {
            return Err(format!("wrong answer to request {id}: {answer:.300}").into());
        }
        match (self.work.ask, received.notifications) {
            (Ask::Steps, 3) => Ok(()),
            (Ask::Steps, other) => Err(format!("{other} steps were reported, not 3").into()),
            _ => Ok(()),
        }
    }

    fn tool(&self) -> Option<&'static str> {
        match self.work.ask {
            Ask::Echo(_) => Some("echo"),
            Ask::Add => Some("add"),
            Ask::Steps => Some("steps"),
            Ask::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(ask: Ask) -> Prepared {
        Prepared::new(Work {
            transport: Transport::Http,
            era: Era::Modern,
            ask,
        })
    }

    fn received(answer: &str, notifications: usize) -> Received {
        Received {
            answer: answer.to_owned(),
            notifications,
        }
    }

    #[test]
    fn every_request_is_one_json_object_with_its_id() {
        for ask in [Ask::Echo(50), Ask::Add, Ask::Steps, Ask::List(100)] {
            let body = prepared(ask).body(70);

            let value: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(value["id"], 70, "{body}");
        }
    }

    #[test]
    fn an_answer_to_another_request_or_without_its_steps_is_wrong() {
        let steps = prepared(Ask::Steps);

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
    fn a_list_is_whole_only_with_its_last_tool() {
        let list = prepared(Ask::List(100));

        assert!(list.check(7, &received(r#"7 "tool-097""#, 0)).is_ok());
        assert!(list.check(7, &received(r#"7 "tool-096""#, 0)).is_err());
    }
}
