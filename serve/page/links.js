/* ---- Links of Markdown ----
 * Only whole addresses of the web and of mail are followed; all others stay as they are written.
 * Pictures are links as well: nothing is fetched that the reader has not asked for. */

const ADDRESS = /https?:\/\/[^\s<>"'`]+/y;
const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]+|[\w.!#$%&'*+/=?^`{|}~-]+@[\w-]+(?:\.[\w-]+)+)>/iy;
const TITLE = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\((?:[^()\\]|\\[^])*\)/.source;
const DEFINITION = new RegExp(String.raw`^\[(?!\^)((?:[^[\]\\]|\\[^]){1,999})\]:[ \t]*\n?[ \t]*(?:<([^<>\n]*)>|([^\s<]\S*))` +
    `(?:(?:[ \\t]+|[ \\t]*\\n[ \\t]*)(?:${TITLE}))?[ \\t]*(?:\\n|$)`);
const AFTER_TARGET = new RegExp(`(?:\\s+(?:${TITLE}))?\\s*\\)`, "y");
const NOTE = /\[\^([^\s\]]{1,40})\]/y;
const LONGEST_LABEL = 1000;

/* As a link has it; null: it is none that is followed. text: as it is, without escapes. */
function safe_address(text) {
    let url;
    try {
        url = new URL(text.replaceAll("\\", "%5C"));
    } catch {
        return null;
    }
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}

const label_of = (text) => text.trim().replace(/\s+/g, " ").toLowerCase().toUpperCase();

const match_at = (pattern, text, at) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
};

const link = (href, children) => make("a", { href, title: href, target: "_blank", rel: "noopener noreferrer" },
    ...children);

/* {end, element}, or null. */
function link_at(text, at, missing, depth, links) {
    if (text[at] === "h") return bare_link(text, at);
    if (text[at] === "<") {
        const found = match_at(ANGLED, text, at);
        const href = found && safe_address(found[1].includes(":") ? found[1] : `mailto:${found[1]}`);
        return href && { end: at + found[0].length, element: link(href, [found[1]]) };
    }
    const note = match_at(NOTE, text, at);
    if (note && links?.has(`^${note[1]}`)) return { end: at + note[0].length, element: make("sup", { text: note[1] }) };
    const begin = at + (text[at] === "!" ? 2 : 1);
    if (text[begin - 1] !== "[" || missing.has("]") || !may_link(text, at, missing, links)) return null;
    const end = label_end(text, begin, missing);
    if (end < 0) return null;
    const target = target_at(text, end + 1) || reference_at(text, begin, end, links);
    if (!target) return null;
    const inside = inline(make("span"), text.slice(begin, end), links, depth + 1);
    return inside.querySelector("a") ? null
        : { end: target.end, element: link(target.href, inside.childNodes) };
}

function bare_link(text, at) {
    const found = !WORD.test(text[at - 1] || "") && match_at(ADDRESS, text, at);
    const address = found && found[0].replace(/[.,;:!?)\]*_]+$/, "");
    const href = address && safe_address(address);
    return href ? { end: at + address.length, element: link(href, [address]) } : null;
}

/* Without an address or a definition no bracket is looked at twice. */
function may_link(text, at, missing, links) {
    if (links?.size) return true;
    if (missing.has("](") || text.indexOf("](", at) < 0) {
        missing.add("](");
        return false;
    }
    return true;
}

/* Where the bracket that was opened before `at` closes; -1: nowhere near. */
function label_end(text, at, missing) {
    const last = Math.min(text.length, at + LONGEST_LABEL);
    for (let open = 1; at < last; at++) {
        if (text[at] === "\\") at++;
        else if (text[at] === "[") open++;
        else if (text[at] === "]" && --open === 0) return at;
        else if (text[at] === "`") {
            const code = code_at(text, at, missing);
            if (code) at = code.end - 1;
        } else if (text[at] === "<") {
            const angled = match_at(ANGLED, text, at);
            if (angled) at += angled[0].length - 1;
        }
    }
    return -1;
}

/* (address "title") */
function target_at(text, at) {
    if (text[at] !== "(") return null;
    for (at++; /\s/.test(text[at] || ""); at++);
    const begin = at;
    if (text[at] === "<") {
        while (++at < text.length && !/[<>\n]/.test(text[at])) if (text[at] === "\\") at++;
        if (text[at] !== ">") return null;
        at++;
    } else {
        for (let open = 0; at < text.length && !/[\s\0-\x1f]/.test(text[at]); at++) {
            if (text[at] === "\\") at++;
            else if (text[at] === "(" && ++open > 32) return null;
            else if (text[at] === ")" && --open < 0) break;
        }
    }
    const href = safe_address(unescaped(text.slice(begin, at).replace(/^<([^]*)>$/, "$1")));
    const found = href && match_at(AFTER_TARGET, text, at);
    return found && { href, end: at + found[0].length };
}

/* [label] after the words, or the words themselves. */
function reference_at(text, begin, end, links) {
    const label = text[end + 1] === "[" ? label_end(text, end + 2, new Set()) : -1;
    const own = label < 0 || label === end + 2;
    const name = own ? text.slice(begin, end) : text.slice(end + 2, label);
    const href = links?.get(label_of(name));
    return href ? { href, end: label < 0 ? end + 1 : label + 1 } : null;
}
