use turnbuckle_spec_coverage::req;

use crate::{cache::*, lifecycle::modern_rules};

const TOOLS: &str = method::TOOLS_LIST.name;
const READ: &str = method::RESOURCES_READ.name;

struct Clock(Instant);

impl Clock {
    fn after(&self, millis: u64) -> Instant {
        self.0 + Duration::from_millis(millis)
    }
}

fn clock() -> Clock {
    Clock(Instant::now())
}

fn key(method: &'static str, parameter: &str) -> CacheKey {
    let parameter = (!parameter.is_empty()).then(|| parameter.to_owned());
    CacheKey::new(method, parameter)
}

fn cached(text: &str) -> CachedResponse {
    CachedResponse {
        text: Bytes::copy_from_slice(text.as_bytes()),
        rules: modern_rules(),
    }
}

fn cache() -> ResponseCache {
    ResponseCache::new(8, 1000)
}

impl ResponseCache {
    fn add(&mut self, key: CacheKey, text: &str, ttl_ms: u64, now: Instant) {
        let epoch = self.epoch();
        self.put(key, cached(text), ttl_ms, epoch, now);
    }

    fn text(&mut self, key: &CacheKey, now: Instant) -> Option<String> {
        let cached = self.get(key, now)?;
        Some(String::from_utf8(cached.text.to_vec()).unwrap())
    }
}

#[test]
fn a_response_is_fresh_until_its_ttl_ends() {
    req!("caching.ttl.positive", "caching.stale.refetch");
    let (mut cache, clock) = (cache(), clock());
    let key = key(TOOLS, "");
    cache.add(key.clone(), "a", 100, clock.after(50));

    assert_eq!(cache.text(&key, clock.after(50)).as_deref(), Some("a"));
    assert_eq!(cache.text(&key, clock.after(149)).as_deref(), Some("a"));
    assert_eq!(cache.text(&key, clock.after(150)), None);
    assert_eq!(cache.bytes, 0);
}

#[test]
fn without_ttl_nothing_is_stored() {
    req!("caching.ttl.zero");
    let (mut cache, clock) = (cache(), clock());
    let key = key(TOOLS, "");
    cache.add(key.clone(), "a", 100, clock.0);
    cache.add(key.clone(), "b", 0, clock.0);

    assert_eq!(cache.text(&key, clock.0), None);
}

#[test]
fn a_ttl_is_at_most_a_day() {
    let (mut cache, clock) = (cache(), clock());
    let key = key(TOOLS, "");
    cache.add(key.clone(), "a", u64::MAX, clock.0);

    assert!(cache.text(&key, clock.after(86_399_999)).is_some());
    assert_eq!(cache.text(&key, clock.after(86_400_000)), None);
}

#[test]
fn a_response_is_found_by_method_and_parameter() {
    req!("caching.key");
    let (mut cache, clock) = (cache(), clock());
    cache.add(key(TOOLS, ""), "first page", 100, clock.0);
    cache.add(key(TOOLS, "2"), "second page", 100, clock.0);
    cache.add(key(READ, "2"), "a resource", 100, clock.0);

    let mut text = |method, parameter| cache.text(&key(method, parameter), clock.0);
    assert_eq!(text(TOOLS, "").as_deref(), Some("first page"));
    assert_eq!(text(TOOLS, "2").as_deref(), Some("second page"));
    assert_eq!(text(READ, "2").as_deref(), Some("a resource"));
    assert_eq!(text(TOOLS, "3"), None);
    assert_eq!(text(READ, ""), None);
    // An empty cursor is a cursor.
    let empty = CacheKey::new(TOOLS, Some(String::new()));
    assert!(cache.get(&empty, clock.0).is_none());
}

