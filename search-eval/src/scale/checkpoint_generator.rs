//! Generated checkpoints, and queries about them.

use super::{
    random::Random,
    vocabulary::{NamingConvention, Writer, noun},
};

/// One generated checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedCheckpoint {
    pub(crate) summary: String,
    pub(crate) content: String,
    pub(crate) tags: Vec<String>,
}

/// The number of topics per checkpoint.
const TOPICS: usize = 5;

/// Returns the checkpoint with a number; it is equal in every run.
pub(crate) fn entry(number: usize) -> GeneratedCheckpoint {
    let mut writer = Writer::new(Random::new(number as u64), TOPICS);
    let summary = sentence(&mut writer);
    let mut content = String::new();
    for _ in 0..writer.random().between(3, 10) {
        content += &sentence(&mut writer);
        content += if writer.random().one_in(4) { "\n" } else { " " };
    }
    let (folder, file) = (writer.noun(), writer.thing(NamingConvention::Snake));
    content += &format!("See src/{folder}/{file}.rs, run {number}.");
    let tags = (0..writer.random().below(3))
        .map(|_| writer.noun())
        .collect();
    GeneratedCheckpoint {
        summary,
        content,
        tags,
    }
}

/// The form of a query for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryForm {
    /// Any noun, which may be in no checkpoint or in very many.
    Noun,
    /// The start of the summary.
    Summary,
    /// The start of the content.
    Content,
    /// A name from the code.
    Name,
    /// A long text that contains the start of the content.
    LongText,
}

impl QueryForm {
    /// All forms.
    pub(crate) const ALL: [Self; 5] = [
        Self::Noun,
        Self::Summary,
        Self::Content,
        Self::Name,
        Self::LongText,
    ];

    /// Returns whether the words distinguish the checkpoint from all others.
    pub(crate) fn is_unique(self) -> bool {
        matches!(self, Self::Content | Self::LongText)
    }
}

/// Returns a query for the checkpoint with a number.
pub(crate) fn query(number: usize, form: QueryForm) -> String {
    let entry = entry(number);
    let mut random = Random::new(u64::MAX - number as u64);
    match form {
        QueryForm::Noun => noun(&mut random),
        QueryForm::Summary => first_words(&entry.summary, 6),
        QueryForm::Content => first_words(&entry.content, 14),
        QueryForm::Name => {
            let names = |word: &&str| word.contains('_');
            let name = entry.content.split_whitespace().find(names);
            name.unwrap_or(&entry.summary).to_owned()
        }
        QueryForm::LongText => {
            let mut noise = Writer::new(random, 2 * TOPICS);
            let (before, after) = (noise.phrase(20), noise.phrase(20));
            format!("{before} {} {after}", first_words(&entry.content, 30))
        }
    }
}

fn first_words(text: &str, count: usize) -> String {
    let words: Vec<_> = text.split_whitespace().take(count).collect();
    words.join(" ")
}

fn sentence(writer: &mut Writer) -> String {
    let (before, after) = (writer.random().between(3, 8), writer.random().between(2, 7));
    let start = writer.phrase(before);
    let middle = match writer.random().below(3) {
        0 => format!(" `{}`", writer.function(NamingConvention::Snake)),
        1 => format!(" {}", writer.thing(NamingConvention::Pascal)),
        _ => ",".to_owned(),
    };
    format!("{start}{middle} {}.", writer.phrase(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_and_queries_differ_and_are_reproducible() {
        assert_eq!(entry(7), entry(7));
        assert_ne!(entry(7).content, entry(8).content);
        let queries = QueryForm::ALL.map(|form| query(7, form));
        assert_eq!(queries, QueryForm::ALL.map(|form| query(7, form)));
        assert!(queries.iter().all(|text| !text.is_empty()));
        assert!(queries[4].len() > 200);
        assert!(!queries[0].contains(' '));
    }
}
