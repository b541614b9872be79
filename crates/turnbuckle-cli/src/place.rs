//! Where a server is: at a URL, behind a socket, or in a program that is started once the user agreed.

use std::io;
use std::path::Path;

use turnbuckle_client as client;
use turnbuckle_client::http::Http;
use turnbuckle_client::stdio::Child;
use turnbuckle_client::unix::Unix;

use crate::context::Context;
use crate::credentials;
use crate::failure::{Failure, Result, warning};
use crate::output::plain;
use crate::servers::{self, Entry, Remote, Server, Start};
use crate::target::Target;
use crate::trust::{self, Asking};

/// Where a server is.
pub(crate) enum Place {
    /// At a URL.
    Web(Remote),
    /// On this machine, where nobody asks who we are.
    Here(client::Target),
}

impl Place {
    /// Says whether somebody has decided already what the server is told of us.
    pub(crate) fn names_us(&self) -> bool {
        match self {
            Self::Web(remote) => remote.names_us(),
            Self::Here(_) => false,
        }
    }
}

/// Finds out where a server is.
pub(crate) fn find(target: &Target, context: &Context) -> Result<Place> {
    let place = match target {
        Target::Url(url) => Place::Web(Remote::at(url)),
        Target::Unix(path) => Place::Here(Unix::new(context.environment.cwd.join(path)).into()),
        Target::Command(words) => {
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| Failure::not_asked("there is no command behind `--`"))?;
            // A user who types a command expects it to see the whole environment, like any other command.
            let child = Child::new(program).args(arguments).inherit_all_env();
            Place::Here(listened(child, context).into())
        }
        Target::Named(name) => configured(name, context)?,
    };
    match place {
        Place::Web(remote) => Ok(Place::Web(with_given(remote, context)?)),
        Place::Here(place) => {
            credentials::ensure_none(context)?;
            Ok(Place::Here(place))
        }
    }
}

fn configured(name: &str, context: &Context) -> Result<Place> {
    let environment = &context.environment;
    let found = servers::find(environment, context.options.config.as_deref());
    for message in &found.warnings {
        context.voice.say(&warning(message));
    }
    let server = found.pick(name).ok_or_else(|| {
        Failure::not_asked(format!("no server `{name}` is configured"))
            .hint("`turnbuckle servers` lists those that are; a program is started by `-- PROGRAM`")
    })?;
    let entry = server.resolve(environment).map_err(|error| {
        let file = server.file.display();
        let message = format!("`{name}` of {file} cannot be used: {error}");
        Failure::not_asked(plain::line(&message))
    })?;
    // Before anything of the command line or of a login can be added.
    ensure_trust(server, &entry, context)?;
    Ok(match &entry {
        Entry::Start(start) => Place::Here(configured_child(start, server, context).into()),
        Entry::Remote(remote) => Place::Web(remote.clone()),
    })
}

fn ensure_trust(server: &Server, entry: &Entry, context: &Context) -> Result {
    let mut reader = io::stdin().lock();
    let mut writer = anstream::stderr().lock();
    let asking = match (context.options.yes, context.environment.terminal.asks) {
        (true, _) => Asking::Yes,
        (false, true) => Asking::Terminal(&mut reader, &mut writer),
        (false, false) => Asking::NoTerminal,
    };
    trust::ensure(server, entry, &context.environment, asking)
}

fn configured_child(start: &Start, server: &Server, context: &Context) -> Child {
    // The file that the user agreed to, and not what its name stands for by now.
    let program = start.lookup.program.as_deref();
    let child = Child::new(program.unwrap_or(Path::new(&start.program)))
        .args(&start.arguments)
        .envs(start.variables())
        .current_dir(start.folder(server));
    let child = match context.options.inherit_env {
        true => child.inherit_all_env(),
        false => child,
    };
    listened(child, context)
}

fn listened(child: Child, context: &Context) -> Child {
    let child = child.observer(context.supervisor.clone());
    if !context.options.verbose {
        return child;
    }
    let voice = context.voice.clone();
    child.on_stderr(move |line| voice.aside("!", line))
}

/// Adds the headers of the command line, which count more than those of a configuration.
fn with_given(mut remote: Remote, context: &Context) -> Result<Remote> {
    let given = credentials::headers(context)?;
    let named = |name: &str| {
        let mut given = given.iter();
        given.any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    remote.headers.retain(|(name, _)| !named(name));
    remote.headers.extend(given.iter().cloned());
    Ok(remote)
}

/// Prepares to speak HTTP with a server.
pub(crate) fn http(remote: &Remote, context: &Context) -> Http {
    let headers = &remote.headers;
    if context.options.verbose {
        let shown = headers.iter().map(|(name, _)| format!(", {name}: ***"));
        let shown: String = shown.collect();
        let url = remote.url.split('?').next().unwrap_or(&remote.url);
        context.voice.aside("*", &format!("{url}{shown}"));
    }
    let place = Http::new(&remote.url);
    let place = match remote.sse {
        true => place.only_http_sse(),
        false => place,
    };
    headers.iter().fold(place, |place, (name, value)| {
        place.header(name, value.reveal())
    })
}
