//! Generated checkpoints, and queries about them.

use super::{
    random::Random,
    vocabulary::{Case, Writer, noun},
};

/// One generated checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) summary: String,
    pub(crate) content: String,
    pub(crate) tags: Vec<String>,
}

/// The number of topics per checkpoint.
const TOPICS: usize = 5;

/// Returns the entry with a number; it is always the same.
pub(crate) fn entry(number: usize) -> Entry {
    let mut writer = Writer::new(Random::new(number as u64), TOPICS);
    let summary = sentence(&mut writer);
    let mut content = String::new();
    for _ in 0..writer.random().between(3, 10) {
        content += &sentence(&mut writer);
        content += if writer.random().once_in(4) {
            "\n"
        } else {
            " "
        };
    }
    let (folder, file) = (writer.noun(), writer.thing(Case::Snake));
    content += &format!("See src/{folder}/{file}.rs, run {number}.");
    let tags = (0..writer.random().below(3))
        .map(|_| writer.noun())
        .collect();
    Entry {
        summary,
        content,
        tags,
    }
}

/// The ways to ask about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Any noun, which may be in no entry or in very many.
    Noun,
    /// The beginning of the summary.
    Summary,
    /// The beginning of the content.
    Content,
    /// A name of the code.
    Name,
    /// A long text that the beginning of the content is in.
    LongText,
}

impl Way {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Noun,
        Self::Summary,
        Self::Content,
        Self::Name,
        Self::LongText,
    ];

    /// Returns whether the words distinguish the checkpoint from all others.
    pub(crate) fn tells_one(self) -> bool {
        matches!(self, Self::Content | Self::LongText)
    }
}

/// Asks about the entry with a number.
pub(crate) fn question(number: usize, way: Way) -> String {
    let entry = entry(number);
    let mut random = Random::new(u64::MAX - number as u64);
    match way {
        Way::Noun => noun(&mut random),
        Way::Summary => first_words(&entry.summary, 6),
        Way::Content => first_words(&entry.content, 14),
        Way::Name => {
            let names = |word: &&str| word.contains('_');
            let name = entry.content.split_whitespace().find(names);
            name.unwrap_or(&entry.summary).to_owned()
        }
        Way::LongText => {
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
        0 => format!(" `{}`", writer.function(Case::Snake)),
        1 => format!(" {}", writer.thing(Case::Pascal)),
        _ => ",".to_owned(),
    };
    format!("{start}{middle} {}.", writer.phrase(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_questions_differ_and_are_the_same_again() {
        assert_eq!(entry(7), entry(7));
        assert_ne!(entry(7).content, entry(8).content);
        let questions = Way::ALL.map(|way| question(7, way));
        assert_eq!(questions, Way::ALL.map(|way| question(7, way)));
        assert!(questions.iter().all(|text| !text.is_empty()));
        assert!(questions[4].len() > 200);
        assert!(!questions[0].contains(' '));
    }
}
