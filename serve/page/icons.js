/* ---- Icons ----
 * Lines in a square of 24: paths, drawn in the colour of the text around them. */

const ICONS = {
    attach: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.2a3 3 0 0 1 4.3 4.3l-7.7 7.6a1.5 1.5 0 0 1-2.1-2.1L14 7.6",
    back: "M15 5l-7 7 7 7",
    check: "M4 12.5l5.5 5.5L20 6.5",
    close: "M6 6l12 12M18 6L6 18",
    copy: "M9 9h11v11H9zM15 9V4H4v11h5",
    delete: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
    edit: "M4 20l1-4L16.5 4.5l3 3L8 19zM14 7l3 3",
    forward: "M9 5l7 7-7 7",
    likely: "M5 19L19 5M7.5 5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM16.5 14a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
    load: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
    menu: "M4 6h16M4 12h16M4 18h16",
    moon: "M19 14.5A8 8 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5z",
    new: "M12 5v14M5 12h14",
    retry: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
    save: "M12 4v12M7 11l5 5 5-5M4 16v4h16v-4",
    send: "M12 20V5M5.5 11.5L12 5l6.5 6.5",
    settings: "M4 7h9M17 7h3M13 4.5v5M4 17h3M11 17h9M7 14.5v5",
    stop: "M7 7h10v10H7z",
    sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2" +
        "M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
    write: "M5 5v14M9 8l8 4-8 4z"
};

function icon(name) {
    const draw = (tag, properties, ...children) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
        element.append(...children);
        return element;
    };
    return draw("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" },
        draw("path", { d: ICONS[name] }));
}

/* A button without words has them for screen readers, and for those who point at it. */
const icon_button = (name, label, click, properties = {}) =>
    make("button", { type: "button", class: "plain", "aria-label": label, title: label, click,
        ...properties }, icon(name));

/* Another picture and name, where it has changed: the button may have the focus. */
function set_icon(pressed, name, label) {
    if (pressed.dataset.icon === name && pressed.ariaLabel === label) return;
    pressed.dataset.icon = name;
    pressed.setAttribute("aria-label", label);
    pressed.title = label;
    pressed.replaceChildren(icon(name));
}

/* Those of index.html. */
function draw_icons() {
    for (const pressed of document.querySelectorAll("button[data-icon]")) {
        pressed.prepend(icon(pressed.dataset.icon));
        pressed.title ||= pressed.ariaLabel || "";
    }
}
