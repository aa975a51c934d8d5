/* ---- Formulas ----
 * TeX as models write it becomes MathML, which browsers draw. What this reader does not know stays
 * as it is written, whole: half a formula would say something else. */

const LONGEST_FORMULA = 10000, DEEPEST_FORMULA = 40;
const MATHML = "http://www.w3.org/1998/Math/MathML";

const table_of = (words) => new Map(words.trim().split(/\s+/).map((word) => word.split("=")));

/* Letters and signs that stand for themselves. */
const TEX_LETTERS = table_of(`alpha=α beta=β gamma=γ delta=δ epsilon=ϵ varepsilon=ε zeta=ζ eta=η theta=θ
    vartheta=ϑ iota=ι kappa=κ lambda=λ mu=μ nu=ν xi=ξ omicron=ο pi=π varpi=ϖ rho=ρ varrho=ϱ sigma=σ
    varsigma=ς tau=τ upsilon=υ phi=ϕ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ
    Pi=Π Sigma=Σ Upsilon=Υ Phi=Φ Psi=Ψ Omega=Ω ell=ℓ hbar=ℏ imath=ı jmath=ȷ Re=ℜ Im=ℑ wp=℘ aleph=ℵ
    beth=ℶ infty=∞ partial=∂ nabla=∇ emptyset=∅ varnothing=∅ angle=∠ triangle=△ degree=° circ=∘
    square=□ Box=□ blacksquare=■ top=⊤ bot=⊥ dagger=† prime=′ %=% $=$ #=# _=_ &=&`);
const TEX_SIGNS = table_of(`times=× div=÷ cdot=⋅ pm=± mp=∓ ast=∗ star=⋆ bullet=∙ oplus=⊕ ominus=⊖ otimes=⊗
    odot=⊙ cup=∪ cap=∩ setminus=∖ wedge=∧ land=∧ vee=∨ lor=∨ neg=¬ lnot=¬ le=≤ leq=≤ leqslant=⩽ ge=≥
    geq=≥ geqslant=⩾ ne=≠ neq=≠ equiv=≡ approx=≈ cong=≅ sim=∼ simeq=≃ propto=∝ ll=≪ gg=≫ prec=≺ succ=≻
    in=∈ notin=∉ ni=∋ subset=⊂ subseteq=⊆ subsetneq=⊊ supset=⊃ supseteq=⊇ mid=∣ nmid=∤ parallel=∥
    perp=⟂ vdash=⊢ models=⊨ forall=∀ exists=∃ nexists=∄ therefore=∴ because=∵ to=→ rightarrow=→
    leftarrow=← gets=← leftrightarrow=↔ Rightarrow=⇒ implies=⟹ Leftarrow=⇐ impliedby=⟸ Leftrightarrow=⇔
    iff=⟺ mapsto=↦ longrightarrow=⟶ longleftarrow=⟵ longmapsto=⟼ hookrightarrow=↪ rightharpoonup=⇀
    rightleftharpoons=⇌ uparrow=↑ downarrow=↓ updownarrow=↕ nearrow=↗ searrow=↘ ldots=… dots=… dotsc=…
    cdots=⋯ dotsb=⋯ vdots=⋮ ddots=⋱ colon=: coloneqq=≔ vert=| lvert=| rvert=| Vert=‖ lVert=‖ rVert=‖
    |=‖ {={ }=} lbrace={ rbrace=} langle=⟨ rangle=⟩ lceil=⌈ rceil=⌉ lfloor=⌊ rfloor=⌋ backslash=\\
    lbrack=[ rbrack=] triangleq=≜ doteq=≐ asymp=≍ bowtie=⋈ diamond=⋄`);
const TEX_SUMS = table_of(`sum=∑ prod=∏ coprod=∐ bigcup=⋃ bigcap=⋂ bigoplus=⨁ bigotimes=⨂ bigvee=⋁
    bigwedge=⋀`);
