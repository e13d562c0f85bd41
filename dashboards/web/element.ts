// Elements from data. Text only ever becomes a text node or an attribute, never markup: names in a
// run come from files and other programs, and none of them may be obeyed here.
//
// The pages are served with a policy that refuses inline styles, so `style` takes properties and
// sets them one by one.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

export interface Attributes {
  class?: string | false | null;
  style?: Record<string, string | number>;
  [name: string]: unknown;
}

const SVG = "http://www.w3.org/2000/svg";

function apply(node: Element & ElementCSSInlineStyle, attributes: Attributes | null): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (typeof value === "function") {
      node.addEventListener(name, value as EventListener);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value as Record<string, string | number>)) {
        node.style.setProperty(property, String(text));
      }
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

function fill(node: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(node, child as readonly Child[]);
    else node.append(child instanceof Node ? child : String(child));
  }
}

// An HTML element. A function among the attributes listens to the event of its name; true is an
// attribute without a value; null, undefined, false and "" are left out.
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  apply(node, attributes);
  fill(node, children);
  return node;
}

// An SVG element; as h().
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag) as SVGElementTagNameMap[K];
  apply(node, attributes);
  fill(node, children);
  return node;
}

// A drawing of the given size that shrinks with its box (as paper does) and has a name for readers
// of screens; without a name it is decoration.
export function drawing(width: number, height: number, label: string | null, name?: string) {
  return s("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    class: name,
    role: label === null ? null : "img",
    "aria-label": label,
    "aria-hidden": label === null ? "true" : null,
  });
}

// One for all boxes. It hears of many at once, and asks for every width before it draws the first: a
// width that is asked for after a drawing costs a layout of the whole page.
const boxes = new WeakMap<Element, Fitted>();
const resized = new ResizeObserver((entries) => {
  const widths = entries.map(({ target }) => target.clientWidth);
  entries.forEach(({ target }, i) => boxes.get(target)?.fit(widths[i]));
});

// Calls `act` in the next frame, once however often it was asked for until then: who types faster than
// a page is drawn waits for one drawing, not for one of each letter.
export function oncePerFrame(act: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}

// A box that draws its contents when its width is known, and again when that changes.
export class Fitted {
  readonly element: HTMLDivElement;
  private width = 0;

  constructor(
    private readonly draw: (width: number) => Node,
    attributes: Attributes | null = null,
  ) {
    this.element = h("div", attributes);
    boxes.set(this.element, this);
    resized.observe(this.element);
  }

  // Draws again at the same width: the data or the range has changed.
  redraw(): void {
    this.width = 0;
    this.fit(this.element.clientWidth);
  }

  fit(room: number): void {
    const width = Math.floor(room);
    if (width <= 0 || width === this.width) return;
    this.width = width;
    this.element.replaceChildren(this.draw(width));
  }
}

export function fitted(draw: (width: number) => Node, attributes: Attributes | null = null) {
  return new Fitted(draw, attributes).element;
}

// One line beside the pointer. What it says is also in the table of each chart.
const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });

function placeTip(x: number, y: number): void {
  const room = { width: document.documentElement.clientWidth, height: window.innerHeight };
  const left = Math.max(4, Math.min(x + 14, room.width - tip.offsetWidth - 6));
  const below = y + 18 + tip.offsetHeight <= room.height;
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${below ? y + 18 : y - tip.offsetHeight - 10}px`);
}

export function hideTip(): void {
  tip.hidden = true;
}

export function withTip<T extends Element>(node: T, text: string | (() => string)): T {
  node.addEventListener("pointermove", (event) => {
    const { clientX, clientY } = event as PointerEvent;
    if (!tip.isConnected) document.body.append(tip);
    tip.textContent = typeof text === "string" ? text : text();
    tip.hidden = false;
    placeTip(clientX, clientY);
  });
  node.addEventListener("pointerleave", hideTip);
  return node;
}
