// Colours that mean something stay apart for people who cannot tell red from green: those of what a thread is doing, and
// the accent that marks what limits. Simulated as Machado, Oliveira and Fernandes (2009), table 1, severity 1; distances
// are CIE 1976 delta E, of which about 2.3 can just be noticed side by side.
import { expect, test } from "@playwright/test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const bundle = resolve(process.env.HEADRACE_WEB_BUNDLE ?? "bundle");
const states = ["c", "b", "q", "wi", "wo"];

type Color = [number, number, number];

// What each scheme's own block sets; the other colours are those of the light one.
function themes(css: string) {
  const set = (block: string) =>
    new Map(
      [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6}|#[0-9a-f]{3})\b/g)].map(([, name, value]) => [
        name!,
        value!,
      ]),
    );
  const dark = css.search(/:root\[data-theme="?dark"?\]\{/);
  expect(dark).toBeGreaterThan(0);
  const light = set(css.slice(0, dark));
  return { light, dark: new Map([...light, ...set(css.slice(dark, css.indexOf("}", dark)))]) };
}

function linear(color: string): Color {
  const digits =
    color.length === 4 ? [...color.slice(1)].map((d) => d + d) : color.slice(1).match(/../g)!;
  return digits.map((d) => {
    const value = parseInt(d, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Color;
}

const times = (matrix: Color[], color: Color) =>
  matrix.map((row) => row.reduce((sum, factor, i) => sum + factor * color[i]!, 0)) as Color;

// Without the cones for green, and without those for red.
const vision: Record<string, Color[]> = {
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};

// CIE L*a*b* under D65.
function lab(color: Color): Color {
  const xyz = times(
    [
      [0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505],
      [0.2126, 0.7152, 0.0722],
      [0.0193 / 1.0888, 0.1192 / 1.0888, 0.9505 / 1.0888],
    ],
    color,
  );
  const [x, y, z] = xyz.map((t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116)) as Color;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(one: string, other: string, seenBy: string) {
  const seen = (color: string) =>
    lab(times(vision[seenBy]!, linear(color)).map((v) => Math.min(1, Math.max(0, v))) as Color);
  const [a, b] = [seen(one), seen(other)];
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

test("distances are right", () => {
  expect(distance("#000000", "#ffffff", "protanopia")).toBeCloseTo(100, 0);
  // A red and a green that differ for others: they are closer than the states below may be.
  expect(distance("#b04a3a", "#6f6f3a", "deuteranopia")).toBeLessThan(15);
});

test("what threads do, and what limits, are told apart without red and green", () => {
  const css = readFileSync(join(bundle, "style.css"), "utf8");
  for (const [scheme, colors] of Object.entries(themes(css)))
    for (const eyes of Object.keys(vision)) {
      const apart = (one: string, other: string) =>
        expect(
          distance(colors.get(one)!, colors.get(other)!, eyes),
          `${scheme}, ${eyes}: ${one} and ${other}`,
        ).toBeGreaterThan(15);
      states.forEach((one, i) => {
        for (const other of states.slice(i + 1)) apart(one, other);
        apart("accent", one);
      });
    }
});
