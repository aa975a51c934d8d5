/* ---- What the reader does ---- */

/* What is typed and not yet sent: conversation's id -> text. This page alone keeps it, also when it
 * is loaded again. */
const unsent = new Map();

function keep_unsent(text, chat = current) {
    if (text) unsent.set(chat?.id ?? "", text);
    else unsent.delete(chat?.id ?? "");
    try {
        sessionStorage.setItem("drey.unsent", JSON.stringify([...unsent]));
    } catch { /* no room, or none at all: it is here as long as the page is */ }
}

function read_unsent() {
    try {
        for (const [id, text] of JSON.parse(sessionStorage.getItem("drey.unsent")))
            unsent.set(id, text);
    } catch { /* nothing was kept */ }
}

let next_chat = {}; /* what has been set for a conversation that has not begun */

function show(chat) {
    current = chat;
    next_chat = {};
    notice("");
    write_store("drey.current", chat ? chat.id : null);
    by_id("text").value = unsent.get(chat?.id ?? "") ?? "";
    fit_text();
    draw_files();
    if (models.length) greet();
    open_side(false);
    follows = true;
    draw();
}

function send(chat, text, files) {
    if (!chat) {
        chat = current = { ...new_chat(), ...next_chat };
        next_chat = {};
        write_store("drey.current", current.id);
    }
    add_node(chat, chat.leaf, "user", text, files);
    if (chat === current) follows = true;
    answer_to(chat);
}

function retry(node, sampling) {
    stop_answer(current);
    current.leaf = node.parent;
    answer_to(current, undefined, sampling);
    if (node.text) explain_same(node, { ...settings, ...sampling });
    by_id("text").focus();
}

/* Asked again, the same question may have to get the same answer: then that is said, with a way to
 * get another one. */
function explain_same(node, { temperature = usual.temperature ?? 0, seed }) {
    const way = (text, sampling) => button(text, () => {
        notice("");
        retry(node, sampling);
    });
    if (temperature === 0)
        notice("At temperature 0 the same question gets the same answer. ",
            way("Ask at temperature 0.8", { temperature: 0.8, seed: -1 }));
    else if (is_number(seed) && seed >= 0)
        notice("With the same seed the same question gets the same answer. ",
            way("Ask with another seed", { seed: -1 }));
}

function continue_answer(node) {
    follows = true;
    answer_to(current, node);
    by_id("text").focus();
}

/* A new version of a message; a user's is answered. */
function edit(node, article) {
    const parts = shown.get(node.id);
    const box = make("textarea", { "aria-label": "Edited message", dir: "auto" });
    box.value = node.text;
    const close = () => {
        parts.editing = false;
        form.replaceWith(parts.body);
        parts.tools.hidden = false;
        draw();
    };
    const keep = () => {
        const text = box.value.trim();
        close();
        if ((!text && !node.files) || text === node.text) return;
        stop_answer(current);
        const { id } = add_node(current, node.parent, node.role, text, node.files);
        if (node.role === "user") answer_to(current);
        else draw();
        shown.get(id).article.scrollIntoView({ block: "nearest" });
        by_id("text").focus();
    };
    const cancel = () => {
        close();
        [...parts.tools.querySelectorAll("button")].find((b) => b.ariaLabel === "Edit").focus();
    };
    const form = make("form", { class: "edit", submit: (event) => {
        event.preventDefault();
        keep();
    }, keydown: (event) => {
        if (event.key === "Escape") {
            event.stopPropagation();
            cancel();
        } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing &&
                   node.role === "user") {
            event.preventDefault();
            keep();
        }
    } }, box, make("div", { class: "row" },
        make("button", { class: "main", text: node.role === "user" ? "Send" : "Keep" }),
        button("Cancel", cancel)));
    parts.editing = true;
    parts.tools.hidden = true;
    parts.body.replaceWith(form);
    box.focus();
    article.scrollIntoView({ block: "nearest" });
}

