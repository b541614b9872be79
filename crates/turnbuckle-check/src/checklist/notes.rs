//! Notes for checklist lines that no rule covers by their requirements.

use super::LineNote;

/// The reason for optional features: only their use is tested.
const PERMISSION: &str = "Optional: a peer that does not use it complies. Its use is tested.";

const fn covered_by(line: &'static str, rules: &'static [&'static str]) -> LineNote {
    LineNote {
        line,
        rules,
        reason: "",
    }
}

const fn permission(line: &'static str, rules: &'static [&'static str]) -> LineNote {
    LineNote {
        line,
        rules,
        reason: PERMISSION,
    }
}

const fn partly(
    line: &'static str,
    rules: &'static [&'static str],
    reason: &'static str,
) -> LineNote {
    LineNote {
        line,
        rules,
        reason,
    }
}

const fn unseen(line: &'static str, reason: &'static str) -> LineNote {
    partly(line, &[], reason)
}

pub(super) const NOTES: &[LineNote] = &[
    covered_by(
        "1/0",
        &[
            "base.same-id",
            "base.unknown-method",
            "shapes.envelope",
            "client.base.json-rpc",
            "client.base.same-id",
        ],
    ),
    covered_by(
        "1.2/4",
        &[
            "shapes.requests",
            "shapes.notifications",
            "client.base.params-object",
        ],
    ),
    partly(
        "2.1/1",
        &["client.stdio.only-messages"],
        "A client is checked on the transport that its command line selects; support for stdio cannot be observed.",
    ),
    partly(
        "2.1/2",
        &["stdio.only-messages", "stdio.answers-before-leaving"],
        "A server that uses other streams cannot be reached, so no revision of it is checked.",
    ),
    partly(
        "2.1/5",
        &["stdio.only-messages"],
        "Optional; a rule tests that log text does not go to standard output.",
    ),
    permission(
        "2.2.1/7",
        &["streams.own-messages-only", "streams.answer-comes"],
    ),
    permission("2.2.2/1", &["http.get", "client.http.get-accept"]),
    permission(
        "2.2.2/4",
        &["streams.get-without-answers", "streams.each-message-once"],
    ),
    unseen(
        "2.2.2/6",
        "Optional for both sides: a stream may end or stay open.",
    ),
    permission(
        "2.2.3/1",
        &["streams.each-message-once", "base.many-at-once"],
    ),
    permission("2.2.4/1", &["streams.event-ids-unique", "streams.primed"]),
    permission(
        "2.2.4/4",
        &["streams.replay-own", "streams.survive-disconnection"],
    ),
    permission(
        "2.2.5/1",
        &["sessions.id-visible", "sessions.id-unpredictable"],
    ),
    permission("2.2.5/9", &["sessions.delete"]),
    unseen(
        "2.3/1",
        "Optional; a server on a socket (`unix:PATH`) is checked like one on stdio.",
    ),
    partly(
        "2.3/2",
        &["shapes.envelope", "stdio.only-messages"],
        "Of custom transports, only sockets with newline-delimited JSON can be checked.",
    ),
    partly(
        "2.3/3",
        &[
            "lifecycle.unknown-version",
            "lifecycle.waits-for-initialized",
            "shapes.initialize",
        ],
        "Of custom transports, only sockets with newline-delimited JSON can be checked.",
    ),
    unseen("2.3/4", "Documentation is not part of any message."),
    covered_by(
        "3/0",
        &[
            "shapes.initialize",
            "lifecycle.unknown-version",
            "client.lifecycle.initialize-first",
            "client.lifecycle.initialized",
        ],
    ),
    unseen(
        "3.4/2",
        "The server sees the end of its input in all cases: closed by the client, client exited, or about to be killed.",
    ),
    unseen(
        "3.4/3",
        "Optional; no message shows why a server closed its output.",
    ),
    unseen(
        "3.4/4",
        "HTTP does not define a shutdown request for servers, and a client's connections close when its process ends.",
    ),
    unseen(
        "4.1/1",
        "The timeout is chosen by the peer; a test would have to wait longer than any of them.",
    ),
    unseen(
        "4.1/2",
        "Observable only after a timeout that the peer chooses; a rule would fail peers with long timeouts.",
    ),
    unseen(
        "4.1/3",
        "This concerns the programming interface of the peer, not its messages.",
    ),
    unseen(
        "4.1/4",
        "Optional, and observable only after a timeout that the peer chooses.",
    ),
    unseen(
        "4.1/5",
        "Observable only after a maximum duration that the peer chooses.",
    ),
    covered_by(
        "4.2/1",
        &[
            "lifecycle.unknown-version",
            "lifecycle.unsupported-version",
            "client.lifecycle.leaves-unknown-version",
        ],
    ),
    covered_by(
        "4.2/2",
        &[
            "input.only-declared",
            "lifecycle.undeclared-refused",
            "client.lifecycle.capabilities",
        ],
    ),
    unseen(
        "4.2/3",
        "Observable only after a timeout that the peer chooses.",
    ),
    permission(
        "5.1/4",
        &[
            "streams.primed",
            "streams.event-ids-unique",
            "streams.survive-disconnection",
        ],
    ),
    permission(
        "5.1/5",
        &["streams.replay-own", "streams.survive-disconnection"],
    ),
    permission("5.2/2", &["origins.preflight", "origins.stranger-refused"]), // quoted
    unseen(
        "5.2/3",
        "Observable only on a server without free connections; a check does not overload servers.",
    ),
    covered_by(
        "6.1/1",
        &[
            "authorization.missing-401",
            "authorization.challenge",
            "authorization.metadata",
            "authorization.metadata-servers",
            "client.auth.resource-metadata",
            "client.auth.server-metadata",
            "client.auth.token-always",
        ],
    ),
    unseen(
        "6.1/2",
        "The source of a process's credentials cannot be observed.",
    ),
    unseen(
        "6.1/3",
        "This applies to the authorization server; a check only contacts the server under test.",
    ),
    partly(
        "6.1/4",
        &[],
        "Tested for clients; a check does not contact the authorization server of a server under test.",
    ),
    unseen(
        "6.1/6",
        "This applies to the authorization server; a check only contacts the server under test.",
    ),
    unseen(
        "6.3/2",
        "This needs a valid token issued for another server.",
    ),
    unseen(
        "6.3/3",
        "Requests of a server to third parties cannot be observed.",
    ),
    permission(
        "7.5/3",
        &[
            "progress.known-token",
            "progress.increases",
            "progress.ends-with-answer",
        ],
    ),
    partly(
        "8.1/1",
        &["base.foreign-meta"],
        "Assumptions of a peer cannot be observed; its handling of unknown values can.",
    ),
];
