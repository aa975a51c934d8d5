/* ---- Messages that wait ----
 * While an answer is written, here or in another page, a message that follows it would be sent with
 * half of it. It waits in its box instead, and is sent when the answer has come to its end. What is
 * typed meanwhile takes it back. */

const queued = new Set(); /* ids of conversations whose message waits */

/* The answer of the shown branch that another page writes, or that nobody has read to its end. */
const unfinished = (chat) => path_of(chat).find((node) => answers.get(chat.id)?.node !== node &&
    (node.stream || is_elsewhere(chat, node)));

const is_busy = (chat) => Boolean(chat) && (answers.has(chat.id) || Boolean(unfinished(chat)));

/* {text, files} in the box of a conversation, the one that is shown or another one. */
const message_of = (chat) => ({ text: (chat === current ? by_id("text").value : unsent.get(chat.id) ?? "").trim(),
    files: waiting_files.get(chat?.id ?? "") || [] });

/* Sends what is in the box, now or later. */
function send_message(chat = current) {
    const { text, files } = message_of(chat);
    if (!text && !files.length) return;
    resume_answers();
    if (is_busy(chat)) queued.add(chat.id);
    else {
        if (chat === current) by_id("text").value = "";
        keep_unsent("", chat);
        keep_files([], chat);
        fit_text();
        send(chat, text, files);
    }
    draw_queued();
}

/* Sends the messages whose answer has ended; after a stopped or cut one they stay in their box. */
function send_queued() {
    for (const id of queued.size ? (resume_answers(), [...queued]) : []) {
        const chat = chats.get(id);
        if (is_busy(chat)) continue;
        queued.delete(id);
        const cut = chat && path_of(chat).at(-1)?.end;
        if (chat && !cut) send_message(chat);
        else if (cut && chat === current)
            notice("The answer did not come to its end, so your message was not sent.");
        draw_queued();
    }
}

function take_back_queued() {
    if (queued.delete(current?.id)) draw_queued();
}

function draw_queued() {
    const box = by_id("queued"), waits = queued.has(current?.id);
    box.hidden = !waits;
    if (waits && !box.firstChild)
        box.append("Your message is sent when the answer has ended. ", button("Do not send it yet", () => {
            take_back_queued();
            by_id("text").focus();
        }));
    if (!waits) box.replaceChildren();
}
