//! A hundred thousand checkpoints. Too slow for every day; in release mode:
//!
//! ```console
//! $ cargo test --release -p turnbuckle-context --test it -- --ignored --nocapture scale
//! ```

use std::fmt::Write as _;
use std::time::Instant;

use turnbuckle_context::memory::{Draft, Kind, MemoryQuery, save, search};
use turnbuckle_context::transfer::{ImportOptions, import};
use turnbuckle_context::{Library, Owner, Redactor};

const CHECKPOINTS: usize = 100_000;
const WORDS: usize = 30_000;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word as languages have them: the second most common is half as common as the first.
    fn word(&mut self) -> String {
        let rank = (WORDS as f64).powf(self.throw()) as usize;
        word(rank)
    }
}

/// The word of a rank; common ones are short.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "ko", "ri", "tu", "sel", "mon", "par", "dig", "lor", "ven", "cas", "nim", "fra",
        "hob", "jul", "wix",
    ];
    let mut rest = rank + 16;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[rest % 16]);
        rest /= 16;
    }
    word
}

/// Milliseconds that this thread has worked, where the system tells.
fn worked() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}

fn checkpoints(dice: &mut Dice) -> String {
    let mut text =
        "{\"format\":\"turnbuckle-memory\",\"version\":1}\n{\"type\":\"project\",\"root\":\"/scale\"}\n"
            .to_owned();
    for at in 0..CHECKPOINTS {
        let mut words = |count: usize| {
            (0..count)
                .map(|_| dice.word())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (title, body) = (words(7), words(40 + at % 160));
        let created = 1_700_000_000_000_i64 + at as i64 * 60_000;
        let line = serde_json::json!({
            "type": "item", "kind": "checkpoint", "branch": "main", "title": title, "body": body,
            "created": created, "updated": created,
        });
        writeln!(text, "{line}").unwrap();
    }
    text
}

#[test]
#[ignore = "takes a minute in release mode"]
fn a_hundred_thousand_checkpoints_are_searched_at_once() {
    let data = tempfile::tempdir().unwrap();
    let library = Library::new(data.path());
    let ada = Owner::user("ada");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let text = checkpoints(&mut dice);
    let begun = Instant::now();
    let redactor = Redactor::standard();
    import(
        &library,
        &ada,
        redactor,
        &ImportOptions::default(),
        &mut text.as_bytes(),
    )
    .unwrap();
    println!("imported {} MB in {:?}", text.len() >> 20, begun.elapsed());
    let id = library.projects(&ada).unwrap().pop().unwrap();
    let database = library.open_id(&ada, &id).unwrap().unwrap();

    let questions = [
        ("three common words", vec![1, 2, 3]),
        ("ten common words", (1..11).collect()),
        ("24 common words", (1..25).collect()),
        ("common and rare", vec![3, 9, 40, 700, 9_000]),
        (
            "a sentence",
            vec![12, 55, 130, 420, 1_100, 3_000, 8_000, 21_000],
        ),
        ("rare words", vec![15_000, 22_000]),
        ("medium words", vec![60, 80, 120, 150]),
        ("twelve medium words", (40..52).collect()),
    ];
    for (name, ranks) in questions {
        let question: Vec<String> = ranks.into_iter().map(word).collect();
        let query = MemoryQuery::new(Kind::Checkpoint, question.join(" "));
        let mut times = Vec::new();
        let mut hits = Vec::new();
        for _ in 0..7 {
            let (begun, before) = (Instant::now(), worked());
            hits = search(&[&database], &query).unwrap();
            let wall = begun.elapsed().as_secs_f64() * 1e3;
            times.push(
                worked()
                    .zip(before)
                    .map_or(wall, |(after, before)| after - before),
            );
        }
        let first = times[0];
        times.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.1} ms (first {first:.1}), {} hits, best {:.2}",
            times[3],
            hits.len(),
            hits[0].score
        );
        assert!(
            cfg!(debug_assertions) || times[3] < 20.0,
            "{name}: {times:?}"
        );
    }
    let text = (0..150).map(|_| dice.word()).collect::<Vec<_>>().join(" ");
    let (begun, before) = (Instant::now(), worked());
    save(&database, redactor, Draft::checkpoint(text)).unwrap();
    println!(
        "save: {:?}, worked {:.1} ms",
        begun.elapsed(),
        worked().unwrap_or(0.0) - before.unwrap_or(0.0)
    );
}
