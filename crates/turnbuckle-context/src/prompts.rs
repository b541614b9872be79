//! Prompts: ways to begin, with what is remembered already in them.

mod overview;

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use turnbuckle_protocol::types::{ContentBlock, PromptMessage};
use turnbuckle_server::{Completing, Context, Messages, Prompt, RequestError};

use crate::answer::{one_line, time, visible};
use crate::desk::Desk;
use crate::failure::for_reader;
use crate::known::KnownItem;
use crate::memory::{self, Item, Kind, MemoryQuery};
use crate::resources::{self, complete_id, complete_project, complete_skill};
use crate::{ContextError, Database, Owner};

/// Earlier checkpoints that are named beside the one to resume.
const EARLIER: usize = 5;
/// The longest error message, in bytes.
const MOST_ERROR: usize = 16 * 1024;
/// Known fixes that are shown beside a new one.
const KNOWN_FIXES: usize = 3;

/// All prompts of the context server.
pub(crate) fn all(desk: &Desk) -> Vec<Prompt> {
    vec![
        prompt(desk, "resume_work", resume_work)
            .title("Resume work")
            .description("Goes on where the last checkpoint of a project stopped")
            .complete("checkpoint", completer(desk, Completes::Checkpoints)),
        prompt(desk, "record_fix", record_fix)
            .title("Record a fix")
            .description("Keeps how an error was solved, beside what is known of it"),
        prompt(desk, "explain_repository", explain_repository)
            .title("Explain a repository")
            .description("Begins a tour of a repository from its index"),
    ]
}

fn prompt<A: DeserializeOwned + JsonSchema + Send + 'static>(
    desk: &Desk,
    name: &'static str,
    write: fn(&Desk, &Owner, A) -> Result<Vec<PromptMessage>, ContextError>,
) -> Prompt {
    let at = desk.clone();
    let make = move |args: A, cx: Context| {
        let desk = at.clone();
        async move {
            let owner = desk.owner(&cx).map_err(for_user)?;
            let whose = owner.clone();
            let write = move |desk: &Desk| write(desk, &whose, args);
            let messages = desk.block_read(&owner, write).await;
            messages.map(Messages::new).map_err(for_user)
        }
    };
    Prompt::new(name, make)
        .complete("project_path", completer(desk, Completes::Projects))
        .complete("skill", completer(desk, Completes::Skills))
}

/// What the user of a prompt is told: what is missing is something that they named.
fn for_user(error: ContextError) -> RequestError {
    match error {
        ContextError::Missing(_) => RequestError::invalid(error.to_string()),
        error => for_reader(error),
    }
}

#[derive(Clone, Copy)]
enum Completes {
    Projects,
    Checkpoints,
    Skills,
}

type Completed = std::pin::Pin<Box<dyn Future<Output = Result<Vec<String>, RequestError>> + Send>>;

fn completer(
    desk: &Desk,
    what: Completes,
) -> impl Fn(Completing, Context) -> Completed + Send + Sync + 'static {
    let desk = Arc::new(desk.clone());
    move |typed, cx| {
        let desk = desk.clone();
        Box::pin(async move {
            match what {
                Completes::Projects => complete_project(&desk, typed, &cx).await,
                Completes::Checkpoints => complete_id(&desk, Kind::Checkpoint, typed, &cx).await,
                Completes::Skills => complete_skill(&desk, typed, &cx).await,
            }
        })
    }
}

#[derive(Deserialize, JsonSchema)]
struct ResumeWork {
    /// Absolute path of the project.
    project_path: String,
    /// Id of the checkpoint; the newest by default.
    checkpoint: Option<String>,
    /// A saved skill to work by.
    skill: Option<String>,
}

fn resume_work(
    desk: &Desk,
    owner: &Owner,
    args: ResumeWork,
) -> Result<Vec<PromptMessage>, ContextError> {
    let (project, database) = desk.look(owner, &args.project_path)?;
    let root = project.root().to_string_lossy().into_owned();
    let newest = match &database {
        Some(database) => memory::list(database, Kind::Checkpoint, EARLIER + 1, None)?.items,
        None => Vec::new(),
    };
    let chosen = match given(args.checkpoint) {
        Some(id) => Some(checkpoint(database.as_deref(), &id)?),
        None => {
            let mut here = newest.iter().filter(|item| item.branch == project.branch());
            here.next().or(newest.first()).cloned()
        }
    };
    let (branch, shown_root) = (visible(project.branch()), visible(&root));
    let Some(chosen) = chosen else {
        return Ok(vec![PromptMessage::user(format!(
            "Begin work in {shown_root} (branch {branch}). No checkpoint was saved here yet: look at the repository, \
             ask what is to be done, and save a checkpoint with checkpoint_save when something is done."
        ))]);
    };
    let mut text = format!(
        "Resume the work in {shown_root} (branch {branch}). It stopped at the checkpoint below, saved {} on branch {}. \
         First see what has changed since then. Say in a few sentences where the work stands and what is next, \
         then go on. Save a checkpoint with checkpoint_save when something is done.",
        time(chosen.updated),
        visible(&chosen.branch),
    );
    let mut earlier = newest.iter().filter(|item| item.id != chosen.id).peekable();
    if earlier.peek().is_some() {
        text.push_str("\n\nOther checkpoints, to be read at checkpoint://<id>:");
    }
    for item in earlier.take(EARLIER) {
        let title = one_line(desk.clean(item.clone()).headline(), 120);
        let _ = write!(
            text,
            "\n- {} {} [{}] {title}",
            item.id,
            time(item.updated),
            visible(&item.branch)
        );
    }
    let mut messages = vec![
        PromptMessage::user(text),
        embedded(desk, chosen, Some(root)),
    ];
    messages.extend(skill(desk, owner, args.skill)?);
    Ok(messages)
}