#[test]
fn a_change_invalidates_its_entries() {
    req!("caching.notify.invalidate");
    const PROMPTS: &str = method::PROMPTS_LIST.name;
    const RESOURCES: &str = method::RESOURCES_LIST.name;
    const TEMPLATES: &str = method::RESOURCES_TEMPLATES_LIST.name;
    const LISTS: [&str; 4] = [TOOLS, PROMPTS, RESOURCES, TEMPLATES];
    let cases: [(Change, &[&str]); 3] = [
        (Change::Tools, &[TOOLS]),
        (Change::Prompts, &[PROMPTS]),
        (Change::Resources, &[RESOURCES, TEMPLATES]),
    ];
    for (change, dropped) in cases {
        let (mut cache, clock) = (cache(), clock());
        for method in LISTS {
            cache.add(key(method, ""), "1", 100, clock.0);
            cache.add(key(method, "2"), "2", 100, clock.0);
        }

        cache.invalidate(&change);

        for method in LISTS {
            for page in ["", "2"] {
                let is_there = cache.get(&key(method, page), clock.0).is_some();
                assert_eq!(is_there, !dropped.contains(&method), "{change:?} {method}");
            }
        }
    }
}

#[test]
fn a_change_of_a_uri_invalidates_its_parents_and_children() {
    for (changed, concerns) in [
        ("file:///a/b", true),
        ("file:///a", true),
        ("file:///a/", true),
        ("file:///a/b/c", true),
        ("file:///a/b#c", true),
        ("file:///a/bc", false),
        ("file:///a/c", false),
        ("file:///A/b", false),
    ] {
        let (mut cache, clock) = (cache(), clock());
        let key = key(READ, "file:///a/b");
        cache.add(key.clone(), "text", 100, clock.0);

        let uri = changed.to_owned();
        cache.invalidate(&Change::Resource { uri });

        assert_eq!(cache.get(&key, clock.0).is_none(), concerns, "{changed}");
    }
}

#[test]
fn a_response_from_before_a_change_is_not_stored() {
    let (mut cache, clock) = (cache(), clock());
    let asked = cache.epoch();
    cache.invalidate(&Change::Tools);

    cache.put(key(TOOLS, ""), cached("old"), 100, asked, clock.0);

    assert!(cache.get(&key(TOOLS, ""), clock.0).is_none());
}

#[test]
fn the_cache_is_bounded() {
    let (mut cache, clock) = (ResponseCache::new(3, 100), clock());
    for number in 0..50 {
        let page = key(TOOLS, &number.to_string());
        cache.add(page, &"x".repeat(20), 1000, clock.after(number));
        assert!(cache.entries.len() <= 3 && cache.bytes <= 100);
    }
    // The newest entries are stored.
    for number in 47..50 {
        let page = key(TOOLS, &number.to_string());
        assert!(cache.get(&page, clock.after(60)).is_some(), "{number}");
    }

    // One large response evicts the others, and one that is too large is not stored.
    cache.add(key(READ, "a"), &"x".repeat(99), 1000, clock.after(60));
    assert_eq!((cache.entries.len(), cache.bytes), (1, 100));
    cache.add(key(READ, "b"), &"x".repeat(100), 1000, clock.after(60));
    assert_eq!((cache.entries.len(), cache.bytes), (1, 100));

    cache.clear();
    assert_eq!((cache.entries.len(), cache.bytes), (0, 0));
}

#[test]
fn stale_entries_are_evicted_first() {
    let (mut cache, clock) = (ResponseCache::new(2, 100), clock());
    cache.add(key(TOOLS, "long"), "x", 1000, clock.0);
    cache.add(key(TOOLS, "short"), "x", 10, clock.after(1));

    cache.add(key(TOOLS, "new"), "x", 1000, clock.after(20));

    assert!(cache.get(&key(TOOLS, "long"), clock.after(20)).is_some());
    assert!(cache.get(&key(TOOLS, "new"), clock.after(20)).is_some());
}

#[test]
fn a_cache_without_capacity_stores_nothing() {
    let clock = clock();
    for mut cache in [ResponseCache::new(0, 100), ResponseCache::new(10, 0)] {
        cache.add(key(TOOLS, ""), "x", 1000, clock.0);
        assert!(cache.get(&key(TOOLS, ""), clock.0).is_none());
    }
}
