/* ---- Blocks of Markdown ----
 * As CommonMark has it: line by line, with the containers that are open (quotes, lists, items) and
 * the leaf that still grows. A line first says which containers it continues, then what it begins.
 *
 *   {type, children}: document, quote, list, item, details      {type, lines}: all others */

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$/;
const HEADING = /^(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^([-*_])([ \t]*\1){2,}[ \t]*$/;
const ITEM = /^([-*+]|\d{1,9}[.)])(?=[ \t]|$)/;
const TABLE_RULE = /^\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const TEX = /^(\\\[|\$\$|\\begin\{[a-zA-Z]+\*?\})/; /* formulas on their own lines */
const DETAILS = /^<details(?:[ \t]+open(?:=""|="open")?)?[ \t]*>[ \t]*/i;
const DETAILS_END = /^(.*?)<\/details>[ \t]*$/i;
const SUMMARY = /^<summary>(.*?)<\/summary>[ \t]*/i;
const UNDERLINE = /^(=+|-+)[ \t]*$/; /* of a heading, below its words */
const FOOTNOTE = /^\[\^([^\s\]]{1,40})\]:[ \t]*/;
const TASK = /^\[([ xX])\][ \t]+/;
const DEEPEST = 12; /* quotes in lists in quotes */
const MOST_TEX_LINES = 60;

const is_blank = (line) => line === undefined || /^\s*$/.test(line);

