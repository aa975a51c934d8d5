// The last answer's text that is solid, after each change of it, and all that was ever said to
// screen readers.
window.solid = [];
window.said = [];
window.solid_now = () => {
    const body = [...document.querySelectorAll("article.assistant .body")].at(-1);
    if (!body) return "";
    const copy = body.cloneNode(true);
    copy.querySelectorAll(".provisional").forEach((span) => span.remove());
    return copy.textContent.trimEnd();
};
window.provisional_now = () => [...document.querySelectorAll(".provisional")].map((s) => s.textContent).join("|");
new MutationObserver(() => solid.push(solid_now()))
    .observe(document.getElementById("log"), { subtree: true, childList: true, characterData: true });
new MutationObserver((changes) => changes.forEach((c) => c.addedNodes.forEach((n) => said.push(n.textContent))))
    .observe(document.getElementById("said"), { childList: true });
window.tool = (name, role) => [...[...document.querySelectorAll(`article.${role}`)].at(-1)
    .querySelectorAll(".tools button")].find((b) => b.textContent === name || b.ariaLabel === name);
window.idle = () => document.getElementById("send").ariaLabel === "Send";
window.contrast = (selector) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const light = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) =>
            v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const element = document.querySelector(selector);
    let ground = element;
    while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
    const both = [light(getComputedStyle(element).color), light(getComputedStyle(ground).backgroundColor)];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
};
true
