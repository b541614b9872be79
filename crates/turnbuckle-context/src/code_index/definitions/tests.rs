use super::*;

fn found(language: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let rules = LanguageRules::for_language(language).expect(language);
    let found = definitions(rules, &lines);
    found
        .iter()
        .map(|found| format!("{} {}", found.kind, found.name))
        .collect()
}

#[track_caller]
fn check(language: &str, text: &str, expected: &[&str]) {
    assert_eq!(found(language, text), expected, "{language}");
}

#[test]
fn rust() {
    let text = r#"
pub(crate) async fn open_file<T>(path: T) {}
    pub const fn small() -> u8 {}
pub unsafe extern "C" fn call() {}
pub struct Reader<'a> {
struct Unit;
enum Kind { A }
impl<T: Into<Vec<u8>>> fmt::Display for crate::Wrapper<T> {
impl Reader<'_> {
mod inner {
macro_rules! req {
const LIMIT: usize = 1;
    const INNER: usize = 1;
type Found<'t> = Option<&'t str>;
    let fn_name = 1;
    typed(x);
pub trait Store: Send {
"#;
    check(
        "rust",
        text,
        &[
            "function open_file",
            "function small",
            "function call",
            "type Reader",
            "type Kind",
            "impl Wrapper",
            "impl Reader",
            "module inner",
            "macro req",
            "constant LIMIT",
            "type Found",
            "trait Store",
        ],
    );
}

#[test]
fn python() {
    let text = "
class Reader(Base):
    async def read(self, size=-1) -> bytes:
    @property
    def name(self):
LIMIT = 10
TABLE: dict[str, int] = {}
lower = 1
classy(1)
    LOCAL = 1
";
    check(
        "python",
        text,
        &[
            "type Reader",
            "function read",
            "function name",
            "constant LIMIT",
            "constant TABLE",
        ],
    );
}

#[test]
fn javascript_and_typescript() {
    let text = "
export default async function load(url) {
export class Reader extends Base {
  constructor(path) {
  async *read(size) {
  get name() {
  static of<T>(value: T): Reader {
    if (path) {
    for (const a of b) {
    call(a, function () {
    return run(x) {
  private readonly field = 1;
export const open = async (path) => {
const LIMIT = 10;
  const inner = 10;
export interface Options {
type Name = string;
export abstract class Shape {
function* walk() {
module.exports.save = function (a) {
exports.find = (a) => a;
enum Kind { A }
declare namespace Thing {
";
    check(
        "typescript",
        text,
        &[
            "function load",
            "type Reader",
            "function constructor",
            "function read",
            "function name",
            "function of",
            "function open",
            "constant LIMIT",
            "type Options",
            "type Name",
            "type Shape",
            "function walk",
            "function save",
            "function find",
            "type Kind",
            "module Thing",
        ],
    );
}

#[test]
fn go() {
    let text = "
func (r *Reader) Read(p []byte) (int, error) {
func Open[T any](path string) *Reader {
type Reader struct {
type Name = string
var ErrClosed = errors.New(\"closed\")
const limit = 10
const (
\tvar inner = 1
\tgo func() {
";
    check(
        "go",
        text,
        &[
            "function Read",
            "function Open",
            "type Reader",
            "type Name",
            "constant ErrClosed",
            "constant limit",
        ],
    );
}

#[test]
fn java_and_csharp() {
    let text = "
public final class Reader<T> implements Closeable {
    private static final int LIMIT = 10;
    public Reader(String path) {
    @Override
    public int read(byte[] bytes, int from) throws IOException {
    protected abstract void close();
    Map<String, List<T>> table() {
        if (a) {
        for (int i = 0; i < n; i++) {
        } else if (b) {
        return new Reader(path) {
        list.forEach(item -> {
        reader.read(bytes);
    public async Task<int> RunAsync()
    public int Area => width * height;
    public int Twice(int x) => x * 2;
record Point(int x, int y) {}
public @interface Marker {
namespace A.B.C
";
    check(
        "java",
        text,
        &[
            "type Reader",
            "function Reader",
            "function read",
            "function table",
            "function RunAsync",
            "function Twice",
            "type Point",
            "type Marker",
            "module C",
        ],
    );
}

#[test]
fn kotlin_and_scala() {
    let text = "
data class Point(val x: Int)
enum class Kind { A }
suspend fun <T> List<T>.second(): T =
    override fun read(): Int {
companion object {
object Registry {
sealed interface Shape
case class Pair(a: Int)
  def apply(x: Int): Int =
implicit val order: Ordering = 1
    val inner = 1
trait Store {
";
    check(
        "kotlin",
        text,
        &[
            "type Point",
            "type Kind",
            "function second",
            "function read",
            "type Registry",
            "type Shape",
            "type Pair",
            "function apply",
            "constant order",
            "trait Store",
        ],
    );
}

#[test]
fn c_and_cpp() {
    let text = "
#define LIMIT 10
static inline int open_file(const char *path)
{
struct reader {
struct reader;
typedef struct point {
int reader::read(char *to, size_t size) const {
Reader::Reader(int fd) : fd_(fd) {
template <typename T>
class Vector final {
enum class Kind { A };
namespace io {
    if (a) {
    while (b) {
    return call(a);
    other(a);
int declared(int);
static const char *name_of(
EXPORT_SYMBOL(open_file);
    virtual void close() {
  int value = compute(a) {
";
    check(
        "cpp",
        text,
        &[
            "macro LIMIT",
            "function open_file",
            "type reader",
            "type point",
            "function read",
            "function Reader",
            "type Vector",
            "type Kind",
            "module io",
            "function name_of",
            "function close",
        ],
    );
}

#[test]
fn scripting_languages() {
    check(
        "ruby",
        "module A::B\nclass Reader < Base\n  def self.open(path)\n  private def read?\nLIMIT = 1\n  define(x)",
        &[
            "module B",
            "type Reader",
            "function open",
            "function read",
            "constant LIMIT",
        ],
    );
    check(
        "php",
        "abstract class A {\n  public static function &open($p) {\n  function read() {\nfinal class B {\n$x = function () {",
        &["type A", "function open", "function read", "type B"],
    );
    check(
        "lua",
        "local function open(p)\nfunction M.io:read(n)\nM.close = function(self)\nlocal x = 1",
        &["function open", "function read", "function close"],
    );
    check(
        "shell",
        "open_file() {\nfunction read_it {\nclose ()\necho \"$(date)\"\nfoo() bar",
        &["function open_file", "function read_it", "function close"],
    );
    check(
        "perl",
        "package A::B;\nsub open_file {",
        &["module B", "function open_file"],
    );
    check(
        "r",
        "read_it <- function(x) {\nopen.file = function(x)\nx <- 1",
        &["function read_it", "function file"],
    );
    check(
        "swift",
        "public final class Reader {\n  static func open(_ p: String) {\nextension Array where A {\nprotocol Store {\n  let a = 1",
        &["type Reader", "function open", "type Array", "trait Store"],
    );
    check(
        "elixir",
        "defmodule A.Reader do\n  def open(path) do\n  defp read?(x), do: x\n  defmacro m(x) do",
        &["module Reader", "function open", "function read", "macro m"],
    );
}

#[test]
fn functional_languages() {
    check(
        "haskell",
        "data Tree a = Leaf\nnewtype Name = Name String\nopenFile :: FilePath -> IO ()\nopenFile path = x\nclass Store a where",
        &["type Tree", "type Name", "function openFile", "trait Store"],
    );
    check(
        "ocaml",
        "let rec walk tree =\n  let inner = 1 in\ntype tree = Leaf\nmodule Reader = struct\nval read : int -> int",
        &[
            "constant walk",
            "type tree",
            "module Reader",
            "constant read",
        ],
    );
    check(
        "clojure",
        "(ns app.core)\n(defn open-file [p]\n  (def inner 1)\n(defn ^:private read [x]\n(defmacro when-let [x]\n(call x)",
        &[
            "function app.core",
            "function open-file",
            "function read",
            "macro when-let",
        ],
    );
}

#[test]
fn tables_sections_and_blocks() {
    check(
        "sql",
        "CREATE TABLE IF NOT EXISTS app.\"users\" (\ncreate or replace function open_it(x int)\nCREATE UNIQUE INDEX by_name ON users\nSELECT 1;\ncreated table x",
        &["table users", "function open_it", "index by_name"],
    );
    check(
        "markdown",
        "# Title\n\ntext # none\n```sh\n# comment\n```\n## Part two ##\n#none\n~~~\n# code\n```\n# code\n~~~\n### Three",
        &["section Title", "section Part two", "section Three"],
    );
    check(
        "toml",
        "[package]\nname = \"a\"\n[[bin]]\n[target.'cfg(unix)'.dependencies]\n  x = [\n",
        &[
            "section package",
            "section bin",
            "section target.'cfg(unix)'.dependencies",
        ],
    );
    check(
        "yaml",
        "on:\n  push:\njobs: {}\n- a: 1\nhttp://x\n# c: d\n---\n",
        &["section on", "section jobs"],
    );
    check(
        "make",
        "all: a b\nCC := gcc\n.PHONY: all\n\tgcc: x",
        &["section all"],
    );
    check(
        "hcl",
        "resource \"aws_instance\" \"web\" {\nvariable \"size\" {\n  tags = {",
        &["resource web", "constant size"],
    );
    check(
        "protobuf",
        "message Point {\nservice Store {\n  rpc Save (A) returns (B);\nenum Kind {",
        &["type Point", "type Store", "function Save", "type Kind"],
    );
}

#[test]
fn any_text_is_accepted_by_all_rules() {
    let words = "fn impl<<<((( pub( extern \"C struct #define ] }) ::: é ∀ func( create table def - @ ! * & const const";
    let mut text = String::new();
    for (number, word) in words.split(' ').cycle().take(3_000).enumerate() {
        text.push_str(word);
        text.push_str(["", " ", "\n", "\t", "("][(number * 7 + number / 5) % 5]);
    }
    let lines: Vec<&str> = text.lines().collect();
    for language in [
        "rust",
        "typescript",
        "java",
        "cpp",
        "go",
        "sql",
        "clojure",
        "markdown",
        "hcl",
        "ruby",
        "erlang",
    ] {
        let rules = LanguageRules::for_language(language).expect(language);
        for found in definitions(rules, &lines) {
            assert!(!found.name.is_empty());
        }
    }
}

#[test]
fn only_the_start_of_a_long_line_is_searched() {
    for (language, word, definition) in [
        ("rust", "pub ", "fn a() {}"),
        ("typescript", "export ", "function a() {}"),
        ("java", "public ", "class A {}"),
        ("cpp", "static ", "class A {"),
    ] {
        let rules = LanguageRules::for_language(language).expect(language);
        let line = |words: usize| word.repeat(words) + definition;

        assert_eq!(definitions(rules, &[&line(3)]).len(), 1, "{language}");
        assert!(
            definitions(rules, &[&line(250_000)]).is_empty(),
            "{language}"
        );
    }
}
