// The pages IO layout and Characterization, stacks against another run's, and the course of rates:
// what they draw is what they were told, and the keyboard and the address reach it.
import { expect } from "@playwright/test";
import { readFileSync } from "node:fs";
import { IDS, query, settled, show, test } from "./site";
import { makeIoLayout } from "./io_runs.mjs";

interface Drawn {
  streams: { offset: number[]; stored: number[]; wanted: number[]; over: number[] };
}

const io = `/run/${IDS.plain}/io`;
const sum = (list: number[]) => list.reduce((total, value) => total + value, 0);

// Square pixels that the pieces of one fate fill: rectangles of a path.
async function areaOf(page: import("@playwright/test").Page, fate: string): Promise<number> {
  return page.locator(`svg.file-map path.fill-${fate}`).evaluate((path) => {
    const parts = (path.getAttribute("d") ?? "").matchAll(/h(-?[\d.]+)v([\d.]+)h/g);
    return [...parts].reduce(
      (total, [, width, height]) => total + Number(width) * Number(height),
      0,
    );
  });
}

test("the file is drawn in proportion to its bytes", async ({ page, site }) => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await show(page, site + io);
  const { streams } = makeIoLayout() as unknown as Drawn;
  const [wanted, over] = [sum(streams.wanted), sum(streams.over)];
  const rest = sum(streams.stored) - wanted - over;
  const [drawnWanted, drawnOver, drawnRest] = [
    await areaOf(page, "c"),
    await areaOf(page, "wo"),
    await areaOf(page, "wi"),
  ];
  expect(drawnWanted / drawnOver).toBeCloseTo(wanted / over, 1);
  expect(drawnWanted / drawnRest).toBeCloseTo(wanted / rest, 1);
});

test("another stripe is chosen by the keyboard and stays in the address", async ({
  page,
  site,
}) => {
  await show(page, site + io);
  await expect(page.getByText(/^Stripe 0, byte after byte/)).toBeVisible();
  await page.getByLabel("Stripe", { exact: true }).selectOption("2");
  await expect(page.getByText(/^Stripe 2, byte after byte/)).toBeVisible();
  expect(query(page).get("stripe")).toBe("2");
  await page.reload();
  await settled(page);
  await expect(page.getByText(/^Stripe 2, byte after byte/)).toBeVisible();
});

test("a place of the file says what lies there and what becomes of it", async ({ page, site }) => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await show(page, site + io);
  const map = page.locator("svg.file-map");
  await map.scrollIntoViewIfNeeded();
  await map.hover({ position: { x: 80, y: 20 } });
  await expect(page.locator(".tip")).toContainText(/row index of dense · .* · skipped/);
});

test("the file's table has every piece, and its CSV all digits", async ({ page, site }) => {
  await show(page, site + io);
  const layout = makeIoLayout() as unknown as Drawn;
  const files = page.waitForEvent("download");
  await page.getByRole("button", { name: /CSV file of: What of the file is read/ }).click();
  const csv = readFileSync(await (await files).path(), "utf8")
    .trim()
    .split("\r\n");
  expect(csv.length).toBe(layout.streams.offset.length + 1);
  expect(csv[0]).toContain("offset in the file");
  expect(csv[1].split(",")[1]).toBe(String(layout.streams.offset[0]));
});

test("a heat map says each field, and its table each number", async ({ page, site }) => {
  await show(page, site + io);
  const heat = page.locator('[data-card="io-latency"]');
  await heat.scrollIntoViewIfNeeded();
  await heat.locator("svg.heat rect.fill-c").first().hover();
  await expect(page.locator(".tip")).toContainText(/4 KiB to 8 KiB, .* requests?/);
  await heat.getByRole("button", { name: "As a table" }).click();
  await expect(heat.locator("tbody tr:not(.spacer)").first()).toContainText("requests to devices");
});

test("what was not recorded says why, and nothing is drawn", async ({ page, site }) => {
  await show(page, `${site}/run/${IDS.blind}/io`);
  await expect(page.getByText("bpf() failed")).toBeVisible();
  await expect(page.getByText("This run has none.")).toBeVisible();
  await expect(page.locator("svg.file-map, svg.heat")).toHaveCount(0);
});

test("the sheet says a figure with its published values, or why it is not known", async ({
  page,
  site,
}) => {
  await show(page, `${site}/run/${IDS.plain}/sheet`);
  await expect(page.getByText("It is limited by the cores.")).toBeVisible();
  const row = page.getByRole("row", { name: /rows of one worker/ });
  await expect(row).toContainText("61.2 krows/s [60.1, 62.2]");
  await expect(row).toContainText("103 krows/s");
  await expect(row).toContainText("x0.59 of the published");
  await expect(page.getByRole("row", { name: /NIC ingress/ })).toContainText("no NIC was modelled");
  await expect(page.getByText("headrace characterize TABLE")).toBeVisible();
});

test("stacks are held against those of another run, which stays in the address", async ({
  page,
  site,
}) => {
  await show(page, `${site}/run/${IDS.plain}/operators`);
  await page.getByLabel("Compare with run").selectOption(String(IDS.level1));
  const diff = page.locator('[data-card="stacks-diff"]');
  await expect(diff).toContainText("Most changed is decode.decompress");
  expect(query(page).get("with")).toBe(String(IDS.level1));
  // Colour is not the only sign: the change stands in the frame's words.
  const less = diff.locator('g:has(rect[class*="frame-less"])').first();
  await expect(less).toHaveAttribute("aria-label", /−\d|only there/);
  const more = diff.locator('g:has(rect[class*="frame-more"])').first();
  await expect(more).toHaveAttribute("aria-label", /\+\d|×|only here/);
  await page.reload();
  await settled(page);
  await expect(diff).toContainText("Most changed");
  await diff.locator('g[tabindex="0"]').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(diff.locator('g[tabindex="0"]')).toBeFocused();
});

test("a comparison leads to the stacks of a pair", async ({ page, site }) => {
  await show(page, `${site}/compare/1`);
  const first = page.getByRole("link", { name: /^run \d+ against run \d+$/ }).first();
  await expect(first).toHaveAttribute("href", /\/run\/\d+\/operators\?with=\d+/);
});

test("rates of runs are drawn with the version that began, and say what stands out", async ({
  page,
  site,
}) => {
  await show(page, site);
  const trends = page.locator('[data-card="trends"]');
  await expect(trends).toContainText("36.1 % less than the median of the 10 before it");
  await expect(trends.locator("svg.trend").first()).toContainText("0.2.0");
  await trends.locator("circle").last().hover();
  await expect(page.locator(".tip")).toContainText("version 0.1.0");
});
