// As much of a document as the page of `smelt view` uses, to run its script without a browser.
"use strict";
class Element {
  constructor(tag) { Object.assign(this, { tagName: tag.toUpperCase(), parent: null, attributes: {}, children: [], listeners: {}, dataset: {}, style: {}, clientWidth: 1200, clientHeight: 800, offsetTop: 0 }); }
  append(...nodes) { for (const n of nodes) { const e = n instanceof Element ? n : text(String(n)); if (e.parent) e.remove(); e.parent = this; this.children.push(e); } }
  remove() { this.parent.children.splice(this.parent.children.indexOf(this), 1); this.parent = null; }
  replaceChildren(...nodes) { for (const c of this.children) c.parent = null; this.children = []; this.append(...nodes); }
  replaceWith(...nodes) { const p = this.parent, after = p.children.splice(p.children.indexOf(this)).slice(1); p.append(...nodes); p.children.push(...after); }
  setAttribute(k, v) { this.attributes[k] = String(v); if (k.startsWith("data-")) this.dataset[k.slice(5)] = String(v); }
  addEventListener(k, f) { (this.listeners[k] ||= []).push(f); }
  click() { for (const f of this.listeners.click || []) f({}); }
  scrollIntoView() {}
  all() { return this.children.flatMap(c => [c, ...c.all()]); }
  get childNodes() { return this.children; }
  get firstChild() { return this.children[0]; }
  get nodeType() { return this.tagName === "#TEXT" ? 3 : 1; }
  get value() { if ("chosen" in this) return this.chosen; if (this.tagName !== "SELECT") return this.attributes.value || ""; const o = this.children[0]; return o ? o.attributes.value ?? o.textContent : ""; }
  set value(v) { this.chosen = String(v); }
  get textContent() { return this.tagName === "#TEXT" ? this.text : this.children.map(c => c.textContent).join(""); }
  set textContent(v) { this.replaceChildren(String(v)); }
  get classList() {
    const get = () => new Set((this.attributes.class || "").split(" ").filter(Boolean)), set = c => { this.attributes.class = [...c].join(" "); };
    return { toggle: (n, on) => { const c = get(); (on ?? !c.has(n)) ? c.add(n) : c.delete(n); set(c); }, add: n => set(get().add(n)), remove: n => { const c = get(); c.delete(n); set(c); } };
  }
  matches(s) {
    const [, tag, name, key, value] = /^(\w*)(?:\.(\w+))?(?:\[data-(\w+)="(.*)"\])?$/.exec(s);
    return (!tag || this.tagName === tag.toUpperCase()) && (!name || (this.attributes.class || "").split(" ").includes(name)) && (!key || this.dataset[key] === value);
  }
  querySelectorAll(s) { return this.all().filter(e => e.matches(s)); }
  querySelector(s) { return this.querySelectorAll(s)[0] || null; }
}
const text = t => Object.assign(new Element("#text"), { text: t });
const body = new Element("body"), named = {};
for (const id of ["title", "summary", "tabs", "main"]) body.append(named[id] = new Element("div"));
globalThis.document = { createElement: t => new Element(t), createElementNS: (_, t) => new Element(t), getElementById: id => named[id], querySelectorAll: s => body.querySelectorAll(s) };
globalThis.location = { hash: "" };
globalThis.history = { replaceState() {} };
globalThis.addEventListener = () => {};
globalThis.requestAnimationFrame = f => f();
globalThis.CSS = { escape: s => s };
