#!/usr/bin/env python3
"""Holds the page's Markdown against CommonMark's examples: how many of each section are drawn as
there, and with --show what differs. SPEC is the specification's examples as JSON (spec.json of
commonmark.org), PAGE the page.html that a build writes. The page draws no raw HTML, no pictures,
and links to whole addresses alone, so examples of these are counted apart.
    check_markdown.py SPEC PAGE [--show SECTION]"""
import argparse
import collections
import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree is not the check's to write to
import chromium

# An element's tags and texts, without what the page adds: boxes around code and tables, classes.
SHAPE = r"""window.shape = (node, kept = false) => {
    if (node.nodeType === Node.TEXT_NODE) return kept ? node.data : node.data.replace(/\s+/g, " ");
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.matches(".bar")) return "";
    const tag = node.localName, inside = [...node.childNodes].map((x) => shape(x, kept || tag === "pre")).join("");
    const block = /^(p|li|ul|ol|h\d|pre|blockquote|hr|table|tr|t[dh])$/.test(tag);
    if (["div", "span", "body", "thead", "tbody"].includes(tag)) return inside;
    const link = tag === "a" ? ` ${decodeURI(node.href)}` : tag === "ol" ? ` ${node.start}` : "";
    const text = tag === "pre" ? inside.replace(/\n$/, "").replace(/\n<\/code>$/, "</code>") : block ? inside.trim() : inside;
    return block ? `\n<${tag}${link}>${text}</${tag}>` : `<${tag}${link}>${inside}</${tag}>`;
};
window.drawn = (text) => {
    const box = document.createElement("div");
    draw_markdown(box, text);
    return shape(box).replace(/\s*\n\s*(?=<)/g, "\n").replace(/\s+(?=<\/(p|li|td|th|h\d)>)/g, "").replace(/(<br><\/br>)\s+/g, "$1").trim();
};
window.wanted = (html) => shape(new DOMParser().parseFromString(html, "text/html").body)
    .replace(/\s*\n\s*(?=<)/g, "\n").replace(/\s+(?=<\/(p|li|td|th|h\d)>)/g, "").replace(/(<br><\/br>)\s+/g, "$1").trim();
true"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("spec")
    ap.add_argument("page")
    ap.add_argument("--show", metavar="SECTION")
    args = ap.parse_args()
    with open(args.spec, encoding="utf-8") as f:
        examples = json.load(f)
    refused = re.compile(r'<img|href="(?!https?:|mailto:)')
    apart = {"HTML blocks", "Raw HTML"}
    same, all_of = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="drey page ") as folder:
        browser = chromium.Browser(folder)
        browser.open("file://" + os.path.abspath(args.page))
        browser.js(SHAPE)
        for example in examples:
            section = example["section"]
            got, wanted = browser.js("[drawn(%s), wanted(%s)]" % (json.dumps(example["markdown"].rstrip("\n")),
                                                                  json.dumps(example["html"])))
            other = section in apart or refused.search(example["html"]) or re.search(r"\]:\s*/", example["markdown"])
            for name in (section, *([] if other else ["without HTML, pictures and relative addresses"])):
                all_of[name] += 1
                same[name] += got == wanted
            if got != wanted and section == args.show:
                print(f"---- {example['example']}\n{example['markdown']}wanted: {wanted}\ngot: {got}")
        browser.close()
    for section in sorted(all_of):
        print(f"{section:45} {same[section]:4} of {all_of[section]}")
    whole = {section: n for section, n in all_of.items() if not section.startswith("without")}
    print(f"{'all':45} {sum(same[section] for section in whole):4} of {sum(whole.values())}")


if __name__ == "__main__":
    main()
