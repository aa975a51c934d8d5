/* ---- Markdown ----
 * A text is cut into blocks; each makes one element. While a text grows only the blocks whose
 * source has changed are made again, so the ones that a reader has marked stay. */

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const TABLE_RULE = /^\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const TEX = /^ {0,3}(\\\[|\$\$)/; /* formulas on their own lines */
const TASK = /^\[([ xX])\][ \t]+/;
const DEEPEST = 12; /* quotes in lists in quotes */

const is_blank = (line) => line === undefined || /^\s*$/.test(line);
const is_table = (line, next) => line.includes("|") && next !== undefined &&
    TABLE_RULE.test(next.trim()) && cells_of(line).length === cells_of(next).length;
const begins_block = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) ||
    QUOTE.test(line) || TEX.test(line) || /^ {0,3}([-*+]|1[.)])[ \t]+\S/.test(line);

function cells_of(line) {
    return line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/* [{source, element()}] */
function blocks_of(text, depth = 0) {
    const lines = text.split("\n");
    const blocks = [];
    for (let at = 0; at < lines.length;) {
        if (is_blank(lines[at])) {
            at++;
            continue;
        }
        const [end, element] = block_at(lines, at, depth);
        blocks.push({ source: lines.slice(at, end).join("\n"), element });
        at = end;
    }
    return blocks;
}

function block_at(lines, at, depth) {
    const line = lines[at];
    let found;
    if ((found = FENCE.exec(line))) return fence_at(lines, at, found);
    if ((found = HEADING.exec(line))) {
        const [, marks, title] = found;
        const text = title.trimEnd().replace(/(^|[ \t])#+$/, "").trimEnd();
        return [at + 1, () => inline(make(`h${marks.length}`), text)];
    }
    if (RULE.test(line)) return [at + 1, () => make("hr")];
    if ((found = TEX.exec(line)) && (found = tex_at(lines, at, found))) return found;
    if (depth < DEEPEST && QUOTE.test(line)) return quote_at(lines, at, depth);
    if (depth < DEEPEST && ITEM.test(line)) return list_at(lines, at, depth);
    if (is_table(line, lines[at + 1])) return table_at(lines, at);
    let end = at + 1;
    while (!is_blank(lines[end]) && !begins_block(lines[end]) &&
           !is_table(lines[end], lines[end + 1])) end++;
    const text = lines.slice(at, end).map((l) => l.trimStart()).join("\n").trimEnd();
    return [end, () => inline(make("p"), text)];
}

/* One that is not closed yet goes to the end of the text. */
function fence_at(lines, at, [, indent, marks, language]) {
    const closes = (line) => line.trim().startsWith(marks) &&
        line.trim().replaceAll(marks[0], "") === "" && !/^ {4}/.test(line);
    let end = at + 1;
    while (end < lines.length && !closes(lines[end])) end++;
    const code = lines.slice(at + 1, end)
        .map((l) => (l.startsWith(indent) ? l.slice(indent.length) : l.trimStart())).join("\n");
    const name = language.trim().split(/\s/)[0];
    const is_open = end === lines.length;
    return [is_open ? end : end + 1, () => make("div", { class: is_open ? "fence open" : "fence",
        dir: "ltr" },
        make("div", { class: "bar" }, make("span", { text: name || "text" }),
            button("Copy", (event) => copy(code, event.target),
                { "aria-label": `Copy the ${name || "text"} block` })),
        make("pre", { tabindex: "0" }, make("code", { text: code })))];
}

/* A formula stays as it is written. One that is not closed yet is text; null. */
function tex_at(lines, at, [front, mark]) {
    const close = mark === "$$" ? "$$" : "\\]";
    let end = at;
    for (let from = front.length; !is_blank(lines[end]); from = 0, end++)
        if (lines[end].indexOf(close, from) >= 0) {
            if (lines[end].slice(lines[end].indexOf(close, from) + 2).trim()) return null;
            const text = lines.slice(at, end + 1).join("\n").trim();
            return [end + 1, () => make("p", { class: "tex", text })];
        }
    return null;
}

function quote_at(lines, at, depth) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end])) end++;
    const inner = lines.slice(at, end).map((l) => l.replace(QUOTE, "")).join("\n");
    return [end, () => into(make("blockquote"), inner, depth + 1)];
}

