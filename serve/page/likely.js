/* ---- How likely tokens were ----
 * If the settings ask for it, the server sends each token's probability and the likeliest others.
 * They are kept as long as the page is, and shown instead of the drawn text. */

const MOST_OTHERS = 5;
const likely = new Map(); /* message's id -> [{token, share, others: [[token, share]]}] */

const share_of = (logprob) => Math.exp(Math.min(0, Number(logprob)));
const share_words = (share) => share >= 0.0995 ? percent(share) : `${(100 * share).toFixed(1)} %`;

function take_likely(node, content) {
    if (!likely.has(node.id)) likely.set(node.id, []);
    for (const { token, logprob, top_logprobs = [] } of content)
        likely.get(node.id).push({ token: String(token), share: share_of(logprob),
            others: top_logprobs.filter((other) => other.token !== token)
                .map((other) => [String(other.token), share_of(other.logprob)]) });
}

/* As words: "likely 62 %; others: "a" 20 %, "b" 9 %". */
const likely_words = ({ token, share, others }) => `${JSON.stringify(token)} ${share_words(share)}` +
    (others.length ? `; others: ${others.map(([other, p]) => `${JSON.stringify(other)} ${share_words(p)}`).join(", ")}` : "");

/* Surer than: tokens below the first are marked, the less sure the more. */
const SURE = [0.9, 0.5, 0.2];

function drawn_likely(tokens) {
    const box = make("div", { class: "body tokens", dir: "auto" }, ...tokens.map((found) => {
        const level = SURE.filter((share) => found.share < share).length;
        return make("span", { class: level ? `unsure-${level}` : undefined, title: likely_words(found), text: found.token });
    }));
    box.addEventListener("click", (event) => { /* where nothing can be pointed at */
        if (event.target.title) notice(event.target.title);
    });
    return box;
}

/* The text, or its tokens. */
function toggle_likely(node, parts) {
    const shows = !parts.tokens;
    parts.tokens?.remove();
    parts.tokens = shows ? drawn_likely(likely.get(node.id)) : null;
    if (shows) parts.body.after(parts.tokens);
    parts.body.hidden = shows;
    return shows;
}
