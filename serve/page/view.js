/* ---- Drawing ---- */

let shown = new Map(); /* message's id -> its parts on the page */
let renaming = null;   /* the box for a conversation's new name: the list waits for it */

function draw() {
    draw_list();
    draw_log();
    draw_strip();
    by_id("title").textContent = current?.title || "New conversation";
    document.title = current?.title ? `${current.title} – drey` : "drey";
    const busy = answers.has(current?.id);
    by_id("send").textContent = busy ? "Stop" : "Send";
    by_id("send").setAttribute("aria-keyshortcuts", busy ? "Escape" : "Enter");
}

function draw_list() {
    if (renaming) return;
    const sorted = [...chats.values()].sort((a, b) => b.changed - a.changed);
    by_id("chats").replaceChildren(...sorted.map((chat) => {
        const title = chat.title || "Untitled";
        const tool = (sign, does, click) =>
            button(sign, click, { class: "plain tool", "aria-label": `${does} ${title}` });
        const name = make("button", { type: "button", class: "name", text: title, title,
            dir: "auto",
            "aria-current": chat === current ? "true" : undefined, click: () => show(chat) });
        const row = make("li", { class: (chat === current ? "current " : "") +
            (answers.has(chat.id) ? "busy" : "") }, name,
            tool("✎", "Rename", () => rename(chat, row)),
            tool("✕", "Delete", () => remove(chat)));
        return row;
    }));
}

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
    if (!path.length) drawn.push(make("div", { id: "welcome" }, make("strong", { text: "drey" }),
        "Ask something. What is fainter has been drafted and is not yet verified: it may change."));
    const stays = drawn.length === log.childNodes.length &&
        drawn.every((article, i) => article === log.childNodes[i]);
    if (!stays) log.replaceChildren(...drawn);
    follow();
}

function make_message(node) {
    const box = (name) => make("div", { class: name });
    const parts = { body: make("div", { class: "body", dir: node.role === "user" && "auto" }),
        status: box("status"), tools: box("tools"),
        problem: make("p", { class: "problem", hidden: true }) };
    parts.article = make("article", { class: `message ${node.role}`, "data-id": node.id,
        "aria-label": node.role === "user" ? "You" : "Answer" },
        parts.body, parts.status, parts.problem, parts.tools);
    return parts;
}

function draw_message(node, parts) {
    const answer = answers.get(current.id)?.node === node ? answers.get(current.id) : null;
    if (parts.editing) return;
    if (parts.text !== node.text) {
        parts.text = node.text;
        if (node.role === "user") parts.body.textContent = node.text;
        else draw_markdown(parts.body, node.text);
    }
    draw_provisional(parts.body, node.text, answer ? answer.provisional : "");
    parts.article.setAttribute("aria-busy", String(Boolean(answer)));
    parts.problem.hidden = !node.end || Boolean(answer);
    parts.problem.textContent = node.end || "";
    parts.problem.classList.toggle("calm", [ENDS.stopped, ENDS.length].includes(node.end));
    draw_tools(node, parts, answer);
    draw_status(parts.status, answer);
}

function draw_tools(node, { tools, article }, answer) {
    const is_last = current.leaf === node.id;
    const state = JSON.stringify([Boolean(answer), node.end, node.figures, is_last,
        siblings_of(current, node).map(({ id }) => id)]);
    if (tools.state === state) return; /* a button that has the focus stays */
    if (answer && tools.state) return;
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
            button("‹", () => to(all[at - 1]),
                { "aria-label": "Earlier version", disabled: !at }),
            `${at + 1}/${all.length}`,
            button("›", () => to(all[at + 1]),
                { "aria-label": "Later version", disabled: at === all.length - 1 }));
    if (node.text)
        tools.append(button("Copy", (event) => copy(node.text, event.target)),
            button("Edit", () => edit(node, article)));
    if (node.role === "assistant") {
        tools.append(button("Retry", () => retry(node)));
        if (is_last && node.end && node.text)
            tools.append(button("Continue", () => continue_answer(node)));
        if (node.figures) tools.append(make("span", { class: "figures", text: node.figures }));
    }
}

function draw_status(box, answer) {
    if (!answer) {
        box.replaceChildren();
        return;
    }
    const elapsed = (performance.now() - answer.began) / 1000;
    if (answer.room) draw_waiting(box, answer.room);
    else if (answer.phase === "reading") draw_reading(box, answer.progress, elapsed);
    else if (answer.phase === "waiting")
        box.replaceChildren(`Waiting for the server · ${duration(elapsed)}`);
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
