//! What may go wrong on the way to a token: the step, the request, the answer, the likely cause, the cure.

use std::fmt::Write as _;

use serde_json::json;
use turnbuckle_auth::{self as auth, Step};

use super::Failure;
use crate::output::plain;

impl From<auth::Failure> for Failure {
    fn from(failure: auth::Failure) -> Self {
        (&failure).into()
    }
}

impl From<&auth::Failure> for Failure {
    fn from(failure: &auth::Failure) -> Self {
        let message = message(failure);
        let told = match is_an_answer(failure) {
            true => Self::refused(message),
            false => Self::not_asked(message),
        };
        let told = told.document(json!({
            "error": {
                "message": failure.to_string(),
                "step": id(failure.step()),
                "request": failure.asked(),
                "answer": failure.answered(),
                "cause": failure.reason(),
                "cure": failure.advice(),
            }
        }));
        match failure.advice() {
            Some(cure) => told.hint(cure),
            None => told,
        }
    }
}

/// Says what happened in one line, and below it what was asked and answered.
fn message(failure: &auth::Failure) -> String {
    let mut text = failure.to_string();
    let rows = [("request", failure.asked()), ("answer", failure.answered())];
    for (at, (label, value)) in rows
        .into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .enumerate()
    {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = write!(text, "{gap}\n  {label:<9}{}", plain::line(value));
    }
    text
}

/// Whether whoever gives tokens said no, rather than nobody could be asked.
fn is_an_answer(failure: &auth::Failure) -> bool {
    let step = failure.step();
    let is_asked = matches!(step, Step::Callback | Step::DeviceCode | Step::Token);
    is_asked && failure.answered().is_some()
}

/// Returns the word for a step that programs can rely on.
fn id(step: Step) -> &'static str {
    match step {
        Step::Challenge => "challenge",
        Step::ResourceMetadata => "resource-metadata",
        Step::ServerMetadata => "server-metadata",
        Step::Registration => "registration",
        Step::Authorization => "authorization",
        Step::Callback => "callback",
        Step::DeviceCode => "device-code",
        Step::Assertion => "assertion",
        Step::Token => "token",
        Step::Refresh => "refresh",
        Step::Use => "use",
        Step::Store => "store",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use turnbuckle_auth::fetch::Request;

    use super::*;
    use crate::output::style;

    fn refused() -> Failure {
        let request = Request::get("https://a.example/token?code=sesame");
        let failure = auth::Failure::new(Step::Token, "the code was used before")
            .request(&request)
            .answer("400 invalid_grant\u{1b}[2J")
            .cure("log in again");
        failure.into()
    }

    #[test]
    fn the_step_the_request_the_answer_the_cause_and_the_cure_are_said() {
        insta::assert_snapshot!(style::without(&refused().render()), @r"
        error: authorization failed while getting a token: the code was used before

          request  GET https://a.example/token
          answer   400 invalid_grant\u{1b}[2J

        hint: log in again
        ");
        assert_eq!(refused().exit_code(), ExitCode::from(1));
    }

    #[test]
    fn programs_are_told_the_same() {
        let document = refused().as_document().cloned().unwrap();

        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r#"
        {
          "error": {
            "message": "authorization failed while getting a token: the code was used before",
            "step": "token",
            "request": "GET https://a.example/token",
            "answer": "400 invalid_grant\u001b[2J",
            "cause": "the code was used before",
            "cure": "log in again"
          }
        }
        "#);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let failure = auth::Failure::new(Step::Store, "the disk is full");

        let failure = Failure::from(failure);

        insta::assert_snapshot!(style::without(&failure.render()), @"error: authorization failed while keeping the token: the disk is full");
        assert_eq!(failure.exit_code(), ExitCode::from(2));
    }
}