function rename(chat, row) {
    const box = make("input", { "aria-label": "Name of the conversation", dir: "auto",
        maxlength: "200" });
    box.value = chat.title;
    const keep = (wanted) => {
        if (renaming !== box) return;
        renaming = null;
        if (wanted && box.value.trim()) {
            chat.title = box.value.trim();
            save(chat);
        }
        draw();
    };
    box.addEventListener("keydown", (event) => {
        if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
        event.stopPropagation();
        keep(event.key === "Enter");
        by_id("chats").querySelector("[aria-current]")?.focus();
    });
    box.addEventListener("blur", () => keep(true));
    renaming = box;
    by_id("chats").state = undefined; /* it is drawn again */
    row.replaceChildren(box);
    box.select();
}

function remove(chat) {
    const dialog = by_id("delete-dialog");
    by_id("delete-name").textContent = chat.title || "Untitled";
    dialog.returnValue = "";
    dialog.onclose = () => {
        if (dialog.returnValue !== "delete") return;
        stop_answer(chat);
        erase(chat);
        if (chat === current) show(null);
        else draw();
    };
    dialog.showModal();
}

const FIELDS = [...SAMPLING, "stop", "system", "key", "theme", "likely"];

function open_settings(field) {
    const { elements } = by_id("settings-form");
    for (const name of FIELDS) elements[name].value = settings[name] ?? "";
    for (const name of SAMPLING)
        elements[name].placeholder = usual[name] ?? "";
    elements.chat_system.value = (current || { ...new_chat(), ...next_chat }).system;
    const dialog = by_id("settings-dialog");
    dialog.returnValue = "";
    by_id("key-says").hidden = field !== "key";
    by_id("key-says").textContent = field === "key" ? key_words() : "";
    if (!dialog.open) dialog.showModal();
    elements[field || "chat_system"].focus();
    if (field) elements[field].select();
}

function keep_settings() {
    const { elements } = by_id("settings-form");
    const chat_system = elements.chat_system.value.trim();
    if (current && current.system !== chat_system) save(Object.assign(current, { system: chat_system }));
    if (!current && chat_system !== (settings.system || "")) next_chat.system = chat_system;
    const { key } = settings;
    settings = settings.model ? { model: settings.model } : {};
    for (const name of FIELDS) {
        const { value, type } = elements[name];
        if (value.trim() !== "") settings[name] = type === "number" ? Number(value) : value.trim();
    }
    write_store("drey.settings", settings);
    draw_theme();
    greet();
    if (settings.key && settings.key !== key) ask_keyless();
}

function draw_theme() {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset.theme = settings.theme || system;
    document.querySelector("meta[name=theme-color]").content =
        getComputedStyle(document.documentElement).getPropertyValue("--paper");
    const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    set_icon(by_id("theme"), other === "dark" ? "moon" : "sun", `Change to ${other} colours`);
    by_id("theme").onclick = () => {
        settings.theme = other;
        write_store("drey.settings", settings);
        draw_theme();
    };
}

function open_side(open) {
    by_id("side").classList.toggle("open", open);
    by_id("menu").setAttribute("aria-expanded", String(open));
}

function fit_text() {
    const box = by_id("text");
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
}

function open_parts(open) {
    by_id("parts").hidden = !open;
    by_id("memory").setAttribute("aria-expanded", String(open));
}

function begin_anew() {
    show(null);
    by_id("text").focus();
}

/* With Ctrl, or Command: the settings list them. */
const SHORTCUTS = { k: () => {
    open_side(true);
    by_id("search").focus();
}, O: begin_anew, ",": () => open_settings() };

