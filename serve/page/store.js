/* ---- Conversations ----
 * A conversation is a tree of messages: editing one or asking again makes a sibling, so nothing is
 * lost. `leaf` is the end of the branch that is shown.
 *
 * Each message has its own key in the store, and the page that writes it is the only one to change
 * it: two pages with the same conversation both add to it. A conversation that was deleted leaves a
 * mark, so that a page that has not heard of it does not bring it back. */

const CHAT = "drey.chat.", NODE = "drey.node.", GONE = "drey.gone.";
const STOP = "drey.stop"; /* {chat, at}: the page that writes its answer is to stop */
const KEY = /^drey\.(chat|node|gone)\.([\w-]+)(?:\.[\w-]+)?$/;
const GONE_MS = 30 * 24 * 3600 * 1000; /* a mark is kept this long */
const chats = new Map(); /* id -> {id, title, changed, leaf, nodes: {id: message}} */
let current = null;
let settings = {};

let last_id = 0;
function new_id() { /* by its time, so that messages sort as they were written */
    last_id = Math.max(Date.now(), last_id + 1);
    return last_id.toString(36) + Math.floor(Math.random() * 36 ** 6).toString(36).padStart(6, "0");
}
const new_chat = () => ({ id: new_id(), title: "", changed: Date.now(), leaf: null, nodes: {},
    system: settings.system || "" });
const title_of = (text) => text.trim().split("\n")[0].slice(0, 200);

const is_id = (id) => typeof id === "string" && /^[\w-]+$/.test(id);
const is_message = (node) => node && is_id(node.id) && typeof node.text === "string" &&
    (node.role === "user" || node.role === "assistant");

const is_stream = (stream) => is_id(stream?.name) && is_number(stream.at) && is_number(stream.began) &&
    (stream.model === undefined || typeof stream.model === "string");

/* Messages by their ids, parents before their children. One whose parent is nowhere begins a
 * branch. */
function linked(messages) {
    const nodes = {};
    const take = (found, parent) => {
        const { id, role, text, beat, calls } = found;
        const node = nodes[id] = { id, parent, role, text };
        for (const name of ["figures", "end", "reasoning"])
            if (typeof found[name] === "string") node[name] = found[name];
        if (is_number(beat)) node.beat = beat;
        if (is_stream(found.stream)) node.stream = found.stream;
        if (is_number(found.tokens)) node.tokens = found.tokens;
        if (Array.isArray(found.files)) node.files = found.files.filter(Boolean).map((file) =>
            ({ name: String(file.name), text: String(file.text) }));
        if (Array.isArray(calls)) node.calls = calls.filter(Boolean).map((call) =>
            ({ name: String(call.name), arguments: String(call.arguments) }));
    };
    let left = messages, before;
    do {
        before = left.length;
        left = left.filter((node) => {
            const has_place = node.parent === null || Object.hasOwn(nodes, node.parent);
            if (has_place) take(node, node.parent);
            return !has_place;
        });
    } while (left.length < before);
    for (const node of left) take(node, null);
    return nodes;
}

/* What is in the store or in a file may be anything. */
function checked_chat(found) {
    if (!found || !is_id(found.id) || typeof found.nodes !== "object" || !found.nodes) return null;
    const messages = Object.values(found.nodes);
    if (!messages.every(is_message)) return null;
    const chat = { ...new_chat(), id: found.id, nodes: linked(messages) };
    const first = messages.find((node) => node.role === "user");
    chat.title = String(found.title || (first ? title_of(first.text) : "")).slice(0, 200);
    if (is_number(found.changed)) chat.changed = found.changed;
    if (typeof found.system === "string") chat.system = found.system;
    if (typeof found.model === "string") chat.model = found.model;
    const ids = Object.keys(chat.nodes);
    chat.leaf = Object.hasOwn(chat.nodes, found.leaf) ? found.leaf : ids.at(-1) ?? null;
    return chat;
}

/* ---- The browser's store ---- */

const store = (() => {
    try {
        return window.localStorage;
    } catch { /* it gives this page none */
        return null;
    }
})();
const unsaved = new Set(); /* keys that there was no room for */

function read_store(key) {
    try {
        return JSON.parse(store.getItem(key));
    } catch {
        return null;
    }
}

/* False: there is no room for it. */
function write_store(key, value) {
    try {
        store.setItem(key, JSON.stringify(value));
        return true;
    } catch {
        return false;
    }
}

const stored_keys = () => store ? Object.keys(store).sort() : [];
const keys_of = (id) =>
    stored_keys().filter((key) => key === CHAT + id || key.startsWith(`${NODE}${id}.`));

/* A reader's words: where they cannot be kept, that is said as long as it is so. */
function keep(key, value) {
    if (write_store(key, value)) unsaved.delete(key);
    else unsaved.add(key);
    draw_unsaved();
}

function draw_unsaved() {
    by_id("unsaved").hidden = store && !unsaved.size;
    by_id("unsaved").textContent = store
        ? "The browser has no more room: what was written last is lost when this page is closed. " +
            "Export the conversations, then delete some."
        : "The browser does not let this page keep anything: conversations are lost when it is " +
            "closed. Export those that you need.";
}

