/* ---- What the reader does ---- */

function show(chat) {
    current = chat;
    write_store("drey.current", chat ? chat.id : null);
    open_side(false);
    follows = true;
    draw();
}

function send(text) {
    if (!current) {
        current = new_chat();
        write_store("drey.current", current.id);
    }
    add_node(current, current.leaf, "user", text);
    follows = true;
    answer_to(current);
}

function retry(node) {
    stop_answer(current);
    current.leaf = node.parent;
    answer_to(current);
    by_id("text").focus();
}

function continue_answer(node) {
    follows = true;
    answer_to(current, node);
    by_id("text").focus();
}

/* A new version of a message; a user's is answered. */
function edit(node, article) {
    const parts = shown.get(node.id);
    const box = make("textarea", { "aria-label": "Edited message" });
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
        if (!text || text === node.text) return;
        stop_answer(current);
        const { id } = add_node(current, node.parent, node.role, text);
        if (node.role === "user") answer_to(current);
        else draw();
        shown.get(id).article.scrollIntoView({ block: "nearest" });
        by_id("text").focus();
    };
    const cancel = () => {
        close();
        [...parts.tools.querySelectorAll("button")].find((b) => b.textContent === "Edit").focus();
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
    const box = make("input", { "aria-label": "Name of the conversation", maxlength: "200" });
    box.value = chat.title;
    const keep = (wanted) => {
        if (!box.isConnected) return;
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
        chats.delete(chat.id);
        localStorage.removeItem(CHAT + chat.id);
        if (chat === current) show(null);
        else draw();
    };
    dialog.showModal();
}

const FIELDS = ["system", "temperature", "top_p", "max_tokens", "seed", "key", "theme"];

function open_settings(field) {
    const { elements } = by_id("settings-form");
    for (const name of FIELDS) elements[name].value = settings[name] ?? "";
    const dialog = by_id("settings-dialog");
    dialog.returnValue = "";
    if (!dialog.open) dialog.showModal();
    elements[field || "system"].focus();
}

function keep_settings() {
    const { elements } = by_id("settings-form");
    settings = {};
    for (const name of FIELDS) {
        const { value, type } = elements[name];
        if (value.trim() !== "") settings[name] = type === "number" ? Number(value) : value.trim();
    }
    write_store("drey.settings", settings);
    draw_theme();
    greet();
}

function draw_theme() {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset.theme = settings.theme || system;
    const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    by_id("theme").textContent = other === "dark" ? "Dark" : "Light";
    by_id("theme").setAttribute("aria-label", `Change to ${other} colours`);
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

/* The model's name, and the first figures. */
async function greet() {
    measure();
    try {
        const reply = await fetch("v1/models", { headers: headers() });
        by_id("model").textContent = by_id("model").title =
            reply.ok ? (await reply.json()).data[0].id : "";
    } catch {
        by_id("model").textContent = "";
    }
}

function listen() {
    by_id("composer").addEventListener("submit", (event) => {
        event.preventDefault();
        if (answers.has(current?.id)) {
            stop_answer(current);
            return;
        }
        const text = by_id("text").value.trim();
        if (!text) return;
        by_id("text").value = "";
        fit_text();
        send(text);
    });
    by_id("text").addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        if (!answers.has(current?.id)) by_id("composer").requestSubmit();
    });
    by_id("text").addEventListener("input", fit_text);
    document.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
        if (!by_id("parts").hidden) open_parts(false);
        else if (by_id("side").classList.contains("open")) open_side(false);
        else stop_answer(current);
    });
    by_id("new").onclick = () => {
        show(null);
        by_id("text").focus();
    };
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
    by_id("export").onclick = export_chats;
    by_id("import").onclick = () => by_id("file").click();
    by_id("file").onchange = () => {
        if (by_id("file").files.length) import_chats(by_id("file").files[0]);
        by_id("file").value = "";
    };
    matchMedia("(prefers-color-scheme: dark)").onchange = draw_theme;
    by_id("log").onscroll = () => (follows = is_at_end());
    new ResizeObserver(follow).observe(by_id("log"));
    addEventListener("storage", take_from_other_page);
    setInterval(() => answers.size && draw_soon(), 1000); /* the time that has gone by */
}

/* Another page of this browser has changed something. */
function take_from_other_page({ key }) {
    if (!key?.startsWith(CHAT) || answers.has(key.slice(CHAT.length))) return;
    const chat = checked_chat(read_store(key));
    const is_current = current?.id === key.slice(CHAT.length);
    if (chat) chats.set(chat.id, chat);
    else chats.delete(key.slice(CHAT.length));
    if (is_current) current = chat;
    draw();
}

function start() {
    settings = read_store("drey.settings") || {};
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(CHAT))) {
        const chat = checked_chat(read_store(key));
        if (chat) chats.set(chat.id, chat);
    }
    listen();
    draw_theme();
    show(chats.get(read_store("drey.current")) || null);
    fit_text();
    greet();
    by_id("text").focus();
}

start();
