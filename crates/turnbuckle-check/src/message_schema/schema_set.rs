//! The shapes of a revision: its file and those that it extends.

use std::{collections::HashMap, sync::LazyLock};

use turnbuckle_protocol::revision::Revision;

pub(super) use super::parser::ParamsShape;
use super::{
    expression::{ObjectMember, ValueShape},
    parser::{self, SchemaFile},
};

/// The shapes of a revision.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaSet {
    /// Batches are allowed.
    pub(super) batches: bool,
    requests: HashMap<String, MethodShape>,
    notifications: HashMap<String, ParamsShape>,
    errors: HashMap<i64, ValueShape>,
    shapes: HashMap<String, ValueShape>,
}

/// The shapes of a request.
#[derive(Clone, Debug)]
pub(super) struct MethodShape {
    pub(super) params: ParamsShape,
    pub(super) result: ValueShape,
}

/// The files, in the order in which they extend each other.
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

static SCHEMA_SETS: LazyLock<HashMap<&str, SchemaSet>> =
    LazyLock::new(|| parse_all(&FILES).expect("a test parses every file"));

/// Returns the shapes of a revision: those of its file, or of the newest file before it.
pub(super) fn for_revision(revision: Revision) -> &'static SchemaSet {
    &SCHEMA_SETS[file_date(revision)]
}

/// Returns the date of the file for a revision.
fn file_date(revision: Revision) -> &'static str {
    let mut newest_first = FILES.iter().rev().map(|(date, _)| *date);
    let own = newest_first.find(|date| *date <= revision.as_str());
    // 2024-10-07 is treated like 2024-11-05, which it became.
    own.unwrap_or(FILES[0].0)
}

/// Builds the shapes of each revision.
pub(super) fn parse_all<'a>(
    files: &[(&'a str, &[&str])],
) -> Result<HashMap<&'a str, SchemaSet>, String> {
    let mut drafts = HashMap::new();
    for (date, texts) in files {
        let mut schemas = SchemaSet::default();
        for text in *texts {
            let file = parser::read(text).map_err(|why| format!("{date}, {why}"))?;
            if let Some(like) = &file.like {
                let before: Option<&SchemaSet> = drafts.get(like.as_str());
                schemas = before
                    .ok_or(format!("{date}: unknown revision `{like}`"))?
                    .clone();
            }
            schemas.add(file);
        }
        drafts.insert(*date, schemas);
    }
    let finished = drafts.into_iter().map(|(date, schemas)| {
        let schemas = schemas.finish().map_err(|why| format!("{date}: {why}"))?;
        Ok((date, schemas))
    });
    finished.collect()
}

impl SchemaSet {
    /// Returns the shapes of a request, if the method is known.
    pub(super) fn request(&self, method: &str) -> Option<&MethodShape> {
        self.requests.get(method)
    }

    /// Returns the parameters of a notification, if the method is known.
    pub(super) fn notification(&self, method: &str) -> Option<&ParamsShape> {
        self.notifications.get(method)
    }

    /// Returns the data of an error, if it is defined for the code.
    pub(super) fn error(&self, code: i64) -> Option<&ValueShape> {
        self.errors.get(&code)
    }

    /// Returns a named shape. `finish` checks that all names exist.
    pub(super) fn shape(&self, name: &str) -> &ValueShape {
        self.shapes.get(name).unwrap_or(&ValueShape::Any)
    }

    /// Adds a file. `..Tool` within `Tool` includes the previous definition.
    fn add(&mut self, file: SchemaFile) {
        self.batches = file.batches;
        for (name, params, result) in file.requests {
            self.requests.insert(name, MethodShape { params, result });
        }
        self.notifications.extend(file.notifications);
        self.errors.extend(file.errors);
        for (name, mut shape) in file.shapes {
            if let (ValueShape::Object(members), Some(ValueShape::Object(before))) =
                (&mut shape, self.shapes.get(&name))
                && let Some(at) = members.iter().position(
                    |member| matches!(member, ObjectMember::Fields(other) if *other == name),
                )
            {
                members.splice(at..=at, before.iter().cloned());
            }
            self.shapes.insert(name, shape);
        }
    }

    /// Resolves included fields and checks that all names exist.
    fn finish(self) -> Result<Self, String> {
        let resolve = |shape: &ValueShape| self.resolve(shape, 0);
        let params = |params: &ParamsShape| {
            Ok::<_, String>(ParamsShape {
                required: params.required,
                shape: resolve(&params.shape)?,
            })
        };
        let mut finished = Self {
            batches: self.batches,
            ..Self::default()
        };
        for (name, method) in &self.requests {
            let method = MethodShape {
                params: params(&method.params)?,
                result: resolve(&method.result)?,
            };
            finished.requests.insert(name.clone(), method);
        }
        for (name, given) in &self.notifications {
            finished.notifications.insert(name.clone(), params(given)?);
        }
        for (&code, shape) in &self.errors {
            finished.errors.insert(code, resolve(shape)?);
        }
        for (name, shape) in &self.shapes {
            finished.shapes.insert(name.clone(), resolve(shape)?);
        }
        Ok(finished)
    }

    fn resolve(&self, shape: &ValueShape, depth: usize) -> Result<ValueShape, String> {
        let resolve = |shape: &ValueShape| self.resolve(shape, depth + 1);
        let each = |shapes: &[ValueShape]| shapes.iter().map(resolve).collect::<Result<_, _>>();
        Ok(match shape {
            _ if depth > 32 => return Err("a shape includes itself".into()),
            ValueShape::Named(name) if !self.shapes.contains_key(name) => {
                return Err(format!("unknown shape `{name}`"));
            }
            ValueShape::List(item, most) => ValueShape::List(Box::new(resolve(item)?), *most),
            ValueShape::Map(value) => ValueShape::Map(Box::new(resolve(value)?)),
            ValueShape::All(shapes) => ValueShape::All(each(shapes)?),
            ValueShape::One(shapes) => ValueShape::One(each(shapes)?),
            ValueShape::Object(members) => {
                let mut all: Vec<ObjectMember> = Vec::new();
                for member in members {
                    match member {
                        ObjectMember::Field(field) => {
                            let mut field = field.clone();
                            field.shape = resolve(&field.shape)?;
                            put(&mut all, ObjectMember::Field(field));
                        }
                        ObjectMember::Fields(name) => {
                            let other = self.shapes.get(name);
                            let other = other.ok_or_else(|| format!("unknown shape `{name}`"))?;
                            for field in resolve(other)?.fields() {
                                put(&mut all, ObjectMember::Field(field.clone()));
                            }
                        }
                    }
                }
                ValueShape::Object(all)
            }
            other => other.clone(),
        })
    }
}

/// Adds a field, replacing one with the same name.
fn put(all: &mut Vec<ObjectMember>, new: ObjectMember) {
    let name = |member: &ObjectMember| match member {
        ObjectMember::Field(field) => field.name.clone(),
        ObjectMember::Fields(name) => name.clone(),
    };
    match all.iter().position(|member| name(member) == name(&new)) {
        Some(at) => all[at] = new,
        None => all.push(new),
    }
}
