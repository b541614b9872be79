use std::{
    collections::HashSet,
    hash::{BuildHasher, BuildHasherDefault},
};

use super::RandomIdHasher;
use crate::{InvalidStoreId, SessionId};

#[test]
fn an_id_is_24_visible_characters_and_is_read_back() {
    for _ in 0..100 {
        let id = SessionId::generate().unwrap();
        let text = id.to_string();

        assert_eq!(text.len(), 24);
        assert!(text.bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
        assert_eq!(text.parse(), Ok(id));
    }
}

#[test]
fn no_two_ids_are_the_same() {
    let ids: HashSet<_> = (0..1_000).map(|_| SessionId::generate().unwrap()).collect();

    assert_eq!(ids.len(), 1_000);
}

#[test]
fn ids_are_spread_evenly_by_their_own_bits() {
    let hasher = BuildHasherDefault::<RandomIdHasher>::default();
    let mut low = [0; 64];
    let mut middle = [0; 64];

    for _ in 0..64_000 {
        let hash = hasher.hash_one(SessionId::generate().unwrap());
        low[(hash % 64) as usize] += 1;
        middle[(hash >> 32) as usize % 64] += 1;
    }

    for count in low.into_iter().chain(middle) {
        assert!((800..1_200).contains(&count), "{count} of about 1,000");
    }
}

#[test]
fn only_the_exact_form_is_an_id() {
    let good = "abcdefghijklmnopqrstuvwx";
    assert!(good.parse::<SessionId>().is_ok());

    let long = "a".repeat(100_000);
    for text in [
        "",
        "abc",
        "abcdefghijklmnopqrstuvw",
        "abcdefghijklmnopqrstuvwxy",
        "abcdefghijklmnopqrstuvw=",
        "abcdefghijklmnopqrstuv==",
        "abcdefghijklmnopqrstuvw+",
        "abcdefghijklmnopqrstuvw/",
        "abcdefghijklmnopqrstuvw ",
        "abcdefghijklmnopqrstuvw\n",
        "abcdefghijklmnopqrstuvwé",
        "abcdefghijklmnopqrstuvé",
        &long,
    ] {
        assert_eq!(text.parse::<SessionId>(), Err(InvalidStoreId), "{text:?}");
    }
}

#[test]
fn debug_shows_only_the_beginning() {
    let id: SessionId = "abcdefghijklmnopqrstuvwx".parse().unwrap();

    assert_eq!(format!("{id:?}"), "SessionId(abcdef…)");
}