function take_shortcut(event) {
    const does = (event.ctrlKey || event.metaKey) && !event.altKey && SHORTCUTS[event.key];
    if (!does || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    does();
}

/* So that the page can be installed as a program. Its address is known here alone. */
function offer_program() {
    const icon = document.querySelector("link[rel=icon]").href;
    const manifest = { name: "drey", short_name: "drey", display: "standalone",
        id: location.origin + "/", start_url: location.origin + "/", scope: location.origin + "/",
        theme_color: "#fbfaf7", background_color: "#fbfaf7",
        icons: [{ src: icon, sizes: "any", type: "image/svg+xml", purpose: "any" }] };
    document.head.append(make("link", { rel: "manifest",
        href: `data:application/manifest+json,${encodeURIComponent(JSON.stringify(manifest))}` }));
}

function listen() {
    by_id("composer").addEventListener("submit", (event) => {
        event.preventDefault();
        if (is_busy(current)) stop_answer(current);
        else send_message();
    });
    by_id("text").addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        send_message();
    });
    by_id("text").addEventListener("input", () => {
        fit_text();
        keep_unsent(by_id("text").value);
        take_back_queued();
        draw_context();
    });
    document.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
        if (!by_id("parts").hidden) open_parts(false);
        else if (by_id("side").classList.contains("open")) open_side(false);
        else stop_answer(current);
    });
    document.addEventListener("keydown", take_shortcut);
    listen_for_files();
    by_id("search").addEventListener("input", draw_list);
    by_id("search").addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !by_id("search").value) return;
        event.stopPropagation();
        by_id("search").value = "";
        draw_list();
    });
    by_id("new").onclick = begin_anew;
    by_id("menu").onclick = () => open_side(!by_id("side").classList.contains("open"));
    document.querySelector("main").addEventListener("click", (event) => {
        if (!by_id("menu").contains(event.target)) open_side(false);
    });
    by_id("memory").onclick = () => open_parts(by_id("parts").hidden);
    by_id("settings").onclick = () => open_settings();
    by_id("settings-cancel").onclick = () => by_id("settings-dialog").close("");
    by_id("settings-dialog").onclose = () => {
        if (by_id("settings-dialog").returnValue === "keep") keep_settings();
    };
    by_id("export").onclick = () => export_chats([...chats.values()], "drey-conversations");
    by_id("export-one").onclick = () => export_chats([current], file_name(current.title));
    by_id("models").onchange = () => choose_model(by_id("models").value);
    by_id("import").onclick = () => by_id("file").click();
    by_id("file").onchange = () => {
        if (by_id("file").files.length) import_chats(by_id("file").files[0]);
        by_id("file").value = "";
    };
    matchMedia("(prefers-color-scheme: dark)").onchange = draw_theme;
    by_id("log").onscroll = () => (follows = is_at_end());
    new ResizeObserver(follow).observe(by_id("log"));
    addEventListener("storage", take_from_other_page);
    addEventListener("pagehide", leave);
    addEventListener("pageshow", (event) => {
        if (event.persisted) location.reload(); /* its answers were read on by nobody */
    });
    addEventListener("beforeunload", (event) => {
        if (unsaved.size) event.preventDefault();
    });
    setInterval(() => { /* the time that has gone by */
        answers.forEach(save_growing);
        if (answers.size) draw_soon();
        if ([...shown.values()].some((parts) => parts.elsewhere)) draw();
        resume_answers(); /* what another page has left unread */
        send_queued();
    }, 1000);
}

/* Another page of this browser has changed something. */
function take_from_other_page({ key }) {
    if (key === STOP) answers.get(read_store(STOP)?.chat)?.abort.abort();
    const [, kind, id] = KEY.exec(key ?? "") || [];
    const chat = chats.get(id);
    if (!kind) return;
    if (kind === "gone" && chat) {
        stop_answer(chat);
        chats.delete(id);
        if (chat === current) {
            show(null);
            notice("This conversation was deleted in another page.");
        }
    }
    const found = read_chats(id).get(id);
    if (found) merge(found);
    draw();
    send_queued();
}

function start() {
    settings = read_store("drey.settings") || {};
    for (const chat of read_chats().values()) chats.set(chat.id, chat);
    read_unsent();
    draw_icons();
    listen();
    draw_theme();
    draw_unsaved();
    offer_program();
    show(chats.get(read_store("drey.current")) || null);
    greet();
    resume_answers();
    by_id("text").focus();
}

start();