const TEX_INTEGRALS = table_of("int=∫ iint=∬ iiint=∭ oint=∮");
const TEX_FUNCTIONS = new Set(`sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth exp log ln
    lg det dim ker deg gcd hom arg Pr`.trim().split(/\s+/));
const TEX_LIMITS = new Set("lim max min sup inf limsup liminf argmax argmin".split(" "));
const TEX_ACCENTS = table_of(`hat=^ widehat=^ bar=¯ overline=¯ vec=→ dot=˙ ddot=¨ tilde=~ widetilde=~
    check=ˇ breve=˘ acute=´ grave=\` overrightarrow=→ overbrace=⏞`);
const TEX_UNDER = table_of("underline=_ underbrace=⏟");
const TEX_SPACES = new Map([[",", .167], [":", .222], [">", .222], [";", .278], ["!", -.167], [" ", .25],
    ["quad", 1], ["qquad", 2], ["thinspace", .167], ["enspace", .5]]);
const TEX_NOTHING = new Set(`displaystyle textstyle scriptstyle limits nolimits nonumber notag big Big bigg
    Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr bigm Bigm`.trim().split(/\s+/));
const TEX_TABLES = new Map([["matrix", ["", ""]], ["smallmatrix", ["", ""]], ["pmatrix", ["(", ")"]],
    ["bmatrix", ["[", "]"]], ["Bmatrix", ["{", "}"]], ["vmatrix", ["|", "|"]], ["Vmatrix", ["‖", "‖"]],
    ["cases", ["{", ""]], ["array", ["", ""]], ["aligned", ["", ""]], ["align", ["", ""]], ["align*", ["", ""]],
    ["split", ["", ""]], ["gathered", ["", ""]], ["gather", ["", ""]], ["gather*", ["", ""]],
    ["equation", ["", ""]], ["equation*", ["", ""]], ["alignat", ["", ""]], ["alignat*", ["", ""]],
    ["alignedat", ["", ""]], ["flalign", ["", ""]], ["flalign*", ["", ""]], ["eqnarray", ["", ""]],
    ["eqnarray*", ["", ""]], ["multline", ["", ""]], ["multline*", ["", ""]], ["dcases", ["{", ""]],
    ["rcases", ["", "}"]], ["displaymath", ["", ""]], ["math", ["", ""]]]);
/* Where the letters of an alphabet begin, and those that are elsewhere. */
const TEX_ALPHABETS = { mathbb: [0x1D538, 0x1D552, 0x1D7D8, "C=ℂ H=ℍ N=ℕ P=ℙ Q=ℚ R=ℝ Z=ℤ"],
    mathcal: [0x1D49C, 0x1D4B6, 0, "B=ℬ E=ℰ F=ℱ H=ℋ I=ℐ L=ℒ M=ℳ R=ℛ e=ℯ g=ℊ o=ℴ"],
    mathfrak: [0x1D504, 0x1D51E, 0, "C=ℭ H=ℌ I=ℑ R=ℜ Z=ℨ"], mathbf: [0x1D400, 0x1D41A, 0x1D7CE, ""],
    mathsf: [0x1D5A0, 0x1D5BA, 0x1D7E2, ""], mathtt: [0x1D670, 0x1D68A, 0x1D7F6, ""] };
Object.assign(TEX_ALPHABETS, { mathscr: TEX_ALPHABETS.mathcal, boldsymbol: TEX_ALPHABETS.mathbf,
    bm: TEX_ALPHABETS.mathbf });
const TEX_TEXT = new Set(["text", "textrm", "textbf", "textit", "textsf", "texttt", "mbox", "mathrm",
    "operatorname", "mathit", "operatorname*"]);

/* Where a formula that is between \begin{name} and \end{name} ends; -1: `at` begins none, or it has
 * no end before an empty line. */
