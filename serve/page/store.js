/* ---- Conversations ----
 * A conversation is a tree of messages: editing one or asking again makes a sibling, so nothing is
 * lost. `leaf` is the end of the branch that is shown. Each is kept under its own key. */

const CHAT = "drey.chat.";
const chats = new Map(); /* id -> {id, title, changed, leaf, nodes: {id: message}} */
let current = null;
let settings = {};

const new_id = () =>
    Date.now().toString(36) + Math.floor(Math.random() * 36 ** 6).toString(36).padStart(6, "0");
const new_chat = () => ({ id: new_id(), title: "", changed: Date.now(), leaf: null, nodes: {} });

/* What is in the store or in a file may be anything. */
function checked_chat(found) {
    if (!found || typeof found.id !== "string" || typeof found.nodes !== "object" || !found.nodes)
        return null;
    const chat = { ...new_chat(), id: found.id, title: String(found.title || "").slice(0, 200) };
    if (is_number(found.changed)) chat.changed = found.changed;
    for (const node of Object.values(found.nodes)) { /* parents come before their children */
        const known = node && typeof node.id === "string" && typeof node.text === "string" &&
            (node.role === "user" || node.role === "assistant") &&
            (node.parent === null || Object.hasOwn(chat.nodes, node.parent));
        if (!known || Object.hasOwn(chat.nodes, node.id)) return null;
        const { id, parent, role, text } = node;
        chat.nodes[id] = { id, parent, role, text };
        for (const key of ["figures", "end"])
            if (typeof node[key] === "string") chat.nodes[id][key] = node[key];
    }
    const ids = Object.keys(chat.nodes);
    chat.leaf = Object.hasOwn(chat.nodes, found.leaf) ? found.leaf : ids.at(-1) ?? null;
    return chat;
}

function read_store(key) {
    try {
        return JSON.parse(localStorage.getItem(key));
    } catch {
        return null;
    }
}

function write_store(key, value) {
    try {
        localStorage.setItem(key, JSON.stringify(value));
    } catch {
        notice("The browser has no more room for conversations: export them and delete some.");
    }
}

function save(chat) {
    chats.set(chat.id, chat);
    write_store(CHAT + chat.id, chat);
}

function path_of(chat) {
    const path = [];
    for (let id = chat.leaf; id !== null; id = chat.nodes[id].parent) path.unshift(chat.nodes[id]);
    return path;
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

function add_node(chat, parent, role, text) {
    const node = { id: new_id(), parent, role, text };
    chat.nodes[node.id] = node;
    chat.leaf = node.id;
    chat.changed = Date.now();
    if (!chat.title && role === "user") chat.title = text.trim().split("\n")[0].slice(0, 200);
    save(chat);
    return node;
}

function export_chats() {
    const file = { format: "drey-conversations", version: 1, conversations: [...chats.values()] };
    const url = URL.createObjectURL(
        new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
    make("a", { href: url, download: "drey-conversations.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

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
        if (chats.has(chat.id)) chat.id = new_id(); /* what is here stays */
        save(chat);
    }
    const bad = found.conversations.length - good.length;
    notice(`Imported ${good.length} conversations${bad ? `; ${bad} could not be read` : ""}.`);
    draw_list();
}
