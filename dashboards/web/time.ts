// The time that all charts of a run share: one range, one cursor. Both stand in the address, so
// they survive a change of page and can be sent to somebody.
import { current, replaceQuery } from "./address";

type Listener = (rangeChanged: boolean) => void;

const SHORTEST = 0.01; // seconds; a drag shorter than this is a click

class Timeline {
  full: [number, number] = [0, 1];
  from = 0;
  to = 1;
  at: number | null = null; // under the pointer, or pinned
  private pinned: number | null = null;
  private listeners = new Set<Listener>();

  get whole(): boolean {
    return this.from <= this.full[0] && this.to >= this.full[1];
  }

  // A page begins: the range of the address, within what was recorded.
  begin(full: [number, number]): void {
    const [low, high] = full;
    this.full = high > low ? [low, high] : [low, low + 1];
    [this.from, this.to] = this.full;
    const { query } = current();
    const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(query.get("t") ?? "");
    if (range) this.clampRange(Number(range[1]), Number(range[2]));
    const at = query.get("at");
    this.pinned = at !== null && /^\d+(\.\d+)?$/.test(at) ? Number(at) : null;
    this.at = this.pinned;
  }

  // A live run grew. A reader who sees all of it goes on seeing all of it.
  grow(end: number): void {
    if (end <= this.full[1]) return;
    const follows = this.whole;
    this.full = [this.full[0], end];
    if (follows) this.to = end;
    this.tell(true);
  }

  subscribe(listener: Listener, signal: AbortSignal): void {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  }

  point(at: number | null): void {
    this.at = at ?? this.pinned;
    this.tell(false);
  }

  // Keeps the cursor where it is when the pointer leaves; null lets it go.
  pin(at: number | null): void {
    this.pinned = at;
    this.at = at;
    replaceQuery({ at: at === null ? null : at.toFixed(2) });
    this.tell(false);
  }

  get isPinned(): boolean {
    return this.pinned !== null;
  }

  zoom(from: number, to: number): void {
    if (Math.abs(to - from) < SHORTEST) return;
    this.clampRange(Math.min(from, to), Math.max(from, to));
    this.written();
  }

  showAll(): void {
    [this.from, this.to] = this.full;
    this.written();
  }

  // Nearer (factor < 1) or farther, around the cursor or the middle.
  scale(factor: number): void {
    const middle = this.at ?? (this.from + this.to) / 2;
    this.zoom(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  // Sideways by a share of what is seen.
  pan(share: number): void {
    const width = this.to - this.from;
    const low = Math.min(Math.max(this.full[0], this.from + share * width), this.full[1] - width);
    this.zoom(low, low + width);
  }

  private clampRange(from: number, to: number): void {
    const low = Math.max(this.full[0], Math.min(from, this.full[1]));
    const high = Math.min(this.full[1], Math.max(to, this.full[0]));
    if (high - low < SHORTEST) return;
    this.from = low;
    this.to = high;
  }

  private written(): void {
    replaceQuery({ t: this.whole ? null : `${this.from.toFixed(2)}-${this.to.toFixed(2)}` });
    this.tell(true);
  }

  private tell(rangeChanged: boolean): void {
    for (const listener of this.listeners) listener(rangeChanged);
  }
}

export const timeline = new Timeline();

// The window that a time lies in; -1 in a gap.
export function windowAt(t: readonly number[], d: readonly number[], at: number): number {
  let low = 0;
  let high = t.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (at < t[middle]) high = middle - 1;
    else if (at >= t[middle] + d[middle]) low = middle + 1;
    else return middle;
  }
  return -1;
}

// The mean over the windows of the range, each weighed by its length; null where none is known.
export function meanInRange(
  t: readonly number[],
  d: readonly number[],
  value: (index: number) => number | null | undefined,
): number | null {
  let sum = 0;
  let length = 0;
  for (let i = 0; i < t.length; i++) {
    const middle = t[i] + d[i] / 2;
    const here = value(i);
    if (middle < timeline.from || middle > timeline.to || here === null || here === undefined)
      continue;
    sum += here * d[i];
    length += d[i];
  }
  return length > 0 ? sum / length : null;
}