const BEGIN = /\\begin\{([a-zA-Z]+\*?)\}/y;
function environment_end(text, at) {
    BEGIN.lastIndex = at;
    const found = BEGIN.exec(text);
    if (!found) return -1;
    const begin = found[0], end = begin.replace("begin", "end");
    const blank = /\n[ \t]*(\n|$)/g;
    blank.lastIndex = at;
    const last = blank.exec(text)?.index ?? text.length;
    for (let open = 1, from = at + begin.length; ;) {
        const close = text.indexOf(end, from), inner = text.indexOf(begin, from);
        if (close < 0 || close > last) return -1;
        const opens = inner >= 0 && inner < close;
        from = opens ? inner + begin.length : close + end.length;
        open += opens ? 1 : -1;
        if (!open) return from;
    }
}

function math(tag, properties = {}, ...children) {
    const element = document.createElementNS(MATHML, tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    element.append(...children);
    return element;
}

/* A <math> for the source between its marks; null: it stays as it is written. */
function formula_of(source, display) {
    if (source.length > LONGEST_FORMULA) return null;
    try {
        const reader = { words: words_of_tex(source), at: 0, depth: 0, display };
        const inside = row_of(read_until(reader, () => false));
        return math("math", display ? { display: "block", alttext: source } : { alttext: source }, inside);
    } catch (why) {
        if (typeof why !== "string") throw why;
        return null;
    }
}

const words_of_tex = (source) => source.replace(/(?<!\\)%.*$/gm, "")
    .match(/\\(?:operatorname\*|[a-zA-Z]+|[^])|\d+(?:\.\d+)?|\s+|[^]/gu) || [];

const row_of = (parts) => parts.length === 1 ? parts[0] : math("mrow", {}, ...parts);
const peek = (reader) => reader.words[reader.at];

function next_word(reader) {
    if (reader.at >= reader.words.length) throw "it ends too early";
    return reader.words[reader.at++];
}

function skip_blanks(reader) {
    while (/^\s/.test(peek(reader) ?? "")) reader.at++;
}

/* Everything up to a word that ends it, which is left. */
function read_until(reader, ends) {
    if (++reader.depth > DEEPEST_FORMULA) throw "it is too deep";
    const parts = [];
    for (;;) {
        skip_blanks(reader);
        const word = peek(reader);
        if (word === undefined || ends(word)) break;
        if (["}", "\\right", "&", "\\\\", "\\end"].includes(word)) throw `${word} has no place`;
        if (word === "^" || word === "_" || word === "'") parts.push(read_scripts(reader, math("mrow")));
        else {
            const base = read_atom(reader);
            if (base) parts.push(read_scripts(reader, base));
        }
    }
    reader.depth--;
    return parts;
}

function read_scripts(reader, base) {
    let low, high, primes = "";
    for (;;) {
        skip_blanks(reader);
        const word = peek(reader);
        if (word === "\\limits" || word === "\\nolimits") {
            base.limits = word === "\\limits";
            reader.at++;
        } else if (word === "'") {
            primes += "′";
            reader.at++;
        } else if (word === "_" && !low) {
            reader.at++;
            low = read_argument(reader);
        } else if (word === "^" && !high) {
            reader.at++;
            high = read_argument(reader);
        } else if (word === "^" || word === "_") {
            throw "two of a kind";
        } else {
            break;
        }
    }
    if (primes) high = row_of([math("mo", {}, primes), ...(high ? [high] : [])]);
    if (!low && !high) return base;
    const names = base.limits ? ["munder", "mover", "munderover"] : ["msub", "msup", "msubsup"];
    return math(low && high ? names[2] : low ? names[0] : names[1], {}, base,
        ...[low, high].filter(Boolean));
}

/* A group, or one atom: of a number its first digit alone. */
function read_argument(reader) {
    skip_blanks(reader);
    const word = peek(reader);
    if (/^\d./.test(word ?? "")) {
        reader.words.splice(reader.at, 1, word[0], word.slice(1));
        return math("mn", {}, next_word(reader));
    }
    return read_atom(reader) || math("mrow");
}

function read_group(reader) {
    const parts = read_until(reader, (word) => word === "}");
    if (next_word(reader) !== "}") throw "a group has no end";
    return row_of(parts);
}

/* The words of a group as they are. */
function read_text(reader) {
    skip_blanks(reader);
    if (next_word(reader) !== "{") throw "a text has no group";
    let text = "";
    for (let depth = 1, word; ;) {
        word = next_word(reader);
        if (word === "{") depth++;
        else if (word === "}" && --depth === 0) return text;
        else if (/^\\[a-zA-Z]/.test(word)) throw "a command in a text";
        else text += word.replace(/^\\/, "");
    }
}

const sign = (text, properties) => math("mo", properties, text);
const fence = (text) => sign(text === "." ? "" : text, { stretchy: "true" });

function read_atom(reader) {
    const word = next_word(reader);
    if (word === "{") return read_group(reader);
    if (/^\d/.test(word)) return math("mn", {}, word);
    if (/^\p{L}$/u.test(word)) return math("mi", {}, word);
    if (word[0] === "\\") return read_command(reader, word.slice(1));
    if (word === "~") return math("mspace", { width: "0.25em" });
    if (word === "$" || word === "#") throw `${word} has no place`;
    return sign(word === "-" ? "−" : word === "*" ? "∗" : word, /[()[\]|]/.test(word) ? { stretchy: "false" } : {});
}

function limits_of(element, always) {
    element.limits = always;
    return element;
}

function read_command(reader, name) {
    if (TEX_LETTERS.has(name)) return math("mi", {}, TEX_LETTERS.get(name));
    if (TEX_SIGNS.has(name)) return sign(TEX_SIGNS.get(name), { stretchy: "false" });
    if (TEX_SUMS.has(name)) return limits_of(sign(TEX_SUMS.get(name)), reader.display);
    if (TEX_INTEGRALS.has(name)) return sign(TEX_INTEGRALS.get(name));
    if (TEX_FUNCTIONS.has(name)) return math("mi", {}, name);
    if (TEX_LIMITS.has(name)) return limits_of(math("mi", {}, name), reader.display);
    if (TEX_SPACES.has(name)) return math("mspace", { width: `${TEX_SPACES.get(name)}em` });
    if (TEX_NOTHING.has(name)) return null;
    if (name === "label") {
        read_text(reader);
        return null;
    }
    if (TEX_TEXT.has(name)) return math(/^(mathrm|mathit|op)/.test(name) ? "mi" : "mtext",
        name === "mathit" ? {} : { mathvariant: "normal" }, read_text(reader).replace(/^ | $/g, "\u00A0"));
    if (TEX_ACCENTS.has(name)) return math("mover", { accent: "true" }, read_argument(reader),
        sign(TEX_ACCENTS.get(name), { stretchy: /^(wide|over)/.test(name) }));
    if (TEX_UNDER.has(name)) return math("munder", {}, read_argument(reader), sign(TEX_UNDER.get(name)));
    if (TEX_ALPHABETS[name]) return in_alphabet(read_argument(reader), TEX_ALPHABETS[name]);
    switch (name) {
    case "frac": case "dfrac": case "tfrac": case "cfrac":
        return math("mfrac", {}, read_argument(reader), read_argument(reader));
    case "binom": case "dbinom":
        return math("mrow", {}, fence("("), math("mfrac", { linethickness: "0" },
            read_argument(reader), read_argument(reader)), fence(")"));
    case "sqrt": return read_root(reader);
    case "left": return read_fenced(reader);
    case "middle": return fence(read_delimiter(reader));
    case "begin": return read_table(reader);
    case "overset": case "stackrel": {
        const over = read_argument(reader);
        return math("mover", {}, read_argument(reader), over);
    }
    case "underset": {
        const under = read_argument(reader);
        return math("munder", {}, read_argument(reader), under);
    }
    case "not": {
        const denied = read_argument(reader);
        denied.append("\u0338");
        return denied;
    }
    case "boxed": return math("mrow", { class: "boxed" }, read_argument(reader));
    case "phantom": return math("mphantom", {}, read_argument(reader));
    case "tag": return math("mtext", {}, `\u2003(${read_text(reader)})`);
    case "bmod": case "mod": return sign("mod", { lspace: ".3em", rspace: ".3em" });
    case "pmod": return math("mrow", {}, sign("("), math("mi", {}, "mod"), math("mspace", { width: ".3em" }),
        read_argument(reader), sign(")"));
    }
    throw `\\${name} is not known`;
}

/* Letters and digits below an element, in another alphabet. */
function in_alphabet(element, [upper, lower, digits, others]) {
    const other = table_of(others || "=");
    const shift = (c) => other.get(c) || (c >= "A" && c <= "Z" ? String.fromCodePoint(upper + c.charCodeAt() - 65)
        : c >= "a" && c <= "z" ? String.fromCodePoint(lower + c.charCodeAt() - 97)
        : digits && c >= "0" && c <= "9" ? String.fromCodePoint(digits + c.charCodeAt() - 48) : c);
    const leaves = element.children.length ? element.querySelectorAll("mi, mn") : [element];
    for (const leaf of leaves) leaf.textContent = [...leaf.textContent].map(shift).join("");
    return element;
}

function read_root(reader) {
    skip_blanks(reader);
    if (peek(reader) !== "[") return math("msqrt", {}, read_argument(reader));
    reader.at++;
    const order = row_of(read_until(reader, (word) => word === "]"));
    next_word(reader);
    return math("mroot", {}, read_argument(reader), order);
}

function read_delimiter(reader) {
    skip_blanks(reader);
    const word = next_word(reader);
    const text = word[0] === "\\" ? TEX_SIGNS.get(word.slice(1)) : word === "<" ? "⟨" : word === ">" ? "⟩" : word;
    if (!text || /^[\p{L}\d{}]/u.test(text) && word[0] !== "\\") throw "no delimiter";
    return text;
}

function read_fenced(reader) {
    const open = fence(read_delimiter(reader));
    const inside = read_until(reader, (word) => word === "\\right");
    next_word(reader);
    return math("mrow", {}, open, ...inside, fence(read_delimiter(reader)));
}

function read_table(reader) {
    const name = read_text(reader), fences = TEX_TABLES.get(name);
    if (!fences) throw `${name} is not known`;
    const columns = name === "array" ? read_text(reader).replace(/[^lcr]/g, "") : "";
    if (/^align(ed)?at/.test(name)) read_text(reader); /* how many columns */
    const is_left = (i) => columns ? columns[i] === "l" : /cases$/.test(name);
    const sides = /^(align|split|flalign)/.test(name) ? (i) => i % 2 ? "left" : "right"
        : (i) => columns[i] === "r" ? "right" : is_left(i) ? "left" : "centre";
    const rows = [[]];
    for (;;) {
        const cell = read_until(reader, (word) => ["&", "\\\\", "\\end"].includes(word));
        rows.at(-1).push(math("mtd", { class: sides(rows.at(-1).length) }, ...cell));
        const word = next_word(reader);
        if (word === "\\end") break;
        if (word === "\\\\") {
            skip_distance(reader);
            rows.push([]);
        }
    }
    if (read_text(reader) !== name) throw "another end";
    if (rows.length > 1 && rows.at(-1).length === 1 && !rows.at(-1)[0].childNodes.length) rows.pop();
    const display = /^(align|split|gather|equation|flalign|eqnarray|multline|display|.*cases)/.test(name)
        ? { displaystyle: !/^r?cases/.test(name) } : {};
    const table = math("mtable", display, ...rows.map((cells) => math("mtr", {}, ...cells)));
    const [open, close] = fences;
    return open || close ? math("mrow", {}, fence(open), table, fence(close)) : table;
}

/* [2pt] after the end of a row. */
function skip_distance(reader) {
    if (peek(reader) !== "[" || !/^-?\d/.test(reader.words[reader.at + 1])) return;
    while (next_word(reader) !== "]");
}
