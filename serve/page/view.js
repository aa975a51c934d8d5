/* ---- Drawing ---- */

let shown = new Map(); /* message's id -> its parts on the page */
let renaming = null;   /* the box for a conversation's new name: the list waits for it */

function draw() {
    draw_list();
    draw_log();
    draw_strip();
    by_id("title").textContent = current?.title || "New conversation";
    document.title = current?.title ? `${current.title} – drey` : "drey";
    const busy = is_busy(current);
    draw_queued();
    set_icon(by_id("send"), busy ? "stop" : "send", busy ? "Stop" : "Send");
    by_id("export-one").hidden = !current?.leaf;
    draw_models();
    by_id("send").setAttribute("aria-keyshortcuts", busy ? "Escape" : "Enter");
}

function draw_list() {
    if (renaming) return;
    const wanted = by_id("search").value.trim().toLowerCase();
    const sorted = [...chats.values()].filter((chat) => !wanted || has_words(chat, wanted))
        .sort((a, b) => b.changed - a.changed);
    by_id("none").hidden = !wanted || sorted.length > 0;
    const state = JSON.stringify(sorted.map((chat) => [chat.id, chat.title, chat === current, is_busy(chat)]));
    if (by_id("chats").state === state) return; /* a name that has the focus stays */
    by_id("chats").state = state;
    by_id("chats").replaceChildren(...sorted.map((chat) => {
        const title = chat.title || "Untitled";
        const tool = (sign, does, click) =>
            icon_button(sign, `${does} ${title}`, click, { class: "plain tool" });
        const name = make("button", { type: "button", class: "name", text: title, title,
            dir: "auto",
            "aria-current": chat === current ? "true" : undefined, click: () => show(chat) });
        const row = make("li", { class: (chat === current ? "current " : "") +
            (is_busy(chat) ? "busy" : "") }, name,
            tool("edit", "Rename", () => rename(chat, row)),
            tool("delete", "Delete", () => remove(chat)));
        return row;
    }));
}

const has_words = (chat, words) => [chat.title, ...Object.values(chat.nodes).map(({ text }) => text)]
    .some((text) => text.toLowerCase().includes(words));

function draw_log() {
    const log = by_id("log");
    const path = current ? path_of(current) : [];
    const old = shown;
    shown = new Map();
    const drawn = path.map((node) => {
        const parts = old.get(node.id) || make_message(node);
        shown.set(node.id, parts);
        draw_message(node, parts);
        return parts.article;
    });
    if (!path.length) drawn.push(by_id("welcome") || make_welcome());
    const stays = drawn.length === log.childNodes.length &&
        drawn.every((article, i) => article === log.childNodes[i]);
    if (!stays) log.replaceChildren(...drawn);
    draw_facts();
    follow();
}

function make_message(node) {
    const box = (name) => make("div", { class: name });
    const parts = { body: make("div", { class: "body", dir: node.role === "user" && "auto" }),
        status: box("status"), tools: box("tools"),
        problem: make("p", { class: "problem", hidden: true }) };
    parts.thought = make("div", { class: "body" });
    parts.length = make("span");
    parts.reasoning = make("details", { class: "aside", hidden: true },
        make("summary", {}, "Reasoning ", parts.length), parts.thought);
    parts.calls = make("div", { class: "calls" });
    parts.article = make("article", { class: `message ${node.role}`, "data-id": node.id,
        "aria-label": node.role === "user" ? "You" : "Answer" },
        ...(node.role === "user" ? drawn_files(node.files) : [parts.reasoning]),
        parts.body, parts.calls, parts.status, parts.problem, parts.tools);
    return parts;
}

function draw_message(node, parts) {
    const answer = answers.get(current.id)?.node === node ? answers.get(current.id) : null;
    if (parts.editing) return;
    if (node.role === "assistant") draw_written(node, parts, answer ? answer.provisional : "");
    else if (parts.body.textContent !== node.text) parts.body.textContent = node.text;
    parts.body.hidden = parts.tokens ? true : node.role === "user" && !node.text;
    parts.article.setAttribute("aria-busy", String(Boolean(answer)));
    const elsewhere = is_elsewhere(current, node);
    parts.problem.hidden = !node.end || Boolean(answer);
    parts.problem.textContent = elsewhere ? "Being written in another page." : node.end || "";
    parts.problem.classList.toggle("calm",
        elsewhere || is_calm(node.end));
    parts.elsewhere = elsewhere;
    draw_tools(node, parts, answer);
    draw_status(parts.status, answer);
}

/* Its reasoning is folded; what is provisional stands where it will be. */
function draw_written(node, parts, provisional) {
    const { thought, rest, open } = thought_of(node);
    const thinking = Boolean(thought) && open;
    parts.reasoning.hidden = !thought;
    if (parts.drawn_thought !== thought) {
        parts.drawn_thought = thought;
        draw_markdown(parts.thought, thought);
        parts.length.textContent = `· ${count_of(thought.match(/\S+/g)?.length || 0, "word")}`;
    }
    if (parts.text !== rest) {
        parts.text = rest;
        draw_markdown(parts.body, rest);
    }
    draw_provisional(parts.thought, thought, thinking ? provisional.split("</think>")[0] : "");
    draw_provisional(parts.body, rest, thinking ? "" : provisional);
    draw_calls(parts, (node.calls || []).filter(Boolean));
}

