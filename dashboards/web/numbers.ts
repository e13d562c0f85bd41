// Numbers for people, as base/units.h writes them in a terminal: three significant digits and a
// unit. What was not measured is a dash, never 0.

export type Maybe = number | null | undefined;

export const NONE = "–";
const GAP = " "; // no line break between a number and its unit

const known = (value: Maybe): value is number => typeof value === "number" && isFinite(value);

function digits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0";
  const decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.9995 ? 2 : 3;
  return value.toFixed(decimals).replace("-", "−");
}

// Of the steps [size, unit], largest first, the first that the value reaches.
function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  const step = steps.find(([size]) => Math.abs(value) >= size * 0.9995) ?? steps[steps.length - 1];
  return digits(value / step[0]) + GAP + step[1];
}

// Whole numbers stay whole: a queue has 4 places, not 4.00.
export function count(value: Maybe): string {
  if (!known(value)) return NONE;
  if (Math.abs(value) >= 9999.5) {
    return scaled(value, [
      [1e12, "T"],
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
    ]);
  }
  if (Number.isInteger(value)) return String(value).replace("-", "−");
  return Math.abs(value) >= 999.5 ? value.toFixed(0) : digits(value);
}

export function rate(value: Maybe, what: string): string {
  return known(value) ? `${rateNumber(value)}${GAP}${what}/s` : NONE;
}

// A rate without its unit: 128, 4.13 k.
export function rateNumber(value: Maybe): string {
  if (!known(value)) return NONE;
  if (Math.abs(value) >= 9999.5) return count(value);
  return Math.abs(value) >= 999.5 ? value.toFixed(0) : digits(value);
}

export function percent(value: Maybe): string {
  if (!known(value)) return NONE;
  const of100 = value * 100;
  if (of100 !== 0 && Math.abs(of100) < 0.1) return of100 > 0 ? `<0.1${GAP}%` : `>−0.1${GAP}%`;
  return (
    of100.toFixed(Math.abs(of100) >= 99.95 || of100 === 0 ? 0 : 1).replace("-", "−") + `${GAP}%`
  );
}

// Where a tenth of a per cent is not worth its room.
export function wholePercent(value: Maybe): string {
  if (!known(value)) return NONE;
  if (value > 0 && value < 0.005) return `<1${GAP}%`;
  return `${Math.round(value * 100)}${GAP}%`;
}

export function change(value: Maybe): string {
  if (!known(value)) return NONE;
  if (value === 0) return `0${GAP}%`;
  if (value >= 9.995) return `×${digits(1 + value)}`; // +1100 % reads worse
  const of100 = Math.abs(value * 100);
  if (of100 < 0.05) return `0.0${GAP}%`;
  const sign = value < 0 ? "−" : "+";
  return `${sign}${of100 >= 9.95 ? of100.toFixed(0) : of100.toFixed(1)}${GAP}%`;
}

export function bytes(value: Maybe): string {
  if (!known(value)) return NONE;
  if (Math.abs(value) < 1023.5) return `${value.toFixed(0)}${GAP}B`;
  return scaled(value, [
    [2 ** 50, "PiB"],
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ]);
}

export function byteRate(value: Maybe): string {
  if (!known(value)) return NONE;
  return scaled(value, [
    [1e12, "TB/s"],
    [1e9, "GB/s"],
    [1e6, "MB/s"],
    [1e3, "kB/s"],
    [1, "B/s"],
  ]);
}

export function seconds(value: Maybe): string {
  if (!known(value)) return NONE;
  if (value === 0) return `0${GAP}s`;
  const magnitude = Math.abs(value);
  if (magnitude >= 7200) return digits(value / 3600) + `${GAP}h`;
  if (magnitude >= 120) return digits(value / 60) + `${GAP}min`;
  return scaled(value, [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ]);
}

export function cores(value: Maybe): string {
  return known(value) ? `${digits(value)}${GAP}cores` : NONE;
}

export function interval(low: Maybe, high: Maybe, format: (value: number) => string = rateNumber) {
  return known(low) && known(high) ? `[${format(low)}, ${format(high)}]` : "";
}

export function percentInterval(low: Maybe, high: Maybe): string {
  if (known(high) && high >= 9.995) return interval(low, high, change);
  return interval(low, high, (value) =>
    Math.round(value * 100)
      .toString()
      .replace("-", "−"),
  );
}

export function plural(n: number, word: string): string {
  return `${count(n)}${GAP}${word}${n === 1 ? "" : "s"}`;
}

// A time of day in the reader's own zone: 2026-11-23 02:13.
export function moment(secondsSince1970: Maybe): string {
  if (!known(secondsSince1970)) return NONE;
  const at = new Date(secondsSince1970 * 1000);
  if (isNaN(at.getTime())) return NONE;
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

// A value with the unit that the API names.
export function inUnit(value: Maybe, unit: string): string {
  switch (unit) {
    case "cores":
      return cores(value);
    case "ratio":
      return percent(value);
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return byteRate(value);
    case "s":
    case "seconds":
      return seconds(value);
    default:
      if (!known(value) || unit === "") return count(value);
      return `${rateNumber(value)}${GAP}${unit}`;
  }
}
