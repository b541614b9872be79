use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn parent(text: &str) -> bool {
    TraceContext::new(Some(text), None, None).is_some()
}

fn state(text: &str) -> bool {
    let trace = TraceContext::new(Some(PARENT), Some(text), None);
    trace.is_some_and(|trace| trace.tracestate().is_some())
}

fn baggage(text: &str) -> bool {
    TraceContext::new(None, None, Some(text)).is_some()
}

#[test]
fn a_parent_has_trace_span_and_sampling() {
    let trace = TraceContext::new(Some(PARENT), None, None).expect("it is well formed");

    assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    assert_eq!(trace.parent_id(), Some("00f067aa0ba902b7"));
    assert!(trace.is_sampled());
    let quiet = TraceContext::new(Some(&PARENT.replace("-01", "-00")), None, None);
    assert!(!quiet.expect("it is well formed").is_sampled());
}

#[test]
fn a_parent_follows_the_grammar_of_its_version() {
    assert!(parent(PARENT));
    assert!(parent(&PARENT.replacen("00", "cc", 1)));
    assert!(parent(&format!(
        "{}-what-comes-later",
        PARENT.replacen("00", "cc", 1)
    )));
    for wrong in [
        "",
        "00",
        &PARENT.to_uppercase(),
        &PARENT[..54],
        &format!("{PARENT}-more"),
        &format!("{}more", PARENT.replacen("00", "cc", 1)),
        &format!("{}-{}", PARENT.replacen("00", "cc", 1), "x".repeat(300)),
        &PARENT.replacen("00", "ff", 1),
        &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
        &PARENT.replace('4', "g"),
        &PARENT.replace("00f0", "ü00"),
    ] {
        assert!(!parent(wrong), "{wrong}");
    }
}

#[test]
fn a_state_is_valid_with_a_parent_only() {
    assert!(state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
    assert!(state("tenant@vendor=x, ,other=\"y\""));
    for wrong in [
        "",
        ",",
        "rojo",
        "=x",
        "Rojo=1",
        "rojo=a=b",
        "rojo=\u{7f}",
        "rojo=ü",
        &format!("rojo={}", "x".repeat(600)),
        &vec!["a=1"; 33].join(","),
    ] {
        assert!(!state(wrong), "{wrong}");
    }
    assert!(TraceContext::new(None, Some("rojo=1"), None).is_none());
}

#[test]
fn baggage_is_valid_without_a_parent() {
    assert!(baggage(
        "userId=alice,serverNode=DF%2028,isProduction=false"
    ));
    assert!(baggage("key1 = value1;property1;p2=x, key2=a=b"));
    for wrong in [
        "",
        "key",
        "=x",
        "k=a b",
        "k=\"a\"",
        "k=ü",
        "k=1,",
        &format!("k={}", "x".repeat(9000)),
        &vec!["k=1"; 181].join(","),
    ] {
        assert!(!baggage(wrong), "{wrong}");
    }
}

#[test]
fn a_context_is_written_as_it_was_read() {
    let trace = TraceContext::new(Some(PARENT), Some("rojo=1"), Some("user=ada"));
    let trace = trace.expect("it is well formed");
    let mut meta = Meta::new();

    trace.write_to(&mut meta);

    assert_eq!(meta.traceparent(), Some(PARENT));
    assert_eq!(meta.tracestate(), Some("rojo=1"));
    assert_eq!(meta.baggage(), Some("user=ada"));
    assert_eq!(
        serde_json::to_string(&meta).expect("strings can be written"),
        serde_json::to_string(&trace).expect("strings can be written")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_stored_data_is_bounded(
        parent in "(00|cc)-[0-9a-f]{30,33}-[0-9a-fé]{16}-0[01].{0,40}",
        state in ".{0,600}",
        baggage in ".{0,40}",
    ) {
        if let Some(trace) = TraceContext::new(Some(&parent), Some(&state), Some(&baggage)) {
            proptest::prop_assert!(trace.trace_id().is_none_or(|id| id.len() == 32));
            proptest::prop_assert!(trace.tracestate().is_none_or(str::is_ascii));
            trace.write_to(&mut Meta::new());
        }
    }
}
