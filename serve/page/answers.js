/* ---- The server ---- */

class server_error extends Error {
    /* found: the error as the server gives it. */
    constructor({ message, n_prompt_tokens, n_ctx }, status) {
        super(message || "The server failed.");
        Object.assign(this, { status, n_prompt_tokens, n_ctx });
    }
}

const headers = () => settings.key ? { Authorization: `Bearer ${settings.key}` } : {};

async function error_of(reply) {
    try {
        const { error } = await reply.json();
        return new server_error(error, reply.status);
    } catch {
        return new server_error({ message: `The server answered with status ${reply.status}.` }, reply.status);
    }
}

const SAMPLING = ["temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty",
    "frequency_penalty", "max_tokens", "seed"];

/* Consecutive messages of one role are one: not every template takes them apart. Of the settings
 * only what differs from the server's own is sent. */
function request_of(chat, sampling) {
    const messages = chat.system ? [{ role: "system", content: chat.system }] : [];
    for (const node of path_of(chat)) {
        const { role } = node, text = with_files(node);
        if (!text) continue;
        if (messages.at(-1)?.role === role) messages.at(-1).content += "\n\n" + text;
        else messages.push({ role, content: text });
    }
    const request = { ...(models.length && { model: model_of(chat) }), messages, stream: true, stream_options: { include_usage: true },
        return_progress: true, timings_per_token: true, drey_provisional: true };
    if (messages.at(-1).role === "assistant") request.continue_final_message = true;
    for (const key of SAMPLING)
        if (is_number(settings[key]) && settings[key] !== usual[key]) request[key] = settings[key];
    if (settings.likely) Object.assign(request, { logprobs: true, top_logprobs: MOST_OTHERS });
    const stop = (settings.stop || "").split("\n").filter((line) => line);
    if (stop.length) request.stop = stop;
    return { ...request, ...sampling };
}

/* Takes each `data:` of a stream of server-sent events, and counts the bytes of what was taken;
 * false: no [DONE] came. */
async function read_events(body, answer) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const { stream } = answer.node;
    let rest = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return false;
        save_growing(answer);
        const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
        rest = lines.pop();
        for (const line of lines) {
            stream.at += size_of(line) + 1;
            if (!line.startsWith("data:")) continue;
            const data = line.slice(5).trim();
            if (data === "[DONE]") return true;
            take_event(answer, JSON.parse(data));
        }
    }
}

/* Prometheus' text: [[name, labels, value]] */
function metrics_of(text) {
    return text.split("\n").map((line) => /^([a-zA-Z_:]\w*(?::\w+)*)(?:\{(.*)\})? (\S+)/.exec(line))
        .filter(Boolean).map(([, name, labels, value]) => [name, labels || "", Number(value)]);
}

/* ---- Answers ----
 * One may be under way in each conversation. Its text only grows; what is provisional stands apart
 * and is forgotten when the answer ends. */

const answers = new Map(); /* conversation's id -> answer under way */
const latest = new Map();  /* conversation's id -> the last one that ended, for its figures */
let leaving = false;       /* the page */

/* node: an answer to be continued. sampling: for this one, instead of the settings. by: where its
 * text comes from. */
async function answer_to(chat, node = add_node(chat, chat.leaf, "assistant", ""), sampling = {}, by = ask) {
    node.stream = by === ask ? new_stream(models.length ? model_of(chat) : undefined) : node.stream;
    const answer = { chat, node, sampling, phase: "waiting", provisional: "",
        abort: new AbortController(), began: performance.now() - (Date.now() - node.stream.began),
        saved: -Infinity, spoken: thought_of(node).rest.length, spoke_at: 0 };
    node.end = "The answer was cut short."; /* until it ends: a page may go at any time */
    save_growing(answer);
    answers.set(chat.id, answer);
    draw();
    measure();
    try {
        await by(answer);
    } catch (error) {
        end_badly(answer, error);
    }
    if (leaving) return; /* the next page reads on */
    answer.provisional = "";
    delete node.beat;
    delete node.stream;
    if (answers.get(chat.id) === answer) answers.delete(chat.id); /* else another is under way */
    latest.set(chat.id, answer);
    speak(answer, thought_of(node).rest.length);
    chat.changed = Date.now();
    if (chats.has(chat.id)) {
        save_node(chat, node);
        if (chat.leaf === node.id) chat.leaf = end_below(chat, node.id); /* by another page */
        save(chat);
    }
    draw();
    if (models.length) greet(); /* which are loaded has changed */
    else measure();
    send_queued();
}

