//! Compares the table of methods with an independent one.

use turnbuckle_protocol::{
    Revision,
    method::{Method, MethodDirection, MethodKind},
};

/// Method, then the sender in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28: `>` the client, `<` the
/// server, `=` either, `i` inside a result, `.` none.
const TABLE: &str = "
initialize > > > > .
ping = = = = .
server/discover . . . . >
subscriptions/listen . . . . >
tools/list > > > > >
tools/call > > > > >
resources/list > > > > >
resources/templates/list > > > > >
resources/read > > > > >
resources/subscribe > > > > .
resources/unsubscribe > > > > .
prompts/list > > > > >
prompts/get > > > > >
completion/complete > > > > >
logging/setLevel > > > > .
sampling/createMessage < < < < i
roots/list < < < < i
elicitation/create . . < < i
tasks/get . . . = >
tasks/cancel . . . = >
tasks/result . . . = .
tasks/list . . . = .
tasks/update . . . . >
notifications/initialized > > > > .
notifications/cancelled = = = = =
notifications/progress = = = = <
notifications/message < < < < <
notifications/tools/list_changed < < < < <
notifications/prompts/list_changed < < < < <
notifications/resources/list_changed < < < < <
notifications/resources/updated < < < < <
notifications/roots/list_changed > > > > .
notifications/elicitation/complete . . . < .
notifications/tasks/status . . . = .
notifications/tasks . . . . <
notifications/subscriptions/acknowledged . . . . <
";

#[test]
fn the_table_has_sender_and_revisions_of_every_method() {
    let rows: Vec<Vec<_>> = TABLE
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split(' ').collect())
        .collect();

    assert_eq!(rows.len(), Method::ALL.len());
    for row in rows {
        let method = Method::from_name(row[0]).unwrap();
        assert_eq!(method.name, row[0]);
        for (revision, sign) in Revision::ALL[1..].iter().zip(&row[1..]) {
            let expected = match *sign {
                ">" => Some(MethodDirection::ToServer),
                "<" => Some(MethodDirection::ToClient),
                "=" => Some(MethodDirection::Both),
                "i" => Some(MethodDirection::InResult),
                _ => None,
            };
            assert_eq!(
                method.direction(*revision),
                expected,
                "{} {revision}",
                row[0]
            );
        }
        // The oldest revision is handled like the one after it.
        assert_eq!(
            method.direction(Revision::V2024_10_07),
            method.direction(Revision::V2024_11_05)
        );
    }
}

#[test]
fn every_method_is_found_by_its_name() {
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name), Some(method));
        let is_notification = method.name.starts_with("notifications/");
        assert_eq!(method.kind == MethodKind::Notification, is_notification);
    }
    for name in [
        "",
        "tools",
        "tools/Call",
        "tools/call ",
        "completions/complete",
    ] {
        assert_eq!(Method::from_name(name), None, "{name}");
    }
}

#[test]
fn traits_of_methods_are_those_of_the_specification() {
    let named = |wanted: fn(&Method) -> bool| -> Vec<_> {
        let methods = Method::ALL.iter().filter(|method| wanted(method));
        methods.map(|method| method.name).collect()
    };

    assert_eq!(
        named(|method| method.allows_input_requests),
        ["tools/call", "resources/read", "prompts/get"]
    );
    assert_eq!(
        named(|method| method.paginated),
        [
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "tasks/list"
        ]
    );
    assert_eq!(
        named(|method| method.name_member == Some("name")),
        ["tools/call", "prompts/get"]
    );
    assert_eq!(
        named(|method| method.name_member == Some("uri")),
        ["resources/read"]
    );
    assert_eq!(
        named(|method| method.name_member == Some("taskId")),
        ["tasks/get", "tasks/cancel", "tasks/update"]
    );
}
