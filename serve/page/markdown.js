/* ---- Markdown ----
 * Blocks (blocks.js) make one element each; what is inside of them is drawn here. While a text
 * grows only the blocks whose source has changed are made again, so the ones that a reader has
 * marked stay. */

const PUNCTUATION = /[!-\/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const SMALL = /<(?:br\s*\/?|(su[bp]|kbd|b|strong|i|em|u)>([^<>\n]{1,100})<\/\1)>/iy;

/* Spans of a line: code, emphasis, links. What is none is text as it stands. links: what labels
 * stand for. */
function inline(box, text, links, depth = 0) {
    const missing = new Set(); /* marks that close nowhere further on: looked for once */
    const marks = [];
    let plain = "", found_formula, found_entity;
    for (let at = 0; at < text.length;) {
        if ((found_formula = formula_at(text, at, missing))) {
            const display = ON_ITS_OWN.test(found_formula);
            box.append(plain, formula(found_formula, display, "span"));
            plain = "";
            at += found_formula.length;
            continue;
        }
        if (text[at] === "\n" && text.slice(Math.max(0, at - 2), at) === "  " || text.startsWith("\\\n", at)) {
            box.append(plain.trimEnd(), make("br"));
            plain = "";
            at += text[at] === "\n" ? 1 : 2;
            continue;
        }
        if (text[at] === "&" && (found_entity = entity_at(text, at))) {
            plain += found_entity.text;
            at += found_entity.n;
            continue;
        }
        if ((text[at] === "*" || text[at] === "_") && depth < DEEPEST) {
            const mark = mark_at(text, at);
            box.append(plain, mark.node);
            plain = "";
            at += mark.n;
            marks.push(mark);
            continue;
        }
        if (text[at] === "\\" && PUNCTUATION.test(text[at + 1] || "")) {
            plain += text[at + 1];
            at += 2;
            continue;
        }
        const found = depth < DEEPEST && span_at(text, at, missing, depth, links);
        if (found) {
            box.append(plain, found.element);
            plain = "";
            at = found.end;
        } else {
            if (text[at] === "\n" && text[at - 1] === " ") plain = plain.trimEnd();
            plain += text[at++];
        }
    }
    box.append(plain);
    emphasise(marks);
    return box;
}

const ENTITIES = table_of(`amp=& lt=< gt=> quot=" apos=' nbsp=\u00A0 copy=© reg=® trade=™ hellip=… mdash=— ndash=–
    lsquo=‘ rsquo=’ ldquo=“ rdquo=” laquo=« raquo=» bull=• middot=· deg=° plusmn=± times=× divide=÷ frac12=½
    euro=€ pound=£ yen=¥ cent=¢ sect=§ para=¶ larr=← rarr=→ uarr=↑ darr=↓ harr=↔ rArr=⇒ hArr=⇔ le=≤ ge=≥ ne=≠
    infin=∞ asymp=≈ sum=∑ prod=∏ radic=√ alpha=α beta=β gamma=γ delta=δ pi=π sigma=σ omega=ω auml=ä ouml=ö
    uuml=ü Auml=Ä Ouml=Ö Uuml=Ü szlig=ß eacute=é egrave=è agrave=à ccedil=ç ntilde=ñ`);
const ENTITY = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w+));/y;