function end_badly(answer, error) {
    const { node } = answer;
    if (leaving) return;
    stop_stream(node);
    if (error.name === "AbortError") node.end = ENDS.stopped;
    else if (is_number(error.n_prompt_tokens)) {
        node.tokens = error.n_prompt_tokens;
        node.end = too_long_words(error.n_prompt_tokens, error.n_ctx);
    } else if (error.status === 401) node.end = `${key_words()} Type it in Settings.`;
    else if (error instanceof server_error) node.end = error.message;
    else if (answer.phase === "waiting")
        node.end = "The server cannot be reached. Is it still running?";
    else node.end = "The connection ended before the answer did.";
    if (error.status !== 401) return;
    keyless.set(answer.chat.id, node.id);
    open_settings("key");
}

/* Answers that were refused for want of a key: conversation's id -> message's. */
const keyless = new Map();

const key_words = () => settings.key ? "The key is wrong." : "This server needs a key.";

/* With another key they are asked for again, in their places. */
function ask_keyless() {
    for (const [id, leaf] of keyless) {
        const chat = chats.get(id);
        if (chat?.leaf === leaf && !is_busy(chat)) answer_to(chat, chat.nodes[leaf]);
    }
    keyless.clear();
}

async function ask(answer) {
    for (;;) {
        const reply = await fetch("v1/chat/completions", { method: "POST",
            headers: { "Content-Type": "application/json",
                "X-Conversation-Id": answer.node.stream.name, ...headers() },
            body: JSON.stringify(request_of(answer.chat, answer.sampling)),
            signal: answer.abort.signal });
        if (reply.ok) {
            return await read_whole(answer, async () => {
                if (!await read_events(reply.body, answer)) throw new TypeError("no end");
            });
        }
        const error = await error_of(reply);
        answer.abort.signal.throwIfAborted();
        const seconds = reply.status === 503 ? Number(reply.headers.get("Retry-After")) : 0;
        if (!(seconds > 0)) throw error;
        await wait_for_room(answer, error.message, seconds);
    }
}

/* Until the server has room again, the reader asks at once, or stops. */
function wait_for_room(answer, message, seconds) {
    return new Promise((resolve, reject) => {
        const until = performance.now() + 1000 * seconds;
        const { signal } = answer.abort;
        const stop = () => end(() => reject(signal.reason));
        const end = (then) => {
            clearInterval(timer);
            signal.removeEventListener("abort", stop);
            answer.room = undefined;
            then();
        };
        const tick = () => {
            if (performance.now() >= until) end(resolve);
            else draw_answer(answer);
        };
        answer.room = { message, until, now: () => end(resolve) };
        signal.addEventListener("abort", stop);
        const timer = setInterval(tick, 500);
        say(message);
        tick();
    });
}

const ENDS = { stopped: "Stopped.", length: "Cut here: it has as many tokens as it may.",
    interrupted: "The server stopped here." };
const is_calm = (end) => end === ENDS.stopped || end?.startsWith("Cut here");

/* Names the limit that has cut an answer. */
function cut_words(answer, { prompt_tokens, completion_tokens }) {
    const has = `Cut here: it has ${count_of(completion_tokens, "token")}, as many as`;
    if (completion_tokens >= (answer.sampling.max_tokens ?? settings.max_tokens)) return `${has} the settings allow.`;
    if (answer.chat !== current || !facts.n_ctx) return ENDS.length;
    return prompt_tokens + completion_tokens < facts.n_ctx ? `${has} the server allows.`
        : `Cut here: the context is full, with ${count_of(facts.n_ctx, "token")}. ${CONTEXT_WAYS}`;
}

