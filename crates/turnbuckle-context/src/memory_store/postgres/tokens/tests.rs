use proptest::prelude::*;
use rusqlite::Connection;

use super::*;

/// An FTS5 table with the tokenizer of the search index, and its words.
fn fts5() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(
        "CREATE VIRTUAL TABLE text USING fts5 (x, tokenize = 'porter unicode61 remove_diacritics 2');
         CREATE VIRTUAL TABLE word USING fts5vocab (text, 'instance');",
    )
    .unwrap();
    db
}

/// Returns the words that FTS5 makes of each text. Bytes that are not UTF-8 become digits after a dot.
fn words_of_fts5(db: &Connection, texts: &[String]) -> Vec<Vec<String>> {
    db.execute_batch("BEGIN; DELETE FROM text").unwrap();
    let mut insert = db
        .prepare_cached("INSERT INTO text (rowid, x) VALUES (?1, ?2)")
        .unwrap();
    for (row, text) in texts.iter().enumerate() {
        insert.execute((row as i64, text)).unwrap();
    }
    let mut select = db
        .prepare_cached("SELECT doc, CAST(term AS BLOB) FROM word ORDER BY doc, offset")
        .unwrap();
    let mut all = vec![Vec::new(); texts.len()];
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let at: i64 = row.get(0).unwrap();
        let word: Vec<u8> = row.get(1).unwrap();
        let word = String::from_utf8(word);
        all[at as usize].push(word.unwrap_or_else(|error| format!(".{}", hex(error.as_bytes()))));
    }
    drop(rows);
    db.execute_batch("ROLLBACK").unwrap();
    all
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words
}

#[test]
fn every_character_is_treated_as_fts5_does() {
    let db = fts5();
    // Beyond are ideographs and private characters only.
    let ideographs = '\u{2a000}'..'\u{2b000}';
    let last = '\u{10fe00}'..=char::MAX;
    let all: Vec<char> = ('\0'..'\u{1f000}')
        .chain(ideographs)
        .chain('\u{e0000}'..'\u{e0200}')
        .chain(last)
        .collect();
    for some in all.chunks(5_000) {
        // As the first character of a word, within one and as the last.
        let texts: Vec<String> = some
            .iter()
            .map(|one| format!("{one}1 2{one}3 4{one}"))
            .collect();
        for (text, expected) in texts.iter().zip(words_of_fts5(&db, &texts)) {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }
}

#[test]
fn english_words_have_the_stems_of_fts5() {
    const ENDINGS: &[&str] = &[
        "", "s", "es", "ies", "sses", "ss", "ed", "eed", "ing", "y", "ational", "tional", "enci",
        "anci", "izer", "logi", "bli", "alli", "entli", "eli", "ousli", "ization", "ation", "ator",
        "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "icate", "ative",
        "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible",
        "ant", "ement", "ment", "ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous",
        "ive", "ize", "e", "ll", "lle", "at", "bl", "iz", "tt", "zz",
    ];
    const STARTS: &[&str] = &[
        "", "a", "b", "y", "by", "tr", "hop", "rel", "condit", "hop", "tann", "fall", "hiss",
        "fizz", "sky", "syzyg", "yet", "fix", "snow", "play", "é", "日本", "x𐀀", "oé",
    ];
    let db = fts5();
    let mut texts = Vec::new();
    for start in STARTS {
        for one in ENDINGS {
            for other in ENDINGS {
                texts.push(format!("{start}{one}{other}"));
            }
        }
    }
    for (text, expected) in texts.iter().zip(words_of_fts5(&db, &texts)) {
        assert_eq!(words(text), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn random_texts_have_the_words_of_fts5(text in "(\\PC|[a-zé\u{300}-\u{340}\\p{Lu} '_.-]){0,60}") {
        let expected = words_of_fts5(&fts5(), std::slice::from_ref(&text)).remove(0);
        prop_assert_eq!(words(&text), expected);
    }
}

#[test]
fn very_long_words_are_told_apart() {
    let (one, other) = ("x".repeat(3_000), "x".repeat(3_001));
    assert_ne!(words(&one), words(&other));
    assert!(words(&one)[0].len() <= MAX_WORD_BYTES);
}

#[test]
fn a_phrase_is_searched_between_spaces() {
    let query = WordQuery::new("1.0", ["login forms", "cache", "a_b"]);
    assert_eq!(query.query, "'1.0' & 'login' & 'form' & 'cach' & 'a' & 'b'");
    assert_eq!(query.phrases, " login form \n a b ");
    assert_eq!(
        WordQuery::new("1.0", ["...", "cache"]),
        WordQuery::default()
    );
}
