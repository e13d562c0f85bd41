// From values to positions, and the round values that an axis is marked with.
import { seconds } from "../numbers";

export type Scale = (value: number) => number;

export function linear(low: number, high: number, start: number, end: number): Scale {
  const per = high > low ? (end - start) / (high - low) : 0;
  return (value) => start + (value - low) * per;
}

export function logarithmic(low: number, high: number, start: number, end: number): Scale {
  const per = high > low ? (end - start) / Math.log(high / low) : 0;
  return (value) => start + Math.log(value / low) * per;
}

function multiples(low: number, high: number, step: number): number[] {
  const ticks: number[] = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let i = first; i * step <= high + step * 1e-6 && ticks.length < 100; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

// About `wanted` values of 1, 2 or 5 times a power of ten.
export function ticks(low: number, high: number, wanted: number): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
  return multiples(low, high, step ?? 10 * power);
}

// 1, 2 and 5 times each power of ten within the range, thinned to about `wanted`.
export function logTicks(low: number, high: number, wanted: number): number[] {
  if (!(low > 0) || !(high > low)) return [];
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) {
      const value = Number((factor * 10 ** power).toPrecision(6));
      if (value >= low && value <= high) all.push(value);
    }
  }
  if (all.length <= wanted) return all;
  const decades = all.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9);
  return decades.length >= 2 ? decades : all.filter((_, i) => i % 2 === 0);
}

const TIME_STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// Times are marked at whole minutes and hours where the range is that long.
export function timeTicks(from: number, to: number, wanted: number): number[] {
  const raw = (to - from) / Math.max(1, wanted);
  if (raw <= 10) return ticks(from, to, wanted);
  const step = TIME_STEPS.find((each) => each >= raw) ?? 86400 * Math.ceil(raw / 86400);
  return multiples(from, to, step);
}

// A time since the run began: 4.5 s, 3:20 min, 2:05 h.
export function timeLabel(at: number, span: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (span > 7200) return `${Math.floor(at / 3600)}:${two((at % 3600) / 60)} h`;
  if (span > 150) return `${Math.floor(at / 60)}:${two(at % 60)} min`;
  return at >= 120
    ? `${Number(at.toFixed(2))} s`
    : seconds(at).replace(/\.0+(?=\D)|(\.\d*?)0+(?=\D)/, "$1");
}

// Text cut to about `room` pixels of 12 pixel type; empty where not even two letters fit.
export function cut(text: string, room: number): string {
  const letters = Math.floor(room / 6.4);
  if (text.length <= letters) return text;
  return letters >= 3 ? text.slice(0, letters - 1) + "…" : "";
}
