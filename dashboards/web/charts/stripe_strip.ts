// All stripes of a table in one line, each as wide as its bytes: what of them is wanted, read over
// and skipped. The one that is drawn below is framed.
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { LayoutStripes } from "../types";

const HEIGHT = 30;

const part = (x: number, y: number, w: number, h: number) =>
  `M${x.toFixed(2)} ${y.toFixed(2)}h${w.toFixed(2)}v${h.toFixed(2)}h${(-w).toFixed(2)}z`;

function say(stripes: LayoutStripes, index: number): string {
  const first = stripes.first[index];
  const many = stripes.count[index];
  const name = many > 1 ? `stripes ${first} to ${first + many - 1}` : `stripe ${first}`;
  const stored = stripes.stored[index] || 1;
  return `${name} of ${stripes.file[index]} · ${numbers.bytes(stripes.stored[index])} · wanted ${numbers.percent(stripes.wanted[index] / stored)}, read over ${numbers.percent(stripes.over[index] / stored)} · ${numbers.plural(stripes.reads[index], "read")}`;
}

export function stripeStrip(
  width: number,
  stripes: LayoutStripes,
  chosen: number,
  label: string,
  onChoose: (stripe: number) => void,
): SVGSVGElement {
  const total = stripes.stored.reduce((sum, bytes) => sum + bytes, 0) || 1;
  const svg = drawing(width, HEIGHT + 4, label, "strip");
  const paths = { c: "", wo: "", wi: "" };
  const ends: number[] = [];
  let x = 0;
  stripes.stored.forEach((stored, i) => {
    const w = (stored / total) * width;
    const own = Math.max(0.3, w - (w > 4 ? 1 : 0));
    const wanted = stored > 0 ? (stripes.wanted[i] / stored) * HEIGHT : 0;
    const over = stored > 0 ? (stripes.over[i] / stored) * HEIGHT : 0;
    paths.c += part(x, 2 + HEIGHT - wanted, own, wanted);
    paths.wo += part(x, 2 + HEIGHT - wanted - over, own, over);
    paths.wi += part(x, 2, own, HEIGHT - wanted - over);
    const here = chosen >= stripes.first[i] && chosen < stripes.first[i] + stripes.count[i];
    if (here) svg.append(s("rect", { x, y: 1, width: own, height: HEIGHT + 2, class: "chosen" }));
    x += w;
    ends.push(x);
  });
  svg.prepend(
    s("path", { d: paths.wi, class: "fill-wi" }),
    s("path", { d: paths.wo, class: "fill-wo" }),
    s("path", { d: paths.c, class: "fill-c" }),
  );
  let pointed = 0;
  const place = (event: MouseEvent) => {
    const box = svg.getBoundingClientRect();
    const at = box.width > 0 ? ((event.clientX - box.left) / box.width) * width : 0;
    pointed = Math.max(
      0,
      ends.findIndex((end) => at < end),
    );
  };
  svg.addEventListener("pointermove", place);
  svg.addEventListener("click", (event) => {
    place(event);
    onChoose(stripes.first[pointed]);
  });
  return withTip(svg, () => say(stripes, pointed));
}
