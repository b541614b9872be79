//! Notices when a tool is not what it was, and asks before it is called.
//!
//! Whoever uses a tool has seen what it says of itself. What it said when it was first seen is remembered for each
//! server, as digests; the server has no say in which server it is taken for.

mod memory;

use std::io;

use clap::ValueEnum as _;
use turnbuckle_protocol::types::Tool;

use crate::context::Context;
use crate::failure::{Failure, Result, warning};
use crate::form::{Ended, Talk};
use crate::output::{plain, style};
use crate::questions::Questions;
use crate::servers;
use crate::state;
use crate::target::Target;
use memory::{Changed, Memory};

/// So many tools are named that have changed.
const NAMED: usize = 10;

/// The tools of a server, as they are remembered.
pub(crate) struct KnownTools<'a> {
    target: &'a Target,
    context: &'a Context,
    memory: Memory,
}

impl<'a> KnownTools<'a> {
    /// Remembers the tools of a server.
    pub(crate) fn of(target: &'a Target, context: &'a Context) -> Self {
        let folder = state::folder(&context.environment);
        Self {
            target,
            context,
            memory: Memory::new(folder, &identity(target, context)),
        }
    }

    /// Says whether a tool was seen before.
    pub(crate) fn knows(&self, tool: &str) -> bool {
        self.memory.read().knows(tool)
    }

    /// Tells the user, once, which tools of a list have changed. With `--yes` they agree.
    pub(crate) fn look_at(&self, tools: &[Tool]) {
        let changed = self.update(|known| {
            let mut changed = Vec::new();
            let mut names = std::collections::HashSet::new();
            // Of two with the same name, the first is the one that is called.
            for tool in tools.iter().filter(|tool| names.insert(&tool.name)) {
                changed.extend(known.see(tool).filter(|changed| !changed.told));
                if self.context.options.yes {
                    known.agree(tool);
                }
            }
            changed
        });
        if !changed.is_empty() {
            self.context.voice.say(&warning(&notice(&changed)));
        }
    }

    /// Makes sure that the user wants to call a tool, if it has changed since they agreed to it.
    pub(crate) async fn ensure(&self, tool: &Tool, shown: &str) -> Result {
        let Some(changed) = self.update(|known| known.see(tool)) else {
            return Ok(());
        };
        if self.context.options.yes {
            self.context.voice.say(&warning(&sentence(&changed)));
        } else if self.context.environment.terminal.asks {
            self.ask(&changed, shown).await?;
        } else {
            return Err(self.no_terminal(&changed));
        }
        self.update(|known| known.agree(tool));
        Ok(())
    }

    async fn ask(&self, changed: &Changed, shown: &str) -> Result {
        let questions = Questions::new(self.target.label(), true, self.context.voice.clone());
        let (shown, sentence) = (style::without(shown), sentence(changed));
        let agreed = questions.at_terminal(move |talk| agrees(&shown, &sentence, talk));
        match agreed.await {
            Some(true) => Ok(()),
            _ => Err(Failure::not_asked(format!(
                "`{}` was not called",
                changed.tool
            ))),
        }
    }

    fn no_terminal(&self, changed: &Changed) -> Failure {
        let message = format!(
            "{}; there is no terminal to ask whether to call it",
            sentence(changed)
        );
        let look = self.target.command_line("tools", &changed.tool);
        Failure::not_asked(message).hint(format!("look at it with `{look}`, then use `--yes`"))
    }

    /// Changes what is remembered; a command does what it should without, too.
    fn update<T>(&self, change: impl FnOnce(&mut memory::Tools) -> T) -> T {
        let (outcome, written) = self.memory.update(change);
        if let Err(error) = written
            && self.context.options.verbose
        {
            let message = format!("the tools cannot be remembered: {error}");
            self.context.voice.aside("*", &message);
        }
        outcome
    }
}

fn agrees(shown: &str, sentence: &str, talk: &mut Talk<'_>) -> io::Result<bool> {
    let mut answer = || {
        talk.quote(shown)?;
        talk.say(&format!("{}\n", plain::line(sentence)))?;
        loop {
            let prompt = style::paint(style::NAME, "Call it?");
            match talk
                .ask(&format!("{prompt} [y/n] "))?
                .to_lowercase()
                .as_str()
            {
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    };
    match answer() {
        Err(Ended::Io(error)) => Err(error),
        Err(Ended::Declined | Ended::Cancelled) => Ok(false),
        Ok(agreed) => Ok(agreed),
    }
}

fn notice(changed: &[Changed]) -> String {
    if let [changed] = changed {
        return sentence(changed);
    }
    let mut text = format!("{} tools have changed", changed.len());
    for changed in &changed[..changed.len().min(NAMED)] {
        text += &format!("\n  {}: {}", plain::line(&changed.tool), members(changed));
    }
    if changed.len() > NAMED {
        text += &format!("\n  and {} more", changed.len() - NAMED);
    }
    text
}

fn sentence(changed: &Changed) -> String {
    let tool = plain::line(&changed.tool);
    let members = members(changed);
    format!("`{tool}` has changed: {members}")
}

fn members(changed: &Changed) -> String {
    let word = |member: &&'static str| match *member {
        "inputSchema" => "input schema",
        "outputSchema" => "output schema",
        other => other,
    };
    let words: Vec<_> = changed.members.iter().map(word).collect();
    words.join(", ")
}

/// Returns what stands for a server: how the user named it, and the era they want it to speak, in which tools may be
/// described in another way.
fn identity(target: &Target, context: &Context) -> String {
    let environment = &context.environment;
    let lossy = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut words = match target {
        Target::Url(url) => vec!["url".to_owned(), url.clone()],
        Target::Unix(path) => vec!["unix".to_owned(), lossy(&environment.cwd.join(path))],
        // The same words may start another program in another folder.
        Target::Command(words) => {
            let place = ["command".to_owned(), lossy(&environment.cwd)];
            place.into_iter().chain(words.iter().cloned()).collect()
        }
        Target::Named(name) => {
            let found = servers::find(environment, context.options.config.as_deref());
            match found.pick(name) {
                Some(server) => vec!["named".to_owned(), lossy(&server.file), server.name.clone()],
                None => vec!["named".to_owned(), name.clone()],
            }
        }
    };
    let era = context.options.era.to_possible_value();
    words.extend(era.map(|era| era.get_name().to_owned()));
    state::digest(words.iter().map(String::as_str))
}

#[cfg(test)]
mod tests;