/* Of a conversation itself; its messages have their own keys. */
function save({ id, title, changed, leaf, system, model }) {
    keep(CHAT + id, { id, title, changed, leaf, system, model });
}

function save_node(chat, node) {
    keep(`${NODE}${chat.id}.${node.id}`, node);
}

function save_whole(chat) {
    chats.set(chat.id, chat);
    for (const node of Object.values(chat.nodes)) save_node(chat, node);
    save(chat);
}

/* What the store has: id -> conversation. Of one that was deleted, whatever a page has added that
 * had not heard of it, is deleted as well. */
function read_chats(only) {
    const parts = new Map();
    for (const key of stored_keys()) {
        const [, kind, id] = KEY.exec(key) || [];
        if (!kind || (only && id !== only)) continue;
        if (!parts.has(id)) parts.set(id, { node: [] });
        if (kind === "node") parts.get(id).node.push(read_store(key));
        else parts.get(id)[kind] = read_store(key);
    }
    const found = new Map();
    for (const [id, { chat, node, gone }] of parts) {
        if (gone) {
            keys_of(id).forEach((key) => store.removeItem(key));
            if (!(Date.now() - gone < GONE_MS)) store.removeItem(GONE + id);
            continue;
        }
        const inside = Object.values(chat?.nodes || {}); /* as exported files have them */
        const whole = checked_chat({ ...chat, id, nodes: [...inside, ...node].filter(is_message) });
        if (whole) found.set(id, whole);
        if (whole && inside.length) save_whole(whole);
    }
    return found;
}

/* For good; there is room again for what had none. */
function erase(chat) {
    chats.delete(chat.id);
    keys_of(chat.id).forEach((key) => store.removeItem(key));
    write_store(GONE + chat.id, Date.now());
    const waiting = [...unsaved];
    unsaved.clear();
    for (const other of chats.values())
        if (waiting.some((key) => KEY.exec(key)[2] === other.id)) save_whole(other);
    draw_unsaved();
}

/* What another page has written of a conversation. Messages that are being written here stay as
 * they are; the branch that is shown grows with what continues it. */
function merge(found) {
    const chat = chats.get(found.id);
    if (!chat) {
        chats.set(found.id, found);
        return;
    }
    const answer = answers.get(chat.id);
    for (const node of Object.values(found.nodes))
        if (node.id !== answer?.node.id) chat.nodes[node.id] = node;
    chat.title = found.title;
    chat.system = found.system;
    chat.model = found.model;
    chat.changed = Math.max(chat.changed, found.changed);
    if (!answer && path_of(found).some(({ id }) => id === chat.leaf)) chat.leaf = found.leaf;
}

function path_of(chat) {
    const path = [];
    for (let id = chat.leaf; id !== null; id = chat.nodes[id].parent) path.unshift(chat.nodes[id]);
    return path;
}

/* Another page is writing it: it has said so a short time ago. */
const BEAT_MS = 30000;
const is_elsewhere = (chat, node) => answers.get(chat.id)?.node !== node &&
    Math.abs(Date.now() - node.beat) < BEAT_MS;

/* What a model thought before it answered: apart, or in its text between marks; open: the mark
 * that ends it has not come. */
function thought_of({ text, reasoning = "" }) {
    const found = /^\s*<think>([^]*?)(<\/think>\s*|$)/.exec(text);
    if (!found) return { thought: reasoning, rest: text, open: !text };
    return { thought: reasoning + found[1].trim(), rest: text.slice(found[0].length),
        open: !found[2] };
}

const siblings_of = (chat, node) => Object.values(chat.nodes)
    .filter((other) => other.parent === node.parent && other.role === node.role);

/* The newest end below a message. */
function end_below(chat, id) {
    for (;;) {
        const child = Object.values(chat.nodes).findLast((node) => node.parent === id);
        if (!child) return id;
        id = child.id;
    }
}

function add_node(chat, parent, role, text, files) {
    const node = { id: new_id(), parent, role, text };
    if (files?.length) node.files = files;
    chat.nodes[node.id] = node;
    chat.leaf = node.id;
    chat.changed = Date.now();
    if (!chat.title && role === "user") chat.title = title_of(text || files[0].name);
    chats.set(chat.id, chat);
    save_node(chat, node);
    save(chat);
    return node;
}

/* Without what belongs to this browser alone. */
function export_chats(conversations, name) {
    const file = { format: "drey-conversations", version: 1, conversations };
    const text = JSON.stringify(file, (key, value) => ["beat", "stream"].includes(key) ? undefined : value, 1);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    make("a", { href: url, download: `${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const file_name = (title) => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "conversation";

async function import_chats(file) {
    let found;
    try {
        found = JSON.parse(await file.text());
    } catch {
        found = null;
    }
    if (found?.format !== "drey-conversations" || !Array.isArray(found.conversations)) {
        notice(`${file.name} holds no conversations that were exported here.`);
        return;
    }
    const good = found.conversations.map(checked_chat).filter(Boolean);
    for (const chat of good) {
        /* What is here stays. */
        if (chats.has(chat.id) || read_store(GONE + chat.id)) chat.id = new_id();
        save_whole(chat);
    }
    const bad = found.conversations.length - good.length;
    notice(`Imported ${count_of(good.length, "conversation")}${bad ? `; ${bad} could not be read` : ""}.`);
    draw_list();
}