/* Items of one kind and indentation; what stands deeper by two or more belongs to an item. */
function list_at(lines, at, depth) {
    const [, indent, mark] = ITEM.exec(lines[at]);
    const ordered = mark.length > 1;
    const is_next = (line) => {
        const item = ITEM.exec(line);
        return item && !RULE.test(line) && item[2].at(-1) === mark.at(-1) &&
            Math.abs(item[1].length - indent.length) < 2;
    };
    const is_inside = (line) => /^ */.exec(line)[0].length >= indent.length + 2;
    const items = [];
    let end = at, loose = false;
    while (end < lines.length) {
        const line = lines[end];
        if (is_blank(line)) {
            let next = end + 1;
            while (next < lines.length && is_blank(lines[next])) next++;
            if (next === lines.length || !(is_next(lines[next]) || is_inside(lines[next]))) break;
            loose = true;
            items.at(-1).push("");
        } else if (is_next(line)) {
            items.push([line.replace(ITEM, "")]);
        } else if (is_inside(line)) {
            items.at(-1).push(line.slice(Math.min(/^ */.exec(line)[0].length,
                ITEM.exec(lines[at])[0].length)));
        } else if (!is_blank(lines[end - 1]) && !begins_block(line) && !ITEM.test(line)) {
            items.at(-1).push(line);
        } else {
            break;
        }
        end++;
    }
    return [end, () => {
        const start = ordered && parseInt(mark, 10) !== 1 ? parseInt(mark, 10) : undefined;
        const list = make(ordered ? "ol" : "ul", { start });
        for (const item of items) {
            const text = item.join("\n").trim();
            const task = TASK.exec(text);
            list.append(into(make("li"), task ? text.slice(task[0].length) : text, depth + 1));
            const first = list.lastChild.firstChild;
            if (!loose && first && first.tagName === "P") first.replaceWith(...first.childNodes);
            if (task) mark_task(list.lastChild, task[1] !== " ");
        }
        return list;
    }];
}

function mark_task(item, done) {
    item.className = "task";
    item.prepend(make("input", { type: "checkbox", disabled: true, checked: done,
        "aria-label": done ? "done" : "to do" }));
}

function table_at(lines, at) {
    const sides = cells_of(lines[at + 1]).map((rule) =>
        rule.endsWith(":") ? (rule.startsWith(":") ? "centre" : "right") : undefined);
    let end = at + 2;
    while (!is_blank(lines[end]) && lines[end].includes("|")) end++;
    const rows = lines.slice(at + 2, end).map(cells_of);
    const row = (cells, tag) => make("tr", {}, ...sides.map((side, i) =>
        inline(make(tag, { class: side }), cells[i] || "")));
    return [end, () => make("div", { class: "table", tabindex: "0" }, make("table", {},
        make("thead", {}, row(cells_of(lines[at]), "th")),
        make("tbody", {}, ...rows.map((cells) => row(cells, "td")))))];
}

function into(box, text, depth) {
    box.append(...blocks_of(text, depth).map((block) => block.element()));
    return box;
}

