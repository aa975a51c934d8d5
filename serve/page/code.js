/* ---- Colours of code ----
 * Comments, texts, numbers and words that a language keeps for itself; nothing is understood. A
 * language that is not in the table stays in one colour. */

const LONGEST_COLOURED = 60000;
const C_LIKE = ["//[^\\n]*|/\\*[^]*?(?:\\*/|$)", "\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?"];
const SCRIPT_LIKE = ["#[^\\n]*", "\"(?:\\\\.|[^\"\\\\])*\"?|'(?:\\\\.|[^'\\\\])*'?"];
const PYTHON_LIKE = ["#[^\\n]*", "[rbfuRBFU]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|" +
    "\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?)"];
const JS_WORDS = `async await break case catch class const continue debugger default delete do else export
    extends false finally for from function get if import in instanceof let new null of return set static
    super switch this throw true try typeof undefined var void while with yield`;
const C_WORDS = `auto bool break case char const continue default do double else enum extern false float for
    goto if inline int long NULL register restrict return short signed sizeof static struct switch true
    typedef union unsigned void volatile while #include #define #if #ifdef #ifndef #else #endif #pragma`;

/* names: [comments, texts], keywords */
const LANGUAGES = [
    ["c h", C_LIKE, C_WORDS],
    ["cpp c++ cc hpp cxx", C_LIKE, `${C_WORDS} catch class constexpr delete explicit friend mutable namespace new
        noexcept nullptr operator override private protected public template this throw try typename using virtual`],
    ["js javascript jsx mjs", [C_LIKE[0], C_LIKE[1] + "|`(?:\\\\.|[^`\\\\])*`?"], JS_WORDS],
    ["ts typescript tsx", [C_LIKE[0], C_LIKE[1] + "|`(?:\\\\.|[^`\\\\])*`?"], `${JS_WORDS} any boolean declare enum
        implements interface keyof namespace never number private protected public readonly string type unknown`],
    ["java kotlin kt cs csharp scala", C_LIKE, `abstract boolean break byte case catch char class const continue
        default do double else enum extends false final finally float for foreach fun if implements import in
        instanceof int interface internal is long namespace new null object override package private protected
        public return sealed short static string super switch this throw throws true try using val var virtual void
        when while`],
    ["go golang", [C_LIKE[0], C_LIKE[1] + "|`[^`]*`?"], `bool break byte case chan const continue default defer else
        error fallthrough false float64 for func go goto if import int int64 interface map nil package range
        return rune select string struct switch true type uint8 var`],
    ["rust rs", [C_LIKE[0], "\"(?:\\\\.|[^\"\\\\])*\"?|'(?:\\\\.|[^'\\\\])'"], `as async await bool break const continue
        crate dyn else enum extern false fn for i32 i64 if impl in let loop match mod move mut pub ref return
        self Self static str String struct super trait true type u8 u32 u64 unsafe use usize where while`],
    ["swift", C_LIKE, `as break case catch class continue default defer do else enum extension false for func
        guard if import in init inout is let nil override private protocol public return self static struct
        switch throw throws true try var where while`],
    ["php", [C_LIKE[0] + "|#[^\\n]*", C_LIKE[1]], `abstract array as break case catch class const continue default do
        echo else elseif extends false final foreach for function global if implements interface namespace new null
        private protected public require return static switch this throw true try use var while`],
    ["py python python3", PYTHON_LIKE, `and as assert async await break class continue def del elif else except
        False finally for from global if import in is lambda match None nonlocal not or pass raise return
        self True try while with yield`],
    ["sh bash shell zsh console", SCRIPT_LIKE, `case cd do done echo elif else esac exit export fi for function if in
        local read return set shift source then trap unset until while`],
    ["rb ruby", SCRIPT_LIKE, `alias and begin break case class def do else elsif end ensure false for if in module
        next nil not or puts require rescue return self super then true unless until when while yield`],
    ["yaml yml toml ini conf", SCRIPT_LIKE, "true false null yes no on off"],
    ["json jsonc", C_LIKE, "true false null"],
    ["sql", ["--[^\\n]*|/\\*[^]*?(?:\\*/|$)", C_LIKE[1]], `add all alter and as asc between by case create delete desc
        distinct drop else end exists foreign from full group having in index inner insert int integer into is
        join key left like limit not null on or order outer primary references right select set table text
        then union unique update values varchar view when where with`, "i"],
    ["lua", ["--\\[\\[[^]*?(?:\\]\\]|$)|--[^\\n]*", C_LIKE[1]], `and break do else elseif end false for function if in
        local nil not or repeat return then true until while`],
    ["hs haskell", ["--[^\\n]*|\\{-[^]*?(?:-\\}|$)", "\"(?:\\\\.|[^\"\\\\\\n])*\"?"], `case class data deriving do else if
        import in infixl infixr instance let module newtype of then type where`],
    ["html xml svg", ["<!--[^]*?(?:-->|$)", C_LIKE[1]], "", ""],
    ["css scss", ["/\\*[^]*?(?:\\*/|$)", C_LIKE[1]], "@media @import @supports @font-face @keyframes !important"],
    ["make makefile dockerfile cmake", SCRIPT_LIKE, `FROM RUN CMD COPY ADD ENV WORKDIR EXPOSE ENTRYPOINT if else
        endif ifeq include function endfunction foreach endforeach set`],
];

/* Made when it is asked for the first time. */
const languages = new Map(); /* name -> {pattern, words} */
function language_of(name) {
    const wanted = name.toLowerCase();
    if (languages.has(wanted)) return languages.get(wanted);
    const row = LANGUAGES.find(([names]) => names.split(" ").includes(wanted));
    let found = null;
    if (row) {
        const [, [comments, texts], words, flags = ""] = row;
        const pattern = new RegExp(`(${comments})|(${texts})|((?<![\\w.])(?:0[xXbBoO][\\da-fA-F_]+|` +
            "\\d[\\d_]*\\.?\\d*(?:[eE][+-]?\\d+)?)\\w*)|([#@!]?[\\p{L}_][\\p{L}\\p{N}_-]*(?<!-))", `gu${flags}`);
        found = { pattern, flags, words: new Set(words.trim().split(/\s+/)) };
    }
    languages.set(wanted, found);
    return found;
}

/* Parts of an element: texts, and spans with the class of their kind. */
function coloured(code, name) {
    const language = code.length <= LONGEST_COLOURED && language_of(name);
    if (!language) return [code];
    const parts = [];
    let plain = 0;
    for (const found of code.matchAll(language.pattern)) {
        const [whole, comment, text, number] = found;
        const is_word = language.words.has(language.flags === "i" ? whole.toLowerCase() : whole);
        const kind = comment ? "comment" : text ? "string" : number ? "number" : is_word ? "keyword" : null;
        if (!kind) continue;
        parts.push(code.slice(plain, found.index), make("span", { class: kind, text: whole }));
        plain = found.index + whole.length;
    }
    return [...parts, code.slice(plain)];
}
