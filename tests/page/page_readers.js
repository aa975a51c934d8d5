// The page's readers (Markdown, formulas, colours of code) in node, with as much of a document as
// they need: the texts of page_markdown.txt and page_formulas.txt, and hostile ones. What browsers
// draw of it is page.py's.
//     node page_readers.js
"use strict";
const fs = require("node:fs"), path = require("node:path"), vm = require("node:vm");

class Text {
    constructor(data) {
        this.data = data;
    }
    get textContent() {
        return this.data;
    }
    get nextSibling() {
        const all = this.parent.childNodes;
        return all[all.indexOf(this) + 1] || null;
    }
    after(node) {
        this.parent.insert(this.parent.childNodes.indexOf(this) + 1, [node]);
    }
    replaceWith(...nodes) {
        const { parent } = this, at = parent.childNodes.indexOf(this);
        parent.childNodes.splice(at, 1);
        parent.insert(at, nodes);
    }
    remove() {
        this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1);
    }
}

class Element extends Text {
    constructor(name) {
        super("");
        Object.assign(this, { localName: name, tagName: name.toUpperCase(), childNodes: [], attributes: {}, dataset: {} });
    }
    insert(at, nodes) {
        const whole = nodes.map((node) => node instanceof Text ? node : new Text(String(node)))
            .filter((node) => node instanceof Element || node.data !== "" || node.marks);
        for (const node of whole) {
            if (node.parent) node.parent.childNodes.splice(node.parent.childNodes.indexOf(node), 1);
            node.parent = this;
        }
        this.childNodes.splice(at, 0, ...whole);
    }
    append(...nodes) {
        this.insert(this.childNodes.length, nodes);
    }
    prepend(...nodes) {
        this.insert(0, nodes);
    }
    addEventListener() {}
    setAttribute(name, value) {
        this.attributes[name] = String(value);
    }
    get className() {
        return this.attributes.class || "";
    }
    set className(value) {
        this.attributes.class = value;
    }
    get children() {
        return this.childNodes.filter((node) => node instanceof Element);
    }
    get firstChild() {
        return this.childNodes[0];
    }
    get lastChild() {
        return this.childNodes.at(-1);
    }
    get textContent() {
        return this.childNodes.map((node) => node.textContent).join("");
    }
    set textContent(text) {
        this.childNodes = [];
        this.append(text);
    }
    querySelectorAll(names) { // names of tags alone
        const wanted = names.split(", ");
        return this.children.flatMap((child) =>
            [...(wanted.includes(child.localName) ? [child] : []), ...child.querySelectorAll(names)]);
    }
    querySelector(names) {
        return this.querySelectorAll(names)[0] || null;
    }
}

const page = path.join(__dirname, "../../serve/page");
const world = vm.createContext({ URL, Node: { TEXT_NODE: 3 }, document: {
    createElement: (name) => new Element(name), createElementNS: (_, name) => new Element(name),
    createTextNode: (text) => Object.assign(new Text(text), { marks: true }) } });
for (const name of ["document", "icons", "code", "tex", "links", "blocks", "markdown"])
    vm.runInContext(fs.readFileSync(path.join(page, `${name}.js`), "utf8"), world);
vm.runInContext("globalThis.draw = (text) => { const box = document.createElement('div'); draw_markdown(box, text); return box; };", world);

const escaped = (text) => text.replaceAll("\n", " ").replaceAll("\t", "\\t")
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// As page_markdown.txt has it.
function tags(node, kept = false) {
    if (!(node instanceof Element)) return escaped(node.data);
    if (node.className === "bar") return "";
    const { localName: name, attributes } = node;
    const inside = name === "math" ? "" : node.childNodes.map((child) => tags(child, kept || name === "pre")).join("");
    if (["div", "span", "thead", "tbody"].includes(name) || (kept && name === "code")) return inside;
    const number = attributes.start || attributes.value;
    return `<${name}${number ? ` ${number}` : ""}>${inside}</${name}>`;
}