function take_event(answer, event) {
    if (event.error) throw new server_error(event.error);
    const { node } = answer;
    const choice = event.choices?.[0];
    const { content, reasoning_content, tool_calls } = choice?.delta || {};
    const text = reasoning_content || content;
    if (reasoning_content) node.reasoning = (node.reasoning || "") + reasoning_content;
    if (content) node.text += content;
    for (const call of tool_calls || []) add_call(node, call);
    if (choice?.logprobs?.content) take_likely(node, choice.logprobs.content);
    if (tool_calls) answer.phase = "writing";
    if (text) {
        answer.phase = "writing";
        answer.provisional =
            answer.provisional.startsWith(text) ? answer.provisional.slice(text.length) : "";
    }
    if (event.prompt_progress && answer.phase !== "writing") {
        answer.phase = "reading";
        answer.progress = event.prompt_progress;
    }
    if (event.timings) answer.timings = event.timings;
    if (event.usage) answer.usage = event.usage;
    if (event.drey) {
        if (typeof event.drey.provisional === "string") answer.provisional = event.drey.provisional;
        answer.drey = { ...answer.drey, ...event.drey };
    }
    if (answer.provisional) answer.phase = "writing";
    if (choice?.finish_reason) {
        answer.provisional = "";
        node.end = ENDS[choice.finish_reason];
    }
    if (event.drey?.finish === "interrupted") node.end = ENDS.interrupted;
    node.figures = figures_of(answer);
    if (event.usage) {
        node.tokens = event.usage.prompt_tokens + event.usage.completion_tokens;
        if (node.end === ENDS.length) node.end = cut_words(answer, event.usage);
    }
    save_growing(answer);
    draw_soon();
}

/* A call comes in pieces: its name first, then its arguments bit by bit. */
function add_call(node, { index = 0, function: { name = "", arguments: text = "" } = {} }) {
    node.calls ||= [];
    node.calls[index] ||= { name: "", arguments: "" };
    node.calls[index].name += name;
    node.calls[index].arguments += text;
}

/* Each second, also while nothing comes: other pages see by it that it is being written. */
function save_growing(answer) {
    if (performance.now() - answer.saved < 1000 || !chats.has(answer.chat.id)) return;
    answer.saved = performance.now();
    answer.node.beat = Date.now();
    save_node(answer.chat, answer.node);
}

/* The first token belongs to the prompt: alone it has no speed. */
const speed_of = (timings) =>
    timings?.predicted_n > 1 ? timings.predicted_per_second : undefined;

/* "212 tokens, 0.52 tokens/s" and what else is known of an answer, in words. */
function figures_of({ timings, usage, drey, began }) {
    const words = [];
    const tokens = usage?.completion_tokens ?? timings?.predicted_n;
    if (tokens) words.push(count_of(tokens, "token"));
    const speed = speed_of(timings);
    if (speed > 0) words.push(`${rate(speed)} tokens/s`);
    if (drey?.drafted > 0)
        words.push(`${percent(drey.accepted / drey.drafted)} of drafts accepted`);
    if (drey?.joules > 0 && tokens > 1)
        words.push(`${rate(drey.joules / (tokens - 1))} J per token`);
    const reused = usage?.prompt_tokens_details?.cached_tokens;
    if (reused > 0) words.push(`reused ${reused} of ${usage.prompt_tokens} prompt tokens`);
    words.push(duration((performance.now() - began) / 1000));
    return words.join(" · ");
}

/* The page is left: what has come since the last time is kept. */
function leave() {
    leaving = true;
    save_answers();
}

function save_answers() {
    for (const { chat, node } of answers.values()) {
        if (leaving) delete node.beat;
        if (chats.has(chat.id)) save_node(chat, node);
    }
}

/* Here, or in the page that writes it. */
function stop_answer(chat) {
    if (answers.has(chat?.id)) answers.get(chat.id).abort.abort();
    else if (is_busy(chat)) write_store(STOP, { chat: chat.id, at: Date.now() });
}