const ESCAPED = /\\([!-/:-@[-`{-~])|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w+);/g;

/* Where only backslashes and entities count: addresses, names of languages. */
const unescaped = (text) => text.replace(ESCAPED, (found, sign) => sign ?? entity_at(found, 0)?.text ?? found);

/* A character by its number or name; null: it is text. */
function entity_at(text, at) {
    ENTITY.lastIndex = at;
    const found = ENTITY.exec(text);
    if (!found) return null;
    const [whole, decimal, hex, name] = found;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    if (name) return ENTITIES.has(name) ? { text: ENTITIES.get(name), n: whole.length } : null;
    const good = code > 0 && code <= 0x10FFFF && !(code >= 0xD800 && code < 0xE000);
    return { text: good ? String.fromCodePoint(code) : "\uFFFD", n: whole.length };
}

/* ---- Emphasis ----
 * As CommonMark has it: runs of * and _ are texts first; then each that can close takes the nearest
 * one before it that can open, and what is between them goes into an element. */

const LONGEST_RUN = 9, FARTHEST_MARK = 40; /* runs and marks beyond these stay texts: time, depth */

function mark_at(text, at) {
    const c = text[at];
    let end = at;
    while (text[end] === c) end++;
    const is_space = (x) => x === undefined || /\s/.test(x);
    const is_sign = (x) => x !== undefined && /[\p{P}\p{S}]/u.test(x);
    const before = [...text.slice(Math.max(0, at - 2), at)].at(-1);
    const after = end < text.length ? String.fromCodePoint(text.codePointAt(end)) : undefined;
    const left = !is_space(after) && (!is_sign(after) || is_space(before) || is_sign(before));
    const right = !is_space(before) && (!is_sign(before) || is_space(after) || is_sign(after));
    const n = end - at, short = n <= LONGEST_RUN;
    return { c, n, left: n, node: document.createTextNode(text.slice(at, end)),
        opens: short && left && (c === "*" || !right || is_sign(before)),
        closes: short && right && (c === "*" || !left || is_sign(after)) };
}

const go_together = (opener, closer) => opener.opens && opener.left > 0 && opener.c === closer.c &&
    !((opener.closes || closer.opens) && (opener.n + closer.n) % 3 === 0 &&
      (opener.n % 3 !== 0 || closer.n % 3 !== 0));

function emphasise(marks) {
    for (let at = 0; at < marks.length; at++)
        while (marks[at].closes && marks[at].left > 0) {
            let from = at - 1;
            const least = Math.max(0, at - FARTHEST_MARK);
            while (from >= least && !go_together(marks[from], marks[at])) from--;
            if (from < least) break;
            put_between(marks[from], marks[at]);
            for (let i = from + 1; i < at; i++) marks[i].opens = false;
        }
}

function put_between(opener, closer) {
    const n = Math.min(2, opener.left, closer.left);
    const element = make(n === 2 ? "strong" : "em");
    while (opener.node.nextSibling !== closer.node) element.append(opener.node.nextSibling);
    opener.node.after(element);
    for (const mark of [opener, closer]) {
        mark.left -= n;
        mark.node.data = mark.node.data.slice(n);
    }
}

/* Formulas that are blocks, also in the middle of a line. */
const ON_ITS_OWN = /^(\\\[|\$\$|\\begin\{(align(at)?|flalign|gather|equation|eqnarray|multline|displaymath)\*?\})/;

/* Between dollars there may be prices: no blank inside of them, and no digit after them. */
const DOLLARS = /\$\$[^$\n]+\$\$|\$(?=\S)(?:\\.|[^\\$\n]){1,400}(?<!\s)\$(?!\d)/y;

/* \( ... \), \[ ... \], $$ ... $$, $ ... $ and \begin ... \end with their marks; "" for others. */
function formula_at(text, at, missing) {
    if (text[at] === "$") {
        DOLLARS.lastIndex = at;
        return text[at - 1] === "$" || WORD.test(text[at - 1] || "") ? "" : DOLLARS.exec(text)?.[0] || "";
    }
    if (text[at] !== "\\") return "";
    if (text[at + 1] === "b" && !missing.has("\\end")) {
        const end = environment_end(text, at);
        if (end < 0 && text.indexOf("\\end", at) < 0) missing.add("\\end");
        if (end >= 0) return text.slice(at, end);
    }
    const close = { "(": "\\)", "[": "\\]" }[text[at + 1]];
    if (!close || missing.has(close)) return "";
    const end = text.indexOf(close, at + 2);
    if (end < 0) missing.add(close);
    return end < at + 3 ? "" : text.slice(at, end + 2);
}

function span_at(text, at, missing, depth, links) {
    switch (text[at]) {
    case "`": return code_at(text, at, missing);
    case "~": return struck_at(text, at, missing, depth, links);
    case "<": return small_at(text, at, missing, depth, links) || link_at(text, at, missing, depth, links);
    case "[": case "!": case "h": return link_at(text, at, missing, depth, links);
    }
    return null;
}

function code_at(text, at, missing) {
    const mark = /`+/y;
    mark.lastIndex = at;
    const marks = mark.exec(text)[0];
    if (text[at - 1] === "`" || missing.has(marks)) return null;
    let end = at + marks.length;
    while ((end = text.indexOf(marks, end)) >= 0) {
        mark.lastIndex = end;
        const run = mark.exec(text)[0];
        if (run.length === marks.length) break;
        end += run.length;
    }
    if (end < 0) {
        missing.add(marks);
        return null;
    }
    let code = text.slice(at + marks.length, end);
    code = code.replaceAll("\n", " ");
    if (/^ .*[^ ].* $/s.test(code)) code = code.slice(1, -1);
    return { end: end + marks.length, element: make("code", { text: code }) };
}

function struck_at(text, at, missing, depth, links) {
    const begin = at + 2;
    if (text[at + 1] !== "~" || missing.has("~~") || /\s|^$/.test(text[begin] || "")) return null;
    let end = begin;
    while ((end = text.indexOf("~~", end + 1)) >= 0 && /\s/.test(text[end - 1]));
    if (end < 0) {
        missing.add("~~");
        return null;
    }
    return { end: end + 2, element: inline(make("del"), text.slice(begin, end), links, depth + 1) };
}

/* <sub>, <b> and their like around a few words, and <br>. */
function small_at(text, at, missing, depth, links) {
    SMALL.lastIndex = at;
    const found = SMALL.exec(text);
    if (!found) return null;
    const [whole, tag, inside] = found;
    return { end: at + whole.length, element: tag
        ? inline(make(tag.toLowerCase()), inside, links, depth + 1) : make("br") };
}

function draw_markdown(box, text) {
    const blocks = blocks_of(text);
    const old = box.sources || [];
    let same = 0;
    while (same < blocks.length && blocks[same].source === old[same]) same++;
    while (box.childNodes.length > same) box.lastChild.remove(); /* also what is provisional */
    for (const block of blocks.slice(same)) {
        const element = block.element();
        element.dir ||= "auto";
        box.append(element);
    }
    box.sources = blocks.map((block) => block.source);
}

/* After the last character of what is drawn, as plain text: what it marks up is not verified. But
 * a block of code has its place from the beginning, so that it does not jump when it is. */
function draw_provisional(box, verified, text) {
    box.querySelectorAll(".provisional").forEach((element) => element.remove());
    if (!text) return;
    const block = box.lastElementChild;
    const leaves = block ? [block, ...block.querySelectorAll("p, li, td, .open code")] : [];
    const leaf = leaves.findLast((element) => element.matches("p, li, td, h1, h2, h3, .open code"));
    const blanks = /\s*$/.exec(verified)[0]; /* which blocks have dropped */
    const whole = (verified.trim() ? blanks : "\n") + text;
    const n_newlines = /^\s*/.exec(whole)[0].split("\n").length - 1;
    const fence = leaf?.tagName === "CODE" ? -1 : whole.search(/\n {0,3}(```|~~~)/);
    const plain = fence < 0 ? whole : whole.slice(0, fence).trimEnd();
    const span = make("span", { class: "provisional", "aria-hidden": "true", text: plain });
    if (leaf?.tagName === "CODE") {
        span.textContent = text;
        leaf.append(span);
    } else if (!plain.trim()) {
        span.remove();
    } else if (!leaf || n_newlines >= (leaf.tagName[0] === "H" ? 1 : 2)) { /* its own block */
        span.textContent = plain.trimStart();
        box.append(span);
    } else {
        leaf.append(span);
    }
    if (fence >= 0)
        box.append(make("div", { class: "provisional", inert: true },
            ...blocks_of(whole.slice(fence)).map((found) => found.element())));
}