function draw_calls(parts, calls) {
    const state = JSON.stringify(calls);
    if ((parts.drawn_calls || "[]") === state) return;
    parts.drawn_calls = state;
    parts.calls.replaceChildren(...calls.map((call) => make("div", { class: "aside call" },
        make("span", { text: "Calls " }), make("code", { text: call.name }),
        make("pre", { tabindex: "0", "aria-label": "Arguments" },
            make("code", { text: indented(call.arguments) })))));
}

/* JSON over several lines; what is none, or not whole yet, as it is. */
function indented(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 1);
    } catch {
        return text;
    }
}

function draw_tools(node, { tools, article }, answer) {
    const is_last = current.leaf === node.id;
    const elsewhere = is_elsewhere(current, node);
    const state = answer ? "written" : JSON.stringify([node.end, node.figures, is_last, elsewhere,
        siblings_of(current, node).map(({ id }) => id)]);
    if (tools.state === state) return; /* a button that has the focus stays */
    tools.state = state;
    tools.replaceChildren();
    if (answer) return;
    const all = siblings_of(current, node);
    const at = all.indexOf(node);
    const to = (other) => {
        current.leaf = end_below(current, other.id);
        save(current);
        draw();
        shown.get(other.id).tools.querySelector("button").focus();
    };
    if (all.length > 1)
        tools.append(
            icon_button("back", "Earlier version", () => to(all[at - 1]), { disabled: !at }),
            `${at + 1}/${all.length}`,
            icon_button("forward", "Later version", () => to(all[at + 1]),
                { disabled: at === all.length - 1 }));
    if (node.text && !elsewhere)
        tools.append(icon_button("copy", "Copy", (event) => copy(thought_of(node).rest, event.currentTarget)),
            icon_button("edit", "Edit", () => edit(node, article)));
    if (node.role === "assistant") {
        if (!elsewhere) tools.append(icon_button("retry", "Retry", () => retry(node)));
        if (is_last && node.end && node.text && !elsewhere)
            tools.append(button("Continue", () => continue_answer(node)));
        if (likely.has(node.id)) tools.append(likely_button(node));
        if (node.figures) tools.append(make("span", { class: "figures", text: node.figures }));
    }
}

function likely_button(node) {
    const pressed = icon_button("likely", "Probabilities of the tokens", () =>
        pressed.setAttribute("aria-pressed", String(toggle_likely(node, shown.get(node.id)))), { "aria-pressed": "false" });
    return pressed;
}

function draw_status(box, answer) {
    if (!answer) {
        box.replaceChildren();
        return;
    }
    const elapsed = (performance.now() - answer.began) / 1000;
    if (answer.room) draw_waiting(box, answer.room);
    else if (answer.phase === "reading") draw_reading(box, answer.progress, elapsed);
    else if (answer.phase === "broken")
        box.replaceChildren(`The connection broke. Trying to read on · ${duration(elapsed)}`);
    else if (answer.phase === "waiting")
        box.replaceChildren(`${waiting_words(answer.chat)} · ${duration(elapsed)}`);
    else box.replaceChildren(writing_words(answer, elapsed));
}

function draw_waiting(box, { message, until, now }) {
    const left = duration((until - performance.now()) / 1000);
    if (box.firstChild?.room === now) { /* the button may have the focus */
        box.children[1].textContent = `Trying again in ${left}`;
        return;
    }
    const sentence = make("span", { text: message });
    sentence.room = now;
    box.replaceChildren(sentence, make("span", { text: `Trying again in ${left}` }),
        button("Try now", now));
}

function draw_reading(box, { total, cache = 0, processed, time_ms }, elapsed) {
    const done = processed - cache;
    const left = done > 0 ? (total - processed) * time_ms / done / 1000 : undefined;
    const words = [`Reading the prompt: ${processed} of ${count_of(total, "token")}`];
    if (is_number(left)) words.push(`about ${duration(left)} left`);
    words.push(duration(elapsed));
    box.replaceChildren(
        make("progress", { max: total, value: processed, "aria-label": "Prompt read" }),
        words.join(" · "));
}

function writing_words({ timings }, elapsed) {
    const words = ["Writing"];
    if (timings?.predicted_n) words.push(count_of(timings.predicted_n, "token"));
    const speed = speed_of(timings);
    if (speed > 0) words.push(`${rate(speed)} tokens/s`);
    words.push(duration(elapsed));
    if (speed > 0 && is_number(settings.max_tokens))
        words.push(`at most ${duration((settings.max_tokens - timings.predicted_n) / speed)} more`);
    return words.join(" · ");
}

/* The log follows what is written, unless the reader has scrolled away from its end. */
let follows = true;

function is_at_end() {
    const log = by_id("log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 60;
}

function follow() {
    if (follows) by_id("log").scrollTop = by_id("log").scrollHeight;
}

/* Of the answer alone, once a frame at most. */
let drawing = false;
function draw_soon() {
    if (drawing) return;
    drawing = true;
    const frame = () => {
        drawing = false;
        for (const answer of answers.values()) draw_answer(answer);
    };
    if (document.hidden) setTimeout(frame, 250); /* no frames are drawn there */
    else requestAnimationFrame(frame);
}

function draw_answer(answer) {
    speak_settled(answer);
    const parts = answer.chat === current && shown.get(answer.node.id);
    if (!parts) return;
    draw_message(answer.node, parts);
    follow();
}