const PUNCTUATION = /[!-\/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const ADDRESS = /https?:\/\/[^\s<>"'`]+/y;
const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const LABEL = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]/.source;
const TARGET = /\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/.source;
const SMALL = /<(?:br\s*\/?|(su[bp]|kbd)>([^<>\n]{1,100})<\/\1)>/iy;
const LINK = new RegExp(LABEL + TARGET, "y");

/* Spans of a line: code, emphasis, links. What is none is text as it stands. */
function inline(box, text, depth = 0) {
    const missing = new Set(); /* marks that close nowhere further on: looked for once */
    let plain = "", formula;
    for (let at = 0; at < text.length;) {
        if (text[at] === "\\" && (formula = formula_at(text, at, missing))) {
            box.append(plain, make("span", { class: "tex", text: formula }));
            plain = "";
            at += formula.length;
            continue;
        }
        if (text[at] === "\\" && PUNCTUATION.test(text[at + 1] || "")) {
            plain += text[at + 1];
            at += 2;
            continue;
        }
        const found = depth < DEEPEST && span_at(text, at, missing, depth);
        if (found) {
            box.append(plain, found.element);
            plain = "";
            at = found.end;
        } else {
            plain += text[at++];
        }
    }
    box.append(plain);
    return box;
}

/* \( ... \) and \[ ... \], as they are written; "" for others. */
function formula_at(text, at, missing) {
    const close = { "(": "\\)", "[": "\\]" }[text[at + 1]];
    if (!close || missing.has(close)) return "";
    const end = text.indexOf(close, at + 2);
    if (end < 0) missing.add(close);
    return end < 0 ? "" : text.slice(at, end + 2);
}

function span_at(text, at, missing, depth) {
    switch (text[at]) {
    case "`": return code_at(text, at, missing);
    case "*": case "_": case "~": return emphasis_at(text, at, missing, depth);
    case "<": return small_at(text, at, missing, depth) || link_at(text, at, missing, depth);
    case "[": case "!": case "h": return link_at(text, at, missing, depth);
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
    if (/^ .*[^ ].* $/s.test(code)) code = code.slice(1, -1);
    return { end: end + marks.length, element: make("code", { text: code }) };
}

function emphasis_at(text, at, missing, depth) {
    const c = text[at];
    const marks = text[at + 1] === c ? c + c : c;
    const begin = at + marks.length;
    if (marks === "~" || missing.has(marks) || /\s|^$/.test(text[begin] || "") ||
        (c === "_" && WORD.test(text[at - 1] || ""))) return null;
    for (let end = begin + 1; (end = text.indexOf(marks, end)) >= 0; end++) {
        let run = end;
        while (text[run] === c) run++;
        if (marks.length === 1 && run - end === 2) { /* of what is strong inside */
            end = run - 1;
            continue;
        }
        const closes = !/\s/.test(text[end - 1]) && text[end - 1] !== "\\" &&
            !(c === "_" && WORD.test(text[run] || ""));
        if (!closes) continue;
        end = run - marks.length;
        const tag = c === "~" ? "del" : marks.length === 2 ? "strong" : "em";
        return { end: end + marks.length,
            element: inline(make(tag), text.slice(begin, end), depth + 1) };
    }
    missing.add(marks);
    return null;
}

/* <sub>, <sup> and <kbd> around a few words, and <br>. */
function small_at(text, at, missing, depth) {
    SMALL.lastIndex = at;
    const found = SMALL.exec(text);
    if (!found) return null;
    const [whole, tag, inside] = found;
    return { end: at + whole.length, element: tag
        ? inline(make(tag.toLowerCase()), inside, depth + 1) : make("br") };
}

function link_at(text, at, missing, depth) {
    const match = (pattern) => {
        pattern.lastIndex = at;
        return pattern.exec(text);
    };
    let found;
    if (text[at] === "h") {
        if (WORD.test(text[at - 1] || "") || !(found = match(ADDRESS))) return null;
        const address = found[0].replace(/[.,;:!?)\]*_]+$/, "");
        return link(address, make("span", { text: address }), at + address.length);
    }
    if (text[at] === "<") {
        found = match(ANGLED);
        return found && link(found[1], make("span", { text: found[1] }), at + found[0].length);
    }
    if (missing.has("](") || text.indexOf("](", at) < 0) {
        missing.add("](");
        return null;
    }
    found = match(LINK);
    return found && link(found[2], inline(make("span"), found[1], depth + 1), at + found[0].length);
}

/* Pictures are links as well: nothing is fetched that the reader has not asked for. */
function link(address, label, end) {
    let url;
    try {
        url = new URL(address);
    } catch {
        return null;
    }
    if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
    return { end, element: make("a", { href: url.href, title: url.href, target: "_blank",
        rel: "noopener noreferrer" }, ...label.childNodes) };
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
