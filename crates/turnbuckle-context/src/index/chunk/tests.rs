use super::*;

fn shape<'t>(chunks: &[TextChunk<'t>]) -> Vec<(usize, usize, &'t str)> {
    let shape = |chunk: &TextChunk<'t>| (chunk.first_line, chunk.last_line, chunk.symbol);
    chunks.iter().map(shape).collect()
}

fn body(lines: usize) -> String {
    "    step();\n".repeat(lines)
}

#[test]
fn a_definition_begins_a_chunk_with_what_stands_above_it() {
    let text = format!(
        "use a;\n\n/// Says one.\n#[inline]\nfn one() {{\n{}}}\n\n/// Says two.\nfn two() {{\n{}}}\n",
        body(20),
        body(20)
    );
    let chunks = chunks("rust", &text);
    assert_eq!(shape(&chunks), [(1, 26, "one"), (28, 50, "two")]);
    assert!(chunks[1].body.starts_with("/// Says two."));
    assert_eq!(chunks[1].defs, ["two"]);
}

#[test]
fn small_neighbours_are_one_chunk() {
    let text = "const A: u8 = 1;\nconst B: u8 = 2;\n\nfn one() {}\n\nfn two() {}\n";
    let chunks = chunks("rust", text);
    assert_eq!(shape(&chunks), [(1, 6, "A")]);
    assert_eq!(chunks[0].defs, ["A", "B", "one", "two"]);
}

#[test]
fn a_long_definition_is_cut_evenly_and_keeps_its_name() {
    let text = format!("fn long() {{\n{}\n{}}}\n", body(35), body(35));
    let chunks = chunks("rust", &text);
    assert_eq!(shape(&chunks), [(1, 36, "long"), (38, 73, "long")]);
    assert!(chunks[1].defs.is_empty());
}

#[test]
fn a_text_without_definitions_is_cut_at_blank_lines() {
    let paragraph = format!("{}\n", "words and words\n".repeat(9));
    let text = paragraph.repeat(20);
    let chunks = chunks("text", &text);
    assert!(chunks.len() > 3);
    for chunk in &chunks {
        assert!(chunk.last_line - chunk.first_line < MAX_LINES);
        assert_eq!(chunk.first_line % 10, 1, "begins a paragraph");
    }
}

#[test]
fn a_very_long_line_is_cut_between_characters() {
    for text in [
        "é".repeat(500_000),
        format!("fn a() {{}} {}", "x".repeat(1_000_000)),
    ] {
        let chunks = chunks("rust", &text);
        let whole: String = chunks.iter().map(|chunk| chunk.body).collect();
        assert_eq!(whole, text);
        assert!(chunks.iter().all(|chunk| chunk.body.len() <= MAX_BYTES));
        assert!(
            chunks
                .iter()
                .all(|chunk| (chunk.first_line, chunk.last_line) == (1, 1))
        );
        assert!(chunks.iter().filter(|chunk| !chunk.defs.is_empty()).count() <= 1);
    }
}

#[test]
fn every_line_that_is_not_blank_is_in_one_chunk() {
    let piece = "fn a() {\n    b();\n}\n\n\n// c\nstruct D;\n\tx\n";
    for times in 1..80 {
        let text = piece.repeat(times);
        let mut next = 1;
        for chunk in chunks("rust", &text) {
            assert!(chunk.first_line >= next && chunk.last_line >= chunk.first_line);
            let between = text.lines().take(chunk.first_line - 1).skip(next - 1);
            assert!(between.clone().all(|line| line.trim().is_empty()));
            next = chunk.last_line + 1;
        }
        assert!(
            text.lines()
                .skip(next - 1)
                .all(|line| line.trim().is_empty())
        );
    }
}

#[test]
fn nothing_comes_of_nothing() {
    assert!(chunks("rust", "").is_empty());
    assert!(chunks("text", " \n\n\t\n").is_empty());
}
