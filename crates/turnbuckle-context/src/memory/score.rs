//! How well something answers a question, from 0 to 1.
//!
//! BM25 with two changes. A term counts at most once over, so that the sum is a share of the question and a threshold
//! means the same whatever else is stored; and the length is measured against what is usual for the kind.

use std::collections::HashMap;
use std::time::Duration;

use super::postings::Candidate;
use super::search::HalfLife;
use super::similar::Print;
use super::{Item, Kind, beginning, patterns, postings};
use crate::code::stem::stem;
use crate::words;

/// How much an occurrence counts where it stands.
const IN_TITLE: f64 = 3.0;
const IN_TAGS: f64 = 3.0;
const IN_DETAIL: f64 = 1.5;
const IN_BODY: f64 = 1.0;
/// How fast more occurrences cease to count (the `k1` of BM25), and how much length does (its `b`).
const SATURATION: f64 = 0.6;
const LENGTH: f64 = 0.5;
/// A text of so many times the usual length is not held to be longer.
const MOST_LENGTHS: f64 = 8.0;
/// What is read of a long question, and of a long text to count occurrences in.
const LONGEST_QUESTION: usize = 16 * 1024;
const LONGEST_COUNTED: usize = 16 * 1024;
/// What is left of the weight of something very old.
const FLOOR: f64 = 0.5;
/// An error that is the same but for its numbers and paths has at least this score.
const SAME_ERROR: f64 = 0.85;
/// What remains of the score if both errors have codes, and other ones.
const OTHER_CODE: f64 = 0.75;

/// A question, ready to be compared.
pub(super) struct Question {
    kind: Kind,
    /// Terms as FTS5 is asked for them; prints of errors come last.
    pub(super) terms: Vec<String>,
    /// How many of the terms are words.
    words: usize,
    /// Each term as numbers of stems.
    stems: Vec<Vec<usize>>,
    numbers: HashMap<String, usize>,
    error: Option<Error>,
}

/// What is known of a question that is an error.
struct Error {
    print: Print,
    codes: Vec<String>,
}

impl Question {
    pub(super) fn new(kind: Kind, text: &str) -> Self {
        let text = beginning(text, LONGEST_QUESTION);
        let mut terms = words::telling_terms(text);
        terms.truncate(postings::MOST_TERMS);
        let words = terms.len();
        let mut numbers = HashMap::new();
        let mut number = |word: &str| {
            let next = numbers.len();
            *numbers.entry(stem(word).to_owned()).or_insert(next)
        };
        let stems = terms
            .iter()
            .map(|term| term.split(' ').map(&mut number).collect())
            .collect();
        let error = (kind == Kind::Remediation).then(|| Error {
            print: print_of_error(text),
            codes: patterns(text).codes,
        });
        if error.is_some() {
            terms.extend(patterns::prints(text));
            terms.truncate(postings::MOST_TERMS);
        }
        Self {
            kind,
            terms,
            words,
            stems,
            numbers,
            error,
        }
    }

    /// How well something answers, whatever its age.
    pub(super) fn score(&self, weights: &[f64], candidate: &Candidate, item: &Item) -> f64 {
        let share = self.share(weights, candidate, item);
        match &self.error {
            Some(error) => self.score_error(error, share, candidate, item),
            None => share,
        }
    }

    /// Which share of the question is in it.
    fn share(&self, weights: &[f64], candidate: &Candidate, item: &Item) -> f64 {
        let counts = self.counts(item);
        let length = item.title.len() + item.body.len() + item.detail.len();
        let lengths = (length as f64 / usual_length(self.kind)).min(MOST_LENGTHS);
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * lengths);
        let (mut got, mut all) = (0.0, 0.0);
        for term in 0..self.words {
            let mut count = counts[term];
            // FTS5 knows more forms of a word.
            if count == 0.0 && candidate.has(term) {
                count = IN_BODY;
            }
            got += weights[term] * count / (count + norm);
            all += weights[term];
        }
        if all > 0.0 { got / all } else { 0.0 }
    }

    /// How often each term occurs, by weight of the places.
    fn counts(&self, item: &Item) -> Vec<f64> {
        let mut counts = vec![0.0; self.words];
        let tags = item.tags.join(" . ");
        for (text, weight) in [
            (&item.title, IN_TITLE),
            (&tags, IN_TAGS),
            (&item.detail, IN_DETAIL),
            (&item.body, IN_BODY),
        ] {
            let text = beginning(text, LONGEST_COUNTED).to_lowercase();
            let stems: Vec<Option<usize>> = text
                .split(|sign: char| !sign.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(|word| self.numbers.get(stem(word)).copied())
                .collect();
            for (term, count) in self.stems.iter().zip(&mut counts) {
                let is_here = |window: &&[Option<usize>]| {
                    let pairs = window.iter().zip(term);
                    pairs
                        .into_iter()
                        .all(|(stem, wanted)| *stem == Some(*wanted))
                };
                *count += weight * stems.windows(term.len()).filter(is_here).count() as f64;
            }
        }
        counts
    }

    fn score_error(&self, error: &Error, share: f64, candidate: &Candidate, item: &Item) -> f64 {
        let similarity = error.print.similarity(&print_of_error(&item.title));
        let mixed = 0.6 * share + 0.4 * similarity;
        if (self.words..self.terms.len()).any(|print| candidate.has(print)) {
            return mixed.max(SAME_ERROR + (1.0 - SAME_ERROR) * similarity);
        }
        let codes = patterns(&item.title).codes;
        let differ = !codes.is_empty()
            && !error.codes.is_empty()
            && !codes.iter().any(|code| error.codes.contains(code));
        if differ { mixed * OTHER_CODE } else { mixed }
    }
}

impl HalfLife {
    /// What is left of the weight of something of this age.
    pub(super) fn weight(&self, kind: Kind, age: i64) -> f64 {
        let half_life = self.of(kind).as_millis() as f64;
        if half_life == 0.0 {
            return 1.0;
        }
        FLOOR + (1.0 - FLOOR) * 0.5_f64.powf(age.max(0) as f64 / half_life)
    }

    fn of(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Checkpoint => self.checkpoint,
            Kind::Remediation => self.remediation,
            Kind::Skill => self.skill,
        }
    }
}

fn print_of_error(error: &str) -> Print {
    Print::of(&patterns::normal_words(error).join(" "))
}

fn usual_length(kind: Kind) -> f64 {
    match kind {
        Kind::Checkpoint => 1_500.0,
        Kind::Remediation => 1_000.0,
        Kind::Skill => 4_000.0,
    }
}
