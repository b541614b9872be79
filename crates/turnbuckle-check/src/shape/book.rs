//! All that a revision says about its messages: its file, and those that it builds on.

use std::{collections::HashMap, sync::LazyLock};

use turnbuckle_protocol::revision::Revision;

use super::expression::{Member, Shape};
use super::notation::{self, Page};

pub(super) use super::notation::Params;

/// All that a revision says about its messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Whether several messages may be sent as one.
    pub(super) batches: bool,
    requests: HashMap<String, Method>,
    notifications: HashMap<String, Params>,
    errors: HashMap<i64, Shape>,
    shapes: HashMap<String, Shape>,
}

/// What a request is made of.
#[derive(Clone, Debug)]
pub(super) struct Method {
    pub(super) params: Params,
    pub(super) result: Shape,
}

/// The files, in the order in which they build on each other.
const FILES: [(&str, &[&str]); 5] = [
    ("2024-11-05", &[include_str!("2024-11-05.shapes")]),
    ("2025-03-26", &[include_str!("2025-03-26.shapes")]),
    ("2025-06-18", &[include_str!("2025-06-18.shapes")]),
    ("2025-11-25", &[include_str!("2025-11-25.shapes")]),
    (
        "2026-07-28",
        &[
            include_str!("2026-07-28.shapes"),
            include_str!("tasks.shapes"),
        ],
    ),
];

static BOOKS: LazyLock<HashMap<&str, Book>> =
    LazyLock::new(|| write(&FILES).expect("a test reads every file"));

/// Returns what a revision says.
pub(super) fn of(revision: Revision) -> &'static Book {
    let date = match revision {
        // The first draft has no description of its own: it was spoken like the revision that came of it.
        Revision::V2024_10_07 => Revision::V2024_11_05.as_str(),
        revision => revision.as_str(),
    };
    &BOOKS[date]
}

/// Makes a book of each revision.
pub(super) fn write<'a>(files: &[(&'a str, &[&str])]) -> Result<HashMap<&'a str, Book>, String> {
    let mut drafts = HashMap::new();
    for (date, texts) in files {
        let mut book = Book::default();
        for text in *texts {
            let page = notation::read(text).map_err(|why| format!("{date}, {why}"))?;
            if let Some(like) = &page.like {
                let before: Option<&Book> = drafts.get(like.as_str());
                book = before.ok_or(format!("{date}: no {like}"))?.clone();
            }
            book.add(page);
        }
        drafts.insert(*date, book);
    }
    let finished = drafts.into_iter().map(|(date, book)| {
        let book = book.finish().map_err(|why| format!("{date}: {why}"))?;
        Ok((date, book))
    });
    finished.collect()
}

impl Book {
    /// Returns what a request is made of, if its method is known.
    pub(super) fn request(&self, method: &str) -> Option<&Method> {
        self.requests.get(method)
    }

    /// Returns the parameters of a notification, if its method is known.
    pub(super) fn notification(&self, method: &str) -> Option<&Params> {
        self.notifications.get(method)
    }

    /// Returns the data of an error, if its code has some.
    pub(super) fn error(&self, code: i64) -> Option<&Shape> {
        self.errors.get(&code)
    }

    /// Returns the shape of this name. A book that is finished has all that it names.
    pub(super) fn shape(&self, name: &str) -> &Shape {
        self.shapes.get(name).unwrap_or(&Shape::Any)
    }

    /// Adds what a file says; `..Tool` within `Tool` is what was said before.
    fn add(&mut self, page: Page) {
        self.batches = page.batches;
        for (name, params, result) in page.requests {
            self.requests.insert(name, Method { params, result });
        }
        self.notifications.extend(page.notifications);
        self.errors.extend(page.errors);
        for (name, mut shape) in page.shapes {
            if let (Shape::Object(members), Some(Shape::Object(before))) =
                (&mut shape, self.shapes.get(&name))
                && let Some(at) = members
                    .iter()
                    .position(|member| matches!(member, Member::Fields(other) if *other == name))
            {
                members.splice(at..=at, before.iter().cloned());
            }
            self.shapes.insert(name, shape);
        }
    }

    /// Writes out all fields, and makes sure that nothing is named that is not there.
    fn finish(self) -> Result<Self, String> {
        let whole = |shape: &Shape| self.whole(shape, 0);
        let params = |params: &Params| {
            Ok::<_, String>(Params {
                required: params.required,
                shape: whole(&params.shape)?,
            })
        };
        let mut finished = Self {
            batches: self.batches,
            ..Self::default()
        };
        for (name, method) in &self.requests {
            let method = Method {
                params: params(&method.params)?,
                result: whole(&method.result)?,
            };
            finished.requests.insert(name.clone(), method);
        }
        for (name, given) in &self.notifications {
            finished.notifications.insert(name.clone(), params(given)?);
        }
        for (&code, shape) in &self.errors {
            finished.errors.insert(code, whole(shape)?);
        }
        for (name, shape) in &self.shapes {
            finished.shapes.insert(name.clone(), whole(shape)?);
        }
        Ok(finished)
    }

    fn whole(&self, shape: &Shape, depth: usize) -> Result<Shape, String> {
        let whole = |shape: &Shape| self.whole(shape, depth + 1);
        let each = |shapes: &[Shape]| shapes.iter().map(whole).collect::<Result<_, _>>();
        Ok(match shape {
            _ if depth > 32 => return Err("the fields of a shape include themselves".into()),
            Shape::Named(name) if !self.shapes.contains_key(name) => {
                return Err(format!("there is no `{name}`"));
            }
            Shape::List(item, most) => Shape::List(Box::new(whole(item)?), *most),
            Shape::Map(value) => Shape::Map(Box::new(whole(value)?)),
            Shape::All(shapes) => Shape::All(each(shapes)?),
            Shape::One(shapes) => Shape::One(each(shapes)?),
            Shape::Object(members) => {
                let mut all: Vec<Member> = Vec::new();
                for member in members {
                    match member {
                        Member::Field(field) => {
                            let mut field = field.clone();
                            field.shape = whole(&field.shape)?;
                            put(&mut all, Member::Field(field));
                        }
                        Member::Fields(name) => {
                            let other = self.shapes.get(name);
                            let other = other.ok_or_else(|| format!("there is no `{name}`"))?;
                            for field in whole(other)?.fields() {
                                put(&mut all, Member::Field(field.clone()));
                            }
                        }
                    }
                }
                Shape::Object(all)
            }
            other => other.clone(),
        })
    }
}

/// Adds a field in the place of one with the same name.
fn put(all: &mut Vec<Member>, new: Member) {
    let name = |member: &Member| match member {
        Member::Field(field) => field.name.clone(),
        Member::Fields(name) => name.clone(),
    };
    match all.iter().position(|member| name(member) == name(&new)) {
        Some(at) => all[at] = new,
        None => all.push(new),
    }
}
