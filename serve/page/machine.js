/* ---- Figures of the machine ----
 * Counters are read while an answer is under way; differences make the rates. The server counts at
 * the end of a pass, which may take longer than the time between two looks, so rates are per second
 * of passes, and stay as they are until another one has ended. */

const PARTS = 8; /* colours: small parts share the last one */
const PART_NAMES = { pinned: "weights kept in memory", ring: "weights on their way from the disk",
    draft: "draft", kv: "context of the conversations", work: "what a pass computes with",
    server: "texts and requests", prefixes: "kept beginnings of texts", stack: "stacks of threads",
    queue: "reads under way", encoder: "what the encoder has read", experts: "experts in memory",
    program: "the program itself", tokenizer: "vocabularies of the models",
    reserve: "kept back for what the system needs", spare: "free" };
let machine = null; /* {seconds of passes, values: Map(name -> number), parts: [[name, bytes]]} */
let counted = null; /* the same, when the last pass ended */
let rates = {};     /* disk (bytes), stall: per second; experts */
let measuring = false;

async function read_machine() {
    if (models.length && facts.status !== "loaded" && !answers.size) throw new server_error({ message: "not loaded" });
    const reply = await fetch(`metrics${model_query()}`, { headers: headers(), cache: "no-store" });
    if (!reply.ok) throw new server_error({ message: "no metrics" }, reply.status);
    const values = new Map(), parts = [];
    for (const [name, labels, value] of metrics_of(await reply.text())) {
        const part = /part="([^"]*)"/.exec(labels);
        if (name === "drey:budget_bytes" && part && value > 0)
            parts.push([part[1], value]);
        else if (!labels) values.set(name, value);
    }
    parts.sort((a, b) => (a[0] === "spare") - (b[0] === "spare") || b[1] - a[1]);
    const seconds = ["pass", "prompt_pass", "draft"]
        .reduce((sum, name) => sum + (values.get(`drey:${name}_seconds_total`) || 0), 0);
    return { seconds, values, parts };
}

function rates_between(before, after) {
    const seconds = after.seconds - before.seconds;
    const per_second = (name) => (after.values.get(name) - before.values.get(name)) / seconds;
    return { disk: per_second("drey:disk_read_bytes_total"),
        stall: per_second("drey:stall_seconds_total"),
        used: per_second("drey:experts_used_total"),
        read: per_second("drey:experts_read_total") };
}

/* Now, and every two seconds as long as there is an answer under way. */
async function measure() {
    if (measuring) return;
    measuring = true;
    counted = null;
    rates = {};
    try {
        do {
            machine = await read_machine();
            if (machine.seconds > counted?.seconds) rates = rates_between(counted, machine);
            if (machine.seconds !== counted?.seconds) counted = machine; /* or it was restarted */
            draw_strip();
            draw_facts();
            if (answers.size) await new Promise((resolve) => setTimeout(resolve, 2000));
        } while (answers.size);
    } catch {
        draw_strip(); /* without them the strip shows the figures of answers */
    }
    measuring = false;
}

function draw_meter(id, label, value, bars) {
    const bar = make("span", { class: "bar" });
    for (const [share, colour = "accent"] of bars) {
        const piece = make("i");
        piece.style.width = `${Number.isFinite(share) ? 100 * Math.min(1, share) : 0}%`;
        piece.style.background = `var(--${colour})`;
        bar.append(piece);
    }
    by_id(id).replaceChildren(make("span", { class: "label", text: label }),
        make("span", { class: "value", text: value }), bar);
}

/* Of a mixture of experts: the share of those that were used which were in memory. */
function hits_of(answer, drey) {
    const used = answer ? rates.used : drey?.experts_used, read = answer ? rates.read : drey?.experts_read;
    return used > 0 ? 1 - read / used : undefined;
}

/* Of the answer that is under way, or of the last one as a whole. */
function draw_strip() {
    const answer = answers.get(current?.id);
    const { timings, drey } = answer || latest.get(current?.id) || {};
    const known = (name) => machine?.values.get(name);
    const best = drey?.disk_bytes_per_s || known("drey:disk_bytes_per_second");
    const speed = speed_of(timings);
    const last = known("drey:ceiling_tokens_per_second"); /* of another text: it may be below */
    const ceiling = drey?.ceiling_tokens_per_s || (last > speed ? last : undefined);
    const disk = answer ? rates.disk : 1000 * drey?.read_bytes / timings?.predicted_ms;
    const stall = answer ? rates.stall : drey?.stall_share;
    const of = (value, most, unit) => is_number(value)
        ? `${rate(value)}${most ? ` of ${rate(most)}` : ""} ${unit}` : `– ${unit}`;
    draw_meter("speed", "Speed", of(speed, ceiling, "tokens/s"), [[speed / ceiling]]);
    const hits = hits_of(answer, drey);
    draw_meter("disk", "Disk", `${is_number(disk) ? memory(disk) : "–"}${is_number(disk) && best ? ` of ${memory(best)}` : ""}/s` +
        (is_number(hits) ? `, ${percent(hits)} of experts in memory` : ""), [[disk / best]]);
    draw_meter("stall", "Waiting for the disk",
        is_number(stall) ? percent(Math.min(1, stall)) : "– %", [[stall]]);
    draw_context();
    draw_memory(machine?.parts || [], known("drey:budget_limit_bytes"));
}

function draw_memory(parts, limit) {
    const used = parts.reduce((sum, [name, bytes]) => sum + (name === "spare" ? 0 : bytes), 0);
    const whole = Math.max(limit || 0, used);
    const colour_of = (name, i) => name === "spare" ? "line" : `part-${Math.min(i, PARTS - 1)}`;
    const words = (limit ? `${memory(used)} of ` : "") + memory(limit || used);
    draw_meter("memory", "Memory", used ? words : "–",
        parts.map(([name, bytes], i) => [bytes / whole, colour_of(name, i)]));
    by_id("parts").replaceChildren(...parts.map(([name, bytes], i) => {
        const colour = make("i");
        colour.style.background = `var(--${colour_of(name, i)})`;
        return make("li", {}, colour, PART_NAMES[name] || name, make("b", { text: memory(bytes) }));
    }));
    if (!used)
        by_id("parts").append(make("li", { text: "The server reports nothing about its memory." }));
}