function cells_of(line) {
    return line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/* What is left of a line, and its column: a tab goes to the next fourth one. */
class line_reader {
    constructor(line) {
        this.rest = line;
        this.column = 0;
    }

    /* Columns of its blanks. */
    indent() {
        let column = this.column;
        for (const c of this.rest)
            if (c === " ") column++;
            else if (c === "\t") column += 4 - column % 4;
            else break;
        return column - this.column;
    }

    /* Blanks of at most n columns. */
    skip(n) {
        while (n > 0 && /^[ \t]/.test(this.rest)) {
            const width = this.rest[0] === "\t" ? 4 - this.column % 4 : 1;
            if (width > n) this.rest = " ".repeat(width) + this.rest.slice(1);
            const step = width > n ? 1 : width;
            this.rest = this.rest.slice(1);
            this.column += step;
            n -= step;
        }
    }

    /* Characters that are no blanks. */
    take(n) {
        this.rest = this.rest.slice(n);
        this.column += n;
    }
}

class block_reader {
    constructor(text) {
        this.lines = text.split("\n");
        this.document = { type: "document", children: [] };
        this.open = [this.document];
        this.leaf = null; /* of the innermost container, if it may grow */
        this.was_blank = false; /* the line before, in a list */
        this.links = new Map(); /* label -> address */
        this.at = 0;
        for (; this.at < this.lines.length; this.at++) this.read_line(new line_reader(this.lines[this.at]));
        this.end_leaf();
    }

    read_line(line) {
        let depth = 1;
        while (depth < this.open.length && continues(this.open[depth], line)) depth++;
        this.depth = depth;
        this.whole = depth === this.open.length; /* it continues all */
        if (this.whole && this.leaf && this.grow_leaf(line)) return;
        while (this.begin_container(line));
        const folds = this.open.findLastIndex(({ type }) => type === "details");
        const ends = folds >= 0 && DETAILS_END.exec(line.rest);
        if (ends) line.rest = ends[1];
        if (is_blank(line.rest)) this.take_blank();
        else if (this.begin_leaf(line)) this.was_blank = false;
        else this.take_words(line);
        if (ends) this.end_details(folds);
    }

    end_details(at) {
        this.end_leaf();
        this.open[at].closed = true;
        this.open.length = at;
        this.was_blank = false;
    }

    /* Leaves that take lines as they are. */
    grow_leaf(line) {
        const { leaf } = this;
        if (leaf.type === "fence") {
            const closes = line.indent() < 4 && line.rest.trim();
            if (closes && closes.startsWith(leaf.mark) && !closes.replaceAll(leaf.mark[0], "")) {
                leaf.closed = true;
                this.end_leaf();
            } else {
                line.skip(Math.min(leaf.indent, line.indent()));
                leaf.lines.push(line.rest);
            }
            this.was_blank = false;
            return true;
        }
        if (leaf.type === "tex") {
            leaf.lines.push(line.rest);
            if (this.lines.length && leaf.last === this.at) this.end_leaf();
            return true;
        }
        if (leaf.type === "code" && (line.indent() >= 4 || is_blank(line.rest))) {
            this.was_blank = is_blank(line.rest);
            line.skip(4);
            leaf.lines.push(line.rest);
            return true;
        }
        if (leaf.type === "table" && line.rest.includes("|") && line.indent() < 4) {
            leaf.lines.push(line.rest);
            return true;
        }
        return false;
    }

    /* True: a quote or an item has begun, and more may. */
    begin_container(line) {
        const indent = line.indent();
        if (indent >= 4 || this.depth > 2 * DEEPEST) return false;
        const text = line.rest.trimStart();
        if (text[0] === ">") {
            this.add({ type: "quote", children: [] });
            take_quote(line);
            return true;
        }
        if (text[0] === "<") return this.begin_details(line, text);
        const found = ITEM.exec(text);
        const is_words = this.whole && this.leaf?.type === "words";
        if (!found || RULE.test(text) || (is_words && (UNDERLINE.test(text) || this.begins_table(text) ||
            !/^([-*+]|1[.)])[ \t]+\S/.test(text)))) return false;
        this.add_item(line, indent, found[1]);
        return true;
    }

    /* <details>, or its <summary>. */
    begin_details(line, text) {
        const found = DETAILS.exec(text);
        if (found) this.add({ type: "details", children: [], shows: /open/i.test(found[0]) });
        const inner = this.open.at(-1);
        line.rest = text.slice(found ? found[0].length : 0);
        const summary = this.depth === this.open.length && inner.type === "details" && !inner.summary &&
            !inner.children.length && SUMMARY.exec(line.rest);
        if (summary) {
            inner.summary = summary[1];
            line.rest = line.rest.slice(summary[0].length);
        }
        return Boolean(found || summary);
    }

    add_item(line, indent, mark) {
        const kind = mark.at(-1);
        if (this.open[this.depth - 1].type !== "list" || this.open[this.depth - 1].kind !== kind)
            this.add({ type: "list", kind, children: [], first: mark.length > 1 ? parseInt(mark, 10) : undefined });
        line.skip(indent);
        line.take(mark.length);
        const blanks = is_blank(line.rest) || line.indent() > 4 ? 1 : line.indent();
        this.add({ type: "item", children: [], width: indent + mark.length + blanks, line: this.at,
            number: parseInt(mark, 10) });
        line.skip(blanks);
    }

    /* What the line does not continue is closed. A list has only items. */
    add(block) {
        this.end_leaf();
        this.open.length = this.depth;
        while (this.open.at(-1).type === "list" && block.type !== "item") this.open.pop();
        const parent = this.open.at(-1);
        if (this.was_blank && parent.children.length)
            (parent.type === "item" ? this.open.at(-2) : parent).loose = true;
        this.was_blank = false;
        block.begin = this.at;
        parent.children.push(block);
        if (block.children) this.open.push(block);
        else this.leaf = block;
        this.depth = this.open.length;
        this.whole = true;
    }

    take_blank() {
        this.end_leaf();
        this.open.length = this.depth;
        const inner = this.open.at(-1);
        this.was_blank = inner.type !== "quote" && inner.line !== this.at;
    }

    /* True: the line is one, or begins one. */
    begin_leaf(line) {
        const indent = line.indent(), text = line.rest.trimStart();
        const words = this.leaf?.type === "words" ? this.leaf : null;
        let found;
        if (indent >= 4) {
            if (words) return false;
            this.add({ type: "code", lines: [] });
            line.skip(4);
            this.leaf.lines.push(line.rest);
        } else if ((found = HEADING.exec(text))) {
            const title = (found[2] || "").trimEnd().replace(/(^|[ \t])#+$/, "").trimEnd();
            this.add({ type: "heading", level: found[1].length, lines: [title] });
            this.leaf = null;
        } else if ((found = FENCE.exec(text))) {
            this.add({ type: "fence", mark: found[1], name: found[2], indent, lines: [] });
        } else if (words && this.whole && (found = UNDERLINE.exec(text)) && this.take_links(words)) {
            words.type = "heading";
            words.level = found[1][0] === "=" ? 1 : 2;
            this.leaf = null;
        } else if (FOOTNOTE.test(text)) {
            this.add({ type: "words", lines: [text] });
        } else if (RULE.test(text)) {
            this.add({ type: "rule", lines: [] });
            this.leaf = null;
        } else if (this.begins_table(text)) {
            const head = words.lines.pop();
            if (!words.lines.length) this.open.at(-1).children.pop();
            this.leaf = null;
            this.add({ type: "table", lines: [head, text] });
            if (!words.lines.length) this.leaf.begin = words.begin;
        } else {
            return this.begin_tex(text);
        }
        return true;
    }

    begins_table(text) {
        const head = this.whole && this.leaf?.type === "words" && this.leaf.lines.at(-1);
        return head && head.includes("|") && TABLE_RULE.test(text.trim()) &&
            cells_of(head).length === cells_of(text).length;
    }

    /* One whose end does not come before the next empty line is text. */
    begin_tex(text) {
        const found = TEX.exec(text);
        if (!found) return false;
        if (found[1].length > 2) return this.begin_environment(text);
        const close = found[1] === "$$" ? "$$" : "\\]";
        for (let at = this.at, from = this.lines[at].indexOf(found[1]) + 2;
            !is_blank(this.lines[at]) && at < this.at + MOST_TEX_LINES; at++, from = 0) {
            const end = this.lines[at].indexOf(close, from);
            if (end < 0) continue;
            if (this.lines[at].slice(end + 2).trim()) return false;
            this.add({ type: "tex", lines: [text], last: at });
            if (at === this.at) this.leaf = null;
            return true;
        }
        return false;
    }

    /* \begin{align} and others, without marks around them. */
    begin_environment(text) {
        const rest = this.lines.slice(this.at, this.at + MOST_TEX_LINES).join("\n");
        const end = environment_end(rest, rest.indexOf(text));
        if (end < 0 || /^[ \t]*[^ \t\n]/.test(rest.slice(end))) return false;
        const last = this.at + rest.slice(0, end).split("\n").length - 1;
        this.add({ type: "tex", lines: [text], last });
        if (last === this.at) this.leaf = null;
        return true;
    }

    /* Of a paragraph, which also continues where its containers do not. */
    take_words(line) {
        const text = line.rest.trimStart();
        this.was_blank = this.leaf?.type !== "words" && this.was_blank;
        if (this.leaf?.type === "words" && (this.whole || this.open.length > this.depth)) {
            this.leaf.lines.push(text);
            return;
        }
        this.add({ type: "words", lines: [text] });
    }

    end_leaf() {
        const { leaf } = this;
        this.leaf = null;
        if (leaf?.type === "words") this.take_links(leaf);
        const note = leaf?.type === "words" && FOOTNOTE.exec(leaf.lines[0]);
        if (note) this.links.set(`^${note[1]}`, "");
        if (leaf?.type === "code") while (is_blank(leaf.lines.at(-1))) leaf.lines.pop();
    }

    /* [label]: address, in front of a paragraph. What the page would not follow stays as it is.
     * False: nothing is left. */
    take_links(words) {
        for (;;) {
            const text = words.lines.join("\n");
            const found = DEFINITION.exec(text);
            const address = found && safe_address(unescaped(found[2] ?? found[3]));
            if (!address) return text.trim() !== "";
            const label = label_of(found[1]);
            if (!this.links.has(label)) this.links.set(label, address);
            words.lines = text.slice(found[0].length).split("\n");
            if (words.lines.length === 1 && !words.lines[0]) words.lines = [];
            if (!words.lines.length) {
                words.type = "nothing";
                return false;
            }
        }
    }
}

function take_quote(line) {
    line.skip(3);
    line.take(1);
    if (/^[ \t]/.test(line.rest)) line.skip(1);
}

function continues(block, line) {
    const indent = line.indent();
    switch (block.type) {
    case "list": case "details": return true;
    case "quote":
        if (indent >= 4 || line.rest.trimStart()[0] !== ">") return false;
        take_quote(line);
        return true;
    }
    if (is_blank(line.rest)) return block.children.length > 0;
    if (indent < block.width) return false;
    line.skip(block.width);
    return true;
}

/* [{source, element()}] of the outermost blocks, and what they refer to. */
function blocks_of(text) {
    const { document: { children }, lines, links } = new block_reader(text);
    const all = [...links].join("\n");
    return children.map((block, i) => {
        const source = lines.slice(block.begin, children[i + 1]?.begin).join("\n");
        return { source: source.includes("[") ? `${source}\n${all}` : source,
            element: () => element_of(block, links) };
    });
}

function element_of(block, links) {
    const { type, lines, children } = block;
    const text = lines?.join("\n");
    switch (type) {
    case "heading": return inline(make(`h${block.level}`), text.trimEnd(), links);
    case "rule": return make("hr");
    case "fence": return code_block(text, unescaped(block.name.trim().split(/\s/)[0]), !block.closed);
    case "code": return code_block(text, "", false);
    case "table": return table_of_lines(lines, links);
    case "tex": return formula(text.trim(), true, "p");
    case "quote": return into(make("blockquote"), children, links);
    case "list": return list_of(block, links);
    case "details": return into(make("details", { class: "fold", open: block.shows || !block.closed },
        inline(make("summary"), block.summary || "Details", links)), children, links);
    case "nothing": return document.createTextNode("");
    }
    const note = FOOTNOTE.exec(text);
    return note
        ? make("p", { class: "footnote" }, make("sup", { text: note[1] }), " ",
            ...inline(make("span"), text.slice(note[0].length).trimEnd(), links).childNodes)
        : inline(make("p"), text.trimEnd(), links);
}

function into(box, children, links) {
    box.append(...children.map((child) => element_of(child, links)));
    return box;
}

const code_block = (code, name, is_open) => make("div", { class: is_open ? "fence open" : "fence",
    dir: "ltr" },
    make("div", { class: "bar" }, make("span", { text: name || "text" }),
        icon_button("copy", `Copy the ${name || "text"} block`, (event) => copy(code, event.currentTarget))),
    make("pre", { tabindex: "0" }, make("code", {}, ...coloured(code, name))));

/* A formula with its marks: as MathML, or as it is written where it cannot be read. */
const formula = (text, display, tag) => {
    const n = text.startsWith("\\begin") ? 0 : text[0] === "$" && text[1] !== "$" ? 1 : 2;
    const drawn = formula_of(text.slice(n, text.length - n), display);
    return drawn ? make(tag, { class: "formula" }, drawn) : make(tag, { class: "tex", text });
};

/* Numbers that go up stay as they are written; others count. */
function list_of({ first, children, loose }, links) {
    const list = make(first === undefined ? "ul" : "ol", { start: first === 1 ? undefined : first });
    let expected = first;
    for (const item of children) {
        const [words] = item.children;
        const task = words?.type === "words" && TASK.exec(words.lines[0]);
        if (task) words.lines[0] = words.lines[0].slice(task[0].length);
        const row = into(make("li", { value: item.number > expected ? item.number : undefined }),
            item.children, links);
        expected = Math.max(item.number, expected) + 1;
        if (!loose)
            for (const p of [...row.children]) if (p.tagName === "P" && !p.className) p.replaceWith(...p.childNodes);
        if (task) mark_task(row, task[1] !== " ");
        list.append(row);
    }
    return list;
}

function mark_task(item, done) {
    item.className = "task";
    item.prepend(make("input", { type: "checkbox", disabled: true, checked: done,
        "aria-label": done ? "done" : "to do" }));
}

function table_of_lines([head, rule, ...rows], links) {
    const sides = cells_of(rule).map((cell) =>
        cell.endsWith(":") ? (cell.startsWith(":") ? "centre" : "right") : undefined);
    const row = (line, tag) => {
        const cells = cells_of(line);
        return make("tr", {}, ...sides.map((side, i) => inline(make(tag, { class: side }), cells[i] || "", links)));
    };
    return make("div", { class: "table", tabindex: "0" }, make("table", {},
        make("thead", {}, row(head, "th")), make("tbody", {}, ...rows.map((line) => row(line, "td")))));
}