// As page_formulas.txt has it.
const short = (node) => !(node instanceof Element) ? node.data : node.localName +
    (node.children.length ? `(${node.children.map(short).join(" ")})` : `:${node.textContent}`);
function formulas(box) {
    const found = box.querySelectorAll("math");
    return found.length ? found.map((math) => short(math.firstChild)).join(" ; ").normalize().replaceAll("\u00A0", " ") : "-";
}

const rows = (name) => fs.readFileSync(path.join(__dirname, name), "utf8").split("\n")
    .filter((line) => line && line[0] !== "#").map((line) => line.split("\t"));
let n_wrong = 0, n_right = 0;
function check(text, got, wanted) {
    if (got === wanted) {
        n_right++;
        return;
    }
    n_wrong++;
    console.log(`page_readers: ${JSON.stringify(text)}: ${got}, not ${wanted}`);
}

for (const [text, wanted] of rows("page_markdown.txt"))
    check(text, tags(world.draw(text.replaceAll("\\n", "\n").replaceAll("\\t", "\t"))).slice(0), wanted);
for (const [text, wanted] of rows("page_formulas.txt")) {
    check(text, formulas(world.draw(text)), wanted);
    if (wanted === "-" && text.endsWith("\\)")) // whole, with its marks
        check(text, world.draw(text).textContent, text);
}
check("$$", formulas(world.draw("$$\na_1\n+ b\n$$")), "mrow(msub(mi:a mn:1) mo:+ mi:b)");
check("tasks", JSON.stringify(world.draw("- [x] done\n- [ ] not").querySelectorAll("input").map((box) => "checked" in box.attributes)), "[true,false]");
// Hostile texts are drawn, whatever of them.
for (const [part, n, end = ""] of [["[a][", 9000], ["[x]: ", 9000], ["[", 3000, "](https://e.org)"], ["- > ", 9000], ["> a\nb\n", 9000],
    ["[a\n", 9000, "]: https://e.org"], ["<details>", 9000], ["<details>\n", 9000], ["</details>", 9000],
    ["<details>\n", 3000, "</details>\n".repeat(3000)], ["\\begin{a}", 9000], ["\\begin{align}\n", 9000],
    ["\\begin{align}\n", 2000, "\\end{align}\n".repeat(2000)], ["$$\n", 9000], ["\t- ", 9000], ["<a@", 9000],
    ["[^a]: b\n", 5000, "[^a]".repeat(5000)], ["[x]: https://e.org\n", 3000, "[".repeat(3000)], ["1. ", 9000], ["*", 20000],
    ["\\(", 20000], ["$$", 20000], ["<sub>", 9000], ["[", 20000], ["`", 20000, " x"], ["> ", 20000], ["- ", 20000], ["a_", 20000],
    ["# ", 1, " ".repeat(20000) + "x"], ["|-", 20000], ["`a", 20000], ["**a *b ", 5000], ["[a](", 9000], ["http://", 9000],
    ["$a", 20000], ["$", 20001], ["$", 1, "{".repeat(9000) + "$"], ["\\(", 1, "\\frac".repeat(900) + "\\)"],
    ["```c\n", 1, "/*".repeat(20000)], ["```py\n", 1, "'".repeat(40000)], ["```c\n", 1, "a1".repeat(20000)]])
    check(part, world.draw(part.repeat(n) + end + "\nx") instanceof Element, true);
// However a text is cut, no reader fails, and nothing of it becomes an element that could run.
const sample = fs.readFileSync(path.join(__dirname, "page_sample.md"), "utf8");
for (let n = 0; n <= sample.length; n++)
    check(sample.slice(0, n), world.draw(sample.slice(0, n)).querySelectorAll("script, img, iframe, object").length, 0);
console.log(`page_readers: ${n_right} right, ${n_wrong} wrong`);
process.exit(n_wrong || n_right < 500 ? 1 : 0);
