/* ---- The model, and how full its context is ---- */

let usual = {};   /* this server's own sampling, where the settings have none */
let facts = {};   /* {name, n_ctx, n_params, size}; status: of one of several models */
let models = [];  /* those of a server that has several; [] of others */

/* The model's facts, the server's defaults, and the first figures. One that is not loaded is not
 * asked for more, which would load it. */
async function greet() {
    const ask = async (path) => {
        const reply = await fetch(path, { headers: headers() });
        return reply.ok ? reply.json() : {};
    };
    try {
        const { data = [] } = await ask("v1/models");
        models = data[0]?.status ? data : [];
        const model = models.find(({ id }) => id === model_of(current || next_chat)) || data[0] || {};
        facts = { ...model.meta, name: model.id, status: model.status?.value };
        if (model.drey?.failed) facts.failed = model.drey.failed;
        if (models.length && facts.status !== "loaded") {
            usual = {};
            facts.size ||= model.drey?.want_bytes;
        } else {
            const { default_generation_settings: has = {} } = await ask(`props${model_query()}`);
            usual = has.params || {};
            facts.n_ctx = has.n_ctx;
        }
    } catch {
        facts = {};
    }
    measure();
    by_id("model").textContent = by_id("model").title = facts.name || "";
    draw_models();
    draw_facts();
    draw_context();
}

/* ---- One of several models ---- */

/* That of a conversation; where it is not here any more: the last one that was chosen, one that is
 * loaded, the first. */
function model_of(chat) {
    const is_here = (name) => models.some(({ id }) => id === name);
    const loaded = models.find(({ status }) => status.value === "loaded");
    return [chat.model, settings.model, loaded?.id].find(is_here) || models[0]?.id;
}

const model_query = () => models.length ? `?model=${encodeURIComponent(model_of(current || next_chat))}` : "";

function choose_model(name) {
    settings.model = name;
    write_store("drey.settings", settings);
    (current || next_chat).model = name;
    if (current) save(current);
    greet();
}

function draw_models() {
    const box = by_id("models");
    box.hidden = models.length < 2;
    if (box.hidden) return;
    const words = models.map(({ id, status, drey }) => id +
        (drey?.failed ? " (cannot be loaded)" : status.value === "loaded" ? "" : " (not loaded)"));
    if (box.drawn !== words.join("\n"))
        box.replaceChildren(...models.map(({ id }, i) => make("option", { value: id, text: words[i] })));
    box.drawn = words.join("\n");
    box.value = model_of(current || next_chat);
    box.disabled = is_busy(current);
}

const waiting_words = (chat) => models.length &&
    models.find(({ id }) => id === model_of(chat))?.status.value !== "loaded"
    ? `Loading ${model_of(chat)}` : "Waiting for the server";

/* ---- The start ---- */

const EXAMPLES = ["Explain how a bicycle stays upright.",
    "Write a Python function that finds the longest word of a text, with a test.",
    "Make a table of three kinds of bread, with flour, time and taste."];

function make_welcome() {
    return make("div", { id: "welcome" }, make("strong", { text: "drey" }),
        make("p", { text: "Ask something. What is fainter has been drafted and is not yet verified: it may change." }),
        make("dl", { id: "facts" }),
        make("div", { class: "examples" }, ...EXAMPLES.map((text) =>
            make("button", { type: "button", text, click: () => {
                by_id("text").value = text;
                keep_unsent(text);
                fit_text();
                by_id("text").focus();
            } }))));
}

function many(n) {
    return n >= 1e9 ? `${(n / 1e9).toFixed(1)} billion` : n >= 1e6 ? `${Math.round(n / 1e6)} million` : String(n);
}

function draw_facts() {
    if (!by_id("facts")) return;
    const known = (name) => machine?.values.get(name);
    const budget = known("drey:budget_limit_bytes"), ceiling = known("drey:ceiling_tokens_per_second");
    const rows = [["Model", facts.name], ["Parameters", facts.n_params && many(facts.n_params)],
        ["Weights", facts.size && memory(facts.size)],
        ["State", facts.failed ? `cannot be loaded: ${facts.failed}` : facts.status === "loaded" ? "" : facts.status &&
            "loaded with the first question"],
        ["Context", facts.n_ctx && count_of(facts.n_ctx, "token")],
        ["Memory budget", budget && memory(budget)],
        ["At most", ceiling && `${rate(ceiling)} tokens/s`]];
    by_id("facts").replaceChildren(...rows.filter(([, value]) => value).flatMap(([name, value]) =>
        [make("dt", { text: name }), make("dd", { text: value })]));
}

/* Tokens of the branch that is shown, as far as the server has said; about: and of the rest, with
 * what is typed, as many as such texts usually have. */
function context_used() {
    const answer = answers.get(current?.id);
    if (answer?.progress || answer?.timings) {
        const { cache_n = 0, prompt_n, predicted_n = 0 } = answer.timings || {};
        const prompt = is_number(prompt_n) ? cache_n + prompt_n : answer.progress?.total || 0;
        return { used: prompt + predicted_n, about: false };
    }
    const path = current ? path_of(current) : [];
    const known = path.findLastIndex((node) => is_number(node.tokens));
    const rest = [...path.slice(known + 1).map(with_files), with_files(message_of(current))];
    if (known < 0 && current) rest.push(current.system);
    const more = Math.ceil(rest.reduce((sum, text) => sum + size_of(text), 0) / BYTES_PER_TOKEN);
    if (known < 0 && !more) return { used: undefined, about: false };
    return { used: (path[known]?.tokens || 0) + more, about: more > 0 };
}

const NEARLY_FULL = 0.85;
const CONTEXT_WAYS = "Edit an earlier message to continue from there, begin a new conversation, or start " +
    "the server with a larger context (-c).";

/* One token at least is the answer's. */
const too_long_words = (used, all, about = "") => `This conversation has ${about}${used} tokens, and the ` +
    `context has room for ${all}, with the answer. ${CONTEXT_WAYS}`;

function draw_context() {
    const { used, about } = context_used(), all = facts.n_ctx;
    const full = used / all > NEARLY_FULL, sign = about ? "about " : "";
    draw_meter("context", "Context", is_number(used) ? `${about ? "≈" : ""}${used}${all ? ` of ${all}` : ""}`
        : all ? `– of ${all}` : "–", [[used / all, full ? "bad" : "accent"]]);
    const last = current?.nodes[current.leaf];
    const says_so = /^This conversation has|the context is full/.test(last?.end);
    by_id("full").hidden = !full || says_so;
    const words = !full ? "" : used >= all ? too_long_words(used, all, sign)
        : `The context is nearly full: ${sign}${used} of ${all} tokens. ${CONTEXT_WAYS}`;
    if (by_id("full").textContent !== words) by_id("full").textContent = words;
}
