/* ---- Files ----
 * A file goes with a message as text. What is chosen, pasted or dropped waits with the message that
 * is being written; of a file that is no text, or has no room in the context, only a sentence
 * remains. */

const BYTES_PER_TOKEN = 4; /* about: the size is shown before the server counts it */
const waiting_files = new Map(); /* conversation's id -> [{name, text}] */

const files_here = () => waiting_files.get(current?.id ?? "") || [];

function keep_files(files, chat = current) {
    waiting_files.set(chat?.id ?? "", files);
    if (chat !== current) return;
    draw_files();
    draw_context();
}

const utf8 = new TextEncoder();
const size_of = (text) => utf8.encode(text).length;
const short_memory = (bytes) => bytes < 999.5 ? `${bytes} B` : memory(bytes);

/* Bytes of text that the context may have room for. */
function room_for_files() {
    return BYTES_PER_TOKEN * ((facts.n_ctx || 2 ** 18) - (context_used().used || 0));
}

/* The text of a file; throws a sentence. */
async function text_of_file(file) {
    const room = room_for_files();
    if (file.size > room)
        throw `${file.name} is too long: it has ${short_memory(file.size)}, and the context has ` +
            `room for about ${short_memory(Math.max(0, room))}.`;
    let text;
    try {
        const bytes = await file.arrayBuffer();
        text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
        throw `${file.name} is no text file: attach text, such as notes or source code.`;
    }
    if (text.includes("\0")) throw `${file.name} is no text file: attach text, such as notes or source code.`;
    return text;
}

async function attach(files) {
    const refused = [];
    for (const file of files)
        try {
            const text = await text_of_file(file);
            keep_files([...files_here(), { name: file.name, text }]);
        } catch (sentence) {
            refused.push(String(sentence));
        }
    if (refused.length) notice(refused.join(" "));
    by_id("text").focus();
}

function draw_files() {
    const files = files_here();
    by_id("files").hidden = !files.length;
    by_id("files").replaceChildren(...files.map((file) => make("li", { class: "chip" },
        make("span", { text: file.name, dir: "auto" }),
        make("small", { text: short_memory(size_of(file.text)) }),
        icon_button("close", `Remove ${file.name}`, () => {
            keep_files(files_here().filter((other) => other !== file));
            by_id("text").focus();
        }))));
}

/* In a message that was sent: folded. */
const drawn_files = (files) => (files || []).map(({ name, text }) =>
    make("details", { class: "chip" }, make("summary", { dir: "auto" }, name, " ",
        make("small", { text: short_memory(size_of(text)) })),
    make("pre", { tabindex: "0", text, dir: "auto" })));

/* As the model gets it: each file is a block of code, whose fence is longer than any inside. */
function with_files({ text, files }) {
    const blocks = (files || []).map((file) => {
        const runs = file.text.match(/`{3,}/g) || [];
        const fence = "`".repeat(1 + Math.max(2, ...runs.map((run) => run.length)));
        return `File ${file.name}:\n${fence}\n${file.text.replace(/\n$/, "")}\n${fence}`;
    });
    return [...blocks, text].filter(Boolean).join("\n\n");
}

function listen_for_files() {
    const box = document.querySelector("main");
    by_id("attach").onclick = () => by_id("attached").click();
    by_id("attached").onchange = () => {
        attach([...by_id("attached").files]);
        by_id("attached").value = "";
    };
    by_id("text").addEventListener("paste", (event) => {
        if (!event.clipboardData.files.length) return;
        event.preventDefault();
        attach([...event.clipboardData.files]);
    });
    box.addEventListener("dragover", (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        box.classList.add("drop");
    });
    box.addEventListener("dragleave", (event) => {
        if (!box.contains(event.relatedTarget)) box.classList.remove("drop");
    });
    box.addEventListener("drop", (event) => {
        box.classList.remove("drop");
        if (!event.dataTransfer.files.length) return;
        event.preventDefault();
        attach([...event.dataTransfer.files]);
    });
}
