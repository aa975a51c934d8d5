/* ---- Answers that outlive the page ----
 * Each answer has a name at the server, which keeps what it writes for a while: a page that was
 * loaded again, or whose connection broke, reads on from the byte that it had come to. The name is
 * a secret: those who know it can read the answer. */

const RESUMES = 7, RESUME_MS = 700; /* after a broken connection; each waits twice as long */

function new_stream(model) {
    const words = crypto.getRandomValues(new Uint32Array(4));
    return { name: [...words].map((x) => x.toString(36)).join("-"), at: 0, began: Date.now(), model };
}

const stream_address = ({ name, at, model }, from) => `v1/stream?conv_id=${name}` +
    (from ? `&from=${at}` : "") + (model ? `&model=${encodeURIComponent(model)}` : "");

/* What comes after the bytes that the message has; false: the server does not keep it. */
async function read_on(answer) {
    const reply = await fetch(stream_address(answer.node.stream, true),
        { headers: headers(), signal: answer.abort.signal });
    if (!reply.ok) return false;
    answer.phase = "writing";
    if (!await read_events(reply.body, answer)) throw new TypeError("no end");
    return true;
}

/* A connection that broke is made again, if the server knows the answer still. */
async function read_whole(answer, read) {
    for (let tries = 0; ; tries++)
        try {
            return await read();
        } catch (error) {
            const broke = error instanceof TypeError && answer.node.stream?.at > 0;
            if (!broke || tries === RESUMES || leaving) throw error;
            answer.phase = "broken";
            answer.provisional = "";
            await new Promise((resolve) => setTimeout(resolve, RESUME_MS * 2 ** tries));
            answer.abort.signal.throwIfAborted();
            read = async () => {
                if (!await read_on(answer)) throw new Error("gone");
            };
        }
}

/* A message that another page, or this one before it was loaded again, has not read to its end. */
const is_unread = (chat, node) => node.stream && !answers.has(chat.id) && !is_elsewhere(chat, node);

function resume_answers() {
    for (const chat of chats.values()) {
        const node = Object.values(chat.nodes).findLast((found) => is_unread(chat, found));
        if (node) answer_to(chat, node, {}, (answer) => read_whole(answer, () => read_on(answer)));
    }
}

/* Nobody wants it any more. */
function stop_stream({ stream }) {
    if (stream) fetch(stream_address(stream), { method: "DELETE", headers: headers(), keepalive: true }).catch(() => {});
}
