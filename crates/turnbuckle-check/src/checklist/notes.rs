//! Lines whose requirements no rule judges by itself.

use super::Note;

/// For a permission: nothing is wrong with a peer that does not use it, so only how it is used is judged.
const PERMISSION: &str =
    "It is a permission: a peer that does not use it breaks nothing. How it is used is judged.";

const fn judged_by(line: &'static str, rules: &'static [&'static str]) -> Note {
    Note {
        line,
        rules,
        reason: "",
    }
}

const fn permission(line: &'static str, rules: &'static [&'static str]) -> Note {
    Note {
        line,
        rules,
        reason: PERMISSION,
    }
}

const fn partly(line: &'static str, rules: &'static [&'static str], reason: &'static str) -> Note {
    Note {
        line,
        rules,
        reason,
    }
}

const fn unseen(line: &'static str, reason: &'static str) -> Note {
    partly(line, &[], reason)
}

pub(super) const NOTES: &[Note] = &[
    judged_by(
        "1/0",
        &[
            "base.same-id",
            "base.unknown-method",
            "shapes.envelope",
            "client.base.json-rpc",
            "client.base.same-id",
        ],
    ),
    judged_by(
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
        "A client is checked on the transport that its command line names; whether it could speak stdio and does not is \
         its own matter.",
    ),
    partly(
        "2.1/2",
        &["stdio.only-messages", "stdio.answers-before-leaving"],
        "A server that reads or writes elsewhere cannot be spoken to, so no revision of it is checked.",
    ),
    partly(
        "2.1/5",
        &["stdio.only-messages"],
        "It is a permission; that log text does not go to standard output instead is judged.",
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
        "It is a permission of both sides: a stream that ends and one that stays are both right.",
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
        "It is a permission; a server on a socket (`unix:PATH`) is checked like one on stdio.",
    ),
    partly(
        "2.3/2",
        &["shapes.envelope", "stdio.only-messages"],
        "Of custom transports only sockets with a line for each message can be checked.",
    ),
    partly(
        "2.3/3",
        &[
            "lifecycle.unknown-version",
            "lifecycle.waits-for-initialized",
            "shapes.initialize",
        ],
        "Of custom transports only sockets with a line for each message can be checked.",
    ),
    unseen("2.3/4", "Documentation is not part of any message."),
    judged_by(
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
        "The server sees its input end, whether the client closed it, ended itself, or is about to kill the process.",
    ),
    unseen(
        "3.4/3",
        "It is a permission; nothing in a message tells why a server closed its output.",
    ),
    unseen(
        "3.4/4",
        "A server cannot be told to shut down by HTTP, and the connections of a client close when its process ends, \
         whatever it meant to do.",
    ),
    unseen(
        "4.1/1",
        "How long a peer waits is its own choice; to see a timeout one would have to wait longer than any.",
    ),
    unseen(
        "4.1/2",
        "It shows only after a timeout, whose length is the peer's own choice; a rule would blame peers that are patient.",
    ),
    unseen(
        "4.1/3",
        "It is about the programming interface of the peer, not about its messages.",
    ),
    unseen(
        "4.1/4",
        "It is a permission, and shows only after a timeout whose length is the peer's own choice.",
    ),
    unseen(
        "4.1/5",
        "It shows only after a maximum whose length is the peer's own choice.",
    ),
    judged_by(
        "4.2/1",
        &[
            "lifecycle.unknown-version",
            "lifecycle.unsupported-version",
            "client.lifecycle.leaves-unknown-version",
        ],
    ),
    judged_by(
        "4.2/2",
        &[
            "input.only-declared",
            "lifecycle.undeclared-refused",
            "client.lifecycle.capabilities",
        ],
    ),
    unseen(
        "4.2/3",
        "It shows only after a timeout, whose length is the peer's own choice.",
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
    permission("5.2/2", &["origins.preflight", "origins.stranger-refused"]),
    unseen(
        "5.2/3",
        "Only a server whose connections are exhausted would show it, and a check does no harm to a server.",
    ),
    judged_by(
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
        "Where a process takes credentials from is seen by nobody but itself.",
    ),
    unseen(
        "6.1/3",
        "It binds the authorization server, which is another program; a check speaks only to the server it was given.",
    ),
    partly(
        "6.1/4",
        &[],
        "Of the client it is judged; the authorization server is another program, and a check speaks only to the server \
         it was given.",
    ),
    unseen(
        "6.1/6",
        "It binds the authorization server, which is another program; a check speaks only to the server it was given.",
    ),
    unseen(
        "6.3/2",
        "It takes a valid token that was issued for another server, which a check does not have.",
    ),
    unseen(
        "6.3/3",
        "What a server sends to others is seen by those others only.",
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
        "What a peer presumes does not show; that it copes with values it does not know does.",
    ),
];
