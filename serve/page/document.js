/* ---- The document ---- */

const by_id = (id) => document.getElementById(id);

/* An element: properties are attributes, but for functions (on...) and text. */
function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (typeof value === "function") element.addEventListener(name, value);
        else if (name === "text") element.textContent = value;
        else if (value === true) element.setAttribute(name, "");
        else if (value !== false && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
}

const button = (text, click, properties = {}) =>
    make("button", { type: "button", class: "plain", text, click, ...properties });

/* ---- Numbers for people ---- */

const is_number = (x) => typeof x === "number" && Number.isFinite(x);
const rate = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));
const count_of = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const percent = (x) => `${Math.round(100 * x)} %`;

/* "1.04G", "800M": three digits and a binary unit, as --memory takes them and the command shows. */
function memory(bytes) {
    const units = ["", "K", "M", "G", "T"];
    let unit = 0;
    for (; bytes >= 999.5 && unit < 4; unit++) bytes /= 1024;
    return unit ? `${bytes.toFixed(bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0)}${units[unit]}`
        : bytes.toFixed(0);
}

function duration(seconds) {
    const s = Math.max(0, Math.round(seconds));
    const two = (n) => String(n).padStart(2, "0");
    return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}`
        : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

async function copy(text, pressed) {
    try {
        await navigator.clipboard.writeText(text);
    } catch { /* not a secure context: by the old way */
        const box = make("textarea", { class: "unseen", "aria-hidden": "true" });
        box.value = text;
        document.body.append(box);
        box.select();
        document.execCommand("copy");
        box.remove();
        pressed.focus();
    }
    say("Copied.");
    pressed.replaceChildren(icon("check"));
    setTimeout(() => pressed.replaceChildren(icon("copy")), 1500);
}

/* ---- What is said to screen readers: only what stays as it is ---- */

function say(text) {
    const said = by_id("said");
    said.append(make("p", { text }));
    while (said.childNodes.length > 8) said.firstChild.remove();
}

function speak(answer, end) {
    const text = thought_of(answer.node).rest.slice(answer.spoken, end).trim();
    answer.spoken = end;
    if (text && answer.chat === current) say(text);
}

/* Whole sentences, a few at a time. */
function speak_settled(answer) {
    const fresh = thought_of(answer.node).rest.slice(answer.spoken);
    const ends = [...fresh.matchAll(/[.!?…:。！？]\s|\n/g)];
    if (!ends.length || performance.now() - answer.spoke_at < 2000) return;
    answer.spoke_at = performance.now();
    speak(answer, answer.spoken + ends.at(-1).index + 1);
}

let notice_timer;
function notice(text, ...more) {
    by_id("notice").replaceChildren(text, ...more);
    clearTimeout(notice_timer);
    notice_timer = setTimeout(() => (by_id("notice").textContent = ""), 15000);
}
