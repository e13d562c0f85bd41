// Pointing at a chart of time: moving shows the cursor in all charts, a drag zooms, a click pins the
// cursor or lets it go, a double click shows the whole run.
import { s } from "../element";
import { timeline } from "../time";
import { linear } from "./scale";

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const LEAST_DRAG = 4; // pixels

export function followPointer(svg: SVGSVGElement, frame: Frame): void {
  const brush = s("rect", {
    y: frame.top,
    height: frame.bottom - frame.top,
    class: "brush hidden",
  });
  svg.append(brush);
  svg.classList.add("pointed");
  let start: number | null = null; // in pixels of the drawing
  const pixel = (event: PointerEvent) => {
    const box = svg.getBoundingClientRect();
    const scale = box.width > 0 ? svg.viewBox.baseVal.width / box.width : 1;
    return Math.min(frame.right, Math.max(frame.left, (event.clientX - box.left) * scale));
  };
  const time = (at: number) => linear(frame.left, frame.right, timeline.from, timeline.to)(at);
  svg.addEventListener("pointermove", (event) => {
    const at = pixel(event);
    timeline.point(time(at));
    if (start === null) return;
    brush.setAttribute("x", String(Math.min(start, at)));
    brush.setAttribute("width", String(Math.abs(at - start)));
    brush.setAttribute("class", Math.abs(at - start) >= LEAST_DRAG ? "brush" : "brush hidden");
  });
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = pixel(event);
    // A drag may end outside of the chart. Touch keeps scrolling the page.
    if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", (event) => {
    const began = start;
    start = null;
    brush.setAttribute("class", "brush hidden");
    if (began === null) return;
    const at = pixel(event);
    if (Math.abs(at - began) >= LEAST_DRAG) timeline.zoom(time(began), time(at));
    else timeline.pin(timeline.isPinned ? null : time(at));
  });
  svg.addEventListener("pointercancel", () => {
    start = null;
    brush.setAttribute("class", "brush hidden");
  });
  svg.addEventListener("pointerleave", () => {
    if (start === null) timeline.point(null);
  });
  svg.addEventListener("dblclick", () => {
    timeline.pin(null);
    timeline.showAll();
  });
}