#[derive(Deserialize, JsonSchema)]
struct RecordFix {
    /// The error as it was shown.
    error_msg: String,
    /// Absolute path of the project; without it the fix is for all projects.
    project_path: Option<String>,
}

fn record_fix(
    desk: &Desk,
    owner: &Owner,
    args: RecordFix,
) -> Result<Vec<PromptMessage>, ContextError> {
    if args.error_msg.len() > MOST_ERROR {
        return Err(ContextError::refused(format!(
            "`error_msg` has {} bytes, and {MOST_ERROR} are allowed; keep the lines that name the error",
            args.error_msg.len()
        )));
    }
    let project = given(args.project_path);
    let mut databases: Vec<_> = desk.library().known_shared(owner)?.into_iter().collect();
    let shared = databases.len();
    let mut place = "leave project_path out, so that all projects share it".to_owned();
    let mut root = None;
    if let Some(path) = project {
        let (project, database) = desk.look(owner, &path)?;
        databases.extend(database);
        let path = project.root().to_string_lossy().into_owned();
        place = format!("project_path is {}", visible(&path));
        root = Some(path);
    }
    let query = MemoryQuery {
        limit: KNOWN_FIXES,
        half_life: desk.half_life(),
        ..MemoryQuery::new(Kind::Remediation, &args.error_msg)
    };
    let searched: Vec<&Database> = databases.iter().map(|one| &**one).collect();
    let known = memory::search(&searched, &query)?;
    let error = desk.redactor().redact(&args.error_msg).text;
    let mut text = format!(
        "This error was solved in our conversation:\n\n```\n{error}\n```\n\n\
         Save the fix with remediation_save ({place}): the error as it is shown, without what differs from case to \
         case; the cause and the steps that solved it, so that someone who was not here can follow them; in context \
         when it happens. Save only what was proven to work."
    );
    if !known.is_empty() {
        text.push_str(
            "\n\nBelow is what is known of errors like it. If one says the same, save nothing.",
        );
    }
    let mut messages = vec![PromptMessage::user(text)];
    messages.extend(known.into_iter().map(|hit| {
        let root = root.clone().filter(|_| hit.source >= shared);
        embedded(desk, hit.item, root)
    }));
    Ok(messages)
}

#[derive(Deserialize, JsonSchema)]
struct ExplainRepository {
    /// Absolute path of the repository.
    project_path: String,
    /// What it is about: a feature, a folder, a question.
    focus: Option<String>,
    /// A saved skill to work by.
    skill: Option<String>,
}

fn explain_repository(
    desk: &Desk,
    owner: &Owner,
    args: ExplainRepository,
) -> Result<Vec<PromptMessage>, ContextError> {
    let (project, database) = desk.look(owner, &args.project_path)?;
    let root = project.checkout().to_string_lossy();
    let mut text = format!(
        "Explain the repository {} (branch {}).",
        visible(&root),
        visible(project.branch())
    );
    match given(args.focus) {
        Some(focus) => {
            let _ = write!(text, " It is about this above all: {focus}");
        }
        None => text.push_str(
            " Say what it is for, how it is built, which parts there are and how they work together, and where a \
             newcomer begins to read.",
        ),
    }
    text.push_str(" Find the places with repository_search, read them, and name files and lines for what you say.");
    let overview =
        database.map(|database| overview::of(desk.library(), &database, project.folder()));
    match overview.transpose()?.flatten() {
        Some(overview) => {
            let _ = write!(text, "\n\n{}", desk.redactor().redact(&overview).text);
        }
        None => text.push_str("\n\nIt is not indexed yet: call index_repository first."),
    }
    let mut messages = vec![PromptMessage::user(text)];
    messages.extend(skill(desk, owner, args.skill)?);
    Ok(messages)
}

/// An argument that was given: forms send what was left empty.
fn given(argument: Option<String>) -> Option<String> {
    argument.filter(|text| !text.trim().is_empty())
}

fn checkpoint(database: Option<&Database>, id: &str) -> Result<Item, ContextError> {
    let found = database.map(|database| memory::find(database, id));
    let found = found.transpose()?.flatten();
    let found = found.filter(|item| item.kind == Kind::Checkpoint);
    found.ok_or_else(|| {
        ContextError::missing(format!("checkpoint `{}` in this project", one_line(id, 80)))
    })
}

/// The skill to work by, if one was named.
fn skill(
    desk: &Desk,
    owner: &Owner,
    name: Option<String>,
) -> Result<Option<PromptMessage>, ContextError> {
    let Some(name) = given(name) else {
        return Ok(None);
    };
    let shared = desk.library().known_shared(owner)?;
    let found = shared.map(|shared| memory::find_skill(&shared, &name));
    let found = found.transpose()?.flatten();
    let found =
        found.ok_or_else(|| ContextError::missing(format!("skill `{}`", one_line(&name, 80))))?;
    Ok(Some(embedded(desk, found, None)))
}

/// An item as part of a conversation.
fn embedded(desk: &Desk, item: Item, root: Option<String>) -> PromptMessage {
    let item = desk.clean(item);
    PromptMessage::user(ContentBlock::resource(resources::contents(&KnownItem {
        item,
        root,
    })))
}
