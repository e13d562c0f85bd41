// What the pages do: the address is the view, the keyboard reaches everything, files hold all digits.
import { expect } from "@playwright/test";
import type { Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import { IDS, query, settled, show, test } from "./site";

const overview = `/run/${IDS.plain}`;

async function dragOverLanes(page: Page): Promise<void> {
  const lanes = page.locator("svg.lanes");
  await lanes.scrollIntoViewIfNeeded();
  const box = await lanes.boundingBox();
  if (!box) throw new Error("the lanes are not drawn");
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.3, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, y);
  await page.mouse.move(box.x + box.width * 0.5, y);
  await page.mouse.up();
}

test("a drag zooms; the range stays when the page is loaded again or another is chosen", async ({
  page,
  site,
}) => {
  await show(page, site + overview);
  expect(query(page).get("t")).toBeNull();
  await dragOverLanes(page);
  const range = query(page).get("t");
  expect(range).toMatch(/^\d+\.\d\d-\d+\.\d\d$/);
  await page.reload();
  await settled(page);
  expect(query(page).get("t")).toBe(range);
  await page.getByRole("link", { name: "Operators", exact: true }).click();
  await settled(page);
  expect(page.url()).toContain("/operators");
  expect(query(page).get("t")).toBe(range);
  await page.getByRole("link", { name: "Overview" }).click();
  await settled(page);
  await page.getByRole("button", { name: "Show the whole run" }).click();
  expect(query(page).get("t")).toBeNull();
});

test("a click pins the cursor, and the values of that time are said", async ({ page, site }) => {
  await show(page, site + overview);
  const lanes = page.locator("svg.lanes");
  await lanes.scrollIntoViewIfNeeded();
  await lanes.click({ position: { x: 400, y: 120 } });
  expect(query(page).get("at")).toMatch(/^\d+\.\d\d$/);
  await expect(page.locator(".readout")).toContainText("fetch busy");
  await page.mouse.move(5, 5);
  await expect(page.locator(".readout")).toContainText("fetch busy");
  await page.getByRole("link", { name: "Operators", exact: true }).click();
  await settled(page);
  expect(query(page).get("at")).not.toBeNull();
});

test("a number stays with its unit on a small screen", async ({ page, site }) => {
  await page.setViewportSize({ width: 390, height: 900 });
  await show(page, site + overview);
  const parts = page.locator(".verdict .nowrap");
  expect(await parts.allTextContents()).toContain("45.4 %");
  const lines = await parts.evaluateAll((all) => all.map((one) => one.getClientRects().length));
  expect(lines.every((count) => count === 1)).toBe(true);
});

test("the keyboard moves the cursor and zooms", async ({ page, site }) => {
  await show(page, site + overview);
  await page.getByRole("group", { name: /Course of the run/ }).focus();
  await page.keyboard.press("ArrowRight");
  const first = Number(query(page).get("at"));
  await page.keyboard.press("Shift+ArrowRight");
  expect(Number(query(page).get("at"))).toBeGreaterThan(first);
  await page.keyboard.press("+");
  expect(query(page).get("t")).not.toBeNull();
  await page.keyboard.press("0");
  expect(query(page).get("t")).toBeNull();
  await page.keyboard.press("Escape");
  expect(query(page).get("at")).toBeNull();
});

test("back and forward are between pages, not between zooms", async ({ page, site }) => {
  await show(page, site + overview);
  await dragOverLanes(page);
  await page.getByRole("link", { name: "Environment" }).click();
  await settled(page);
  await page.goBack();
  await settled(page);
  expect(new URL(page.url()).pathname).toBe(overview);
  expect(query(page).get("t")).not.toBeNull();
});

test("every control of the overview is reached by Tab and shows it", async ({ page, site }) => {
  await show(page, site + overview);
  const seen = new Set<string>();
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const state = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node === document.body) return null;
      const style = getComputedStyle(node);
      return {
        name: node.getAttribute("aria-label") ?? node.textContent?.trim() ?? "",
        visible: style.outlineStyle !== "none" || node.tagName === "MAIN",
      };
    });
    if (!state) break;
    expect(state.visible, `the focus is seen at "${state.name.slice(0, 40)}"`).toBe(true);
    seen.add(state.name);
  }
  for (const name of [
    "Copy",
    "Overview",
    "Operators",
    "Show the whole run",
    "As a table",
    "How to read this",
    "Open as SQL",
  ]) {
    expect(
      [...seen].some((each) => each.includes(name)),
      `Tab reaches "${name}"`,
    ).toBe(true);
  }
});

test("a card opens its explanation and its table, and keeps them open while the page is shown", async ({
  page,
  site,
}) => {
  await show(page, site + overview);
  const card = page.locator('[data-card="ladder"]');
  await card.getByRole("button", { name: "How to read this" }).click();
  await expect(card.getByText("Blue is work, grey is waiting.")).toBeVisible();
  await card.getByRole("button", { name: "As a table" }).click();
  await expect(card.getByRole("cell", { name: "not calibrated", exact: false })).toBeVisible();
});

test("CSV holds all digits and quotes what a spreadsheet would run", async ({ page, site }) => {
  await show(page, `${site}/sql?q=SELECT%20name`);
  await expect(page.getByText("3 rows in")).toBeVisible();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "CSV" }).click(),
  ]);
  const text = readFileSync(await download.path(), "utf8");
  expect(text.split("\r\n")[0]).toBe("run_id,name,'=busy_ns");
  expect(text).toContain("'=1+1");
  expect(text).toContain("3000000000");
});

test("SVG of a chart is a drawing of its own", async ({ page, site }) => {
  await show(page, site + overview);
  for (const key of ["pipeline", "ladder", "course", "machine"]) {
    const button = page.locator(`[data-card="${key}"]`).getByRole("button", { name: /SVG/ });
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const text = readFileSync(await download.path(), "utf8");
    expect(text.startsWith("<svg ")).toBe(true);
    expect(text).not.toContain("var(--");
    expect(text).not.toContain("NaN");
    expect(text).toMatch(/<text [^>]*>/);
  }
});

test("SQL: a question runs, a refused one says what would be right, the address holds it", async ({
  page,
  site,
}) => {
  await show(page, `${site}/sql`);
  const text = page.getByLabel("Query", { exact: true });
  await text.fill("SELECT 1");
  await text.press("Control+Enter");
  await expect(page.getByText("3 rows in")).toBeVisible();
  expect(query(page).get("q")).toBe("SELECT 1");
  await text.fill("DROP TABLE runs");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByText("Only SELECT is allowed.")).toBeVisible();
  await page.getByRole("button", { name: "Slowest operators" }).click();
  await expect(page.getByText("3 rows in")).toBeVisible();
});

test("a chart leads to its question in SQL", async ({ page, site }) => {
  await show(page, site + overview);
  await page.locator('[data-card="pipeline"]').getByRole("link", { name: "Open as SQL" }).click();
  await settled(page);
  await expect(page.getByLabel("Query", { exact: true })).toHaveValue(
    "SELECT * FROM stage_summary WHERE run_id = 1",
  );
  await expect(page.getByText("3 rows in")).toBeVisible();
});

test("what-if: a slider asks once for its last place, and the best is solved", async ({
  page,
  site,
}) => {
  let asked = 0;
  page.on("request", (request) => (asked += request.url().endsWith("/whatif") ? 1 : 0));
  await show(page, `${site}/run/${IDS.plain}/what-if`);
  await expect(page.locator(".said")).toContainText("would limit it");
  const before = asked;
  const slider = page.getByLabel("fetch threads");
  await slider.focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
  await expect(slider).toHaveAttribute("aria-valuetext", "5 threads");
  await expect(page.locator(".predicted")).toContainText("trainer");
  expect(asked - before).toBeLessThanOrEqual(3);
  expect(query(page).get("set")).toBe("fetch.parallelism:5");
  await page.getByRole("button", { name: "Solve for the best" }).click();
  await expect(slider).toHaveAttribute("aria-valuetext", "2 threads");
  await page.reload();
  await expect(page.getByLabel("fetch threads")).toHaveAttribute("aria-valuetext", "2 threads");
  await page.getByRole("button", { name: "As recorded" }).click();
  await expect(page.getByLabel("fetch threads")).toHaveAttribute("aria-valuetext", "1 thread");
  expect(query(page).get("set")).toBeNull();
});

test("an operator is chosen by the keyboard, stays in the address, and its stacks are found", async ({
  page,
  site,
}) => {
  await show(page, `${site}/run/${IDS.plain}/operators`);
  const button = page.getByRole("button", { name: "decode.decompress", exact: true });
  await button.focus();
  await page.keyboard.press("Enter");
  expect(query(page).get("op")).toBe("decode.decompress");
  await expect(page.getByRole("complementary")).toContainText("decode.decompress");
  await page.getByRole("button", { name: "On a core" }).click();
  expect(query(page).get("kind")).toBe("cpu");
  await page.getByRole("button", { name: "Only its stacks" }).click();
  await expect(page.getByRole("navigation", { name: "Frames that are widened" })).toContainText(
    "decode.decompress",
  );
  await page.getByLabel("Find a function").fill("zstd");
  await expect(page.getByText('"zstd" is in')).toBeVisible();
});

test("frames are walked by arrow keys", async ({ page, site }) => {
  await show(page, `${site}/run/${IDS.plain}/operators?kind=cpu`);
  const first = page.locator("svg.icicle g[tabindex='0']");
  await first.focus();
  await page.keyboard.press("ArrowDown");
  await expect(page.locator("svg.icicle g:focus")).toHaveAttribute("aria-label", /fetch\.io/);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("navigation", { name: "Frames that are widened" })).toContainText(
    "fetch.io",
  );
});

test("a stage that was not sampled says what to do", async ({ page, site }) => {
  await show(page, `${site}/run/${IDS.plain}/operators?kind=waiting`);
  await expect(page.getByText("No stack was sampled waiting for a queue")).toBeVisible();
});

test("runs: a search is the server's, a tag is a search, a comparison is folded", async ({
  page,
  site,
}) => {
  await show(page, site);
  await expect(page.getByRole("link", { name: "comparison 1" })).toBeVisible();
  await expect(page.locator("tr.folded")).toContainText("B is faster");
  await expect(page.getByRole("link", { name: "pair 0" })).toBeHidden();
  // The Overview shows the steady part under the shorter names.
  await expect(page.getByRole("columnheader", { name: "rate, whole run" })).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "waits, whole run" })).toBeVisible();
  await page.getByRole("button", { name: "6 runs" }).click();
  await expect(page.getByRole("link", { name: "pair 0" })).toBeVisible();
  await page.getByRole("button", { name: "Show runs with the tag nightly" }).click();
  await expect(page.getByRole("link", { name: "a day" })).toHaveCount(0);
  expect(query(page).get("q")).toBe("nightly");
  await page.reload();
  await settled(page);
  await expect(page.getByLabel("Search runs")).toHaveValue("nightly");
  await page.getByLabel("Search runs").fill("no such run");
  await expect(page.getByText("No run matches.")).toBeVisible();
});

test("comparison: another figure shows its pairs", async ({ page, site }) => {
  await show(page, `${site}/compare/1`);
  await expect(page.getByText("B is faster")).toBeVisible();
  await page.getByLabel("Figure", { exact: true }).selectOption("wait_ratio");
  expect(query(page).get("with")).toBe("wait_ratio");
  await expect(page.getByText("trainer wait of 12 pairs")).toBeVisible();
});

test("the switch goes from system to light to dark, and is kept", async ({ page, site }) => {
  await show(page, site);
  const root = page.locator("html");
  await page.getByRole("button", { name: /Colours/ }).click();
  await expect(root).toHaveAttribute("data-theme", "light");
  await page.getByRole("button", { name: /Colours/ }).click();
  await expect(root).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await settled(page);
  await expect(root).toHaveAttribute("data-theme", "dark");
});

test("Copy puts the command into the clipboard", async ({ page, site, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await show(page, site + overview);
  await page.locator(".answer-fix").getByRole("button", { name: "Copy" }).click();
  await expect(page.locator(".answer-fix").getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("headrace apply 1");
});

test("a live run extends its lanes, and goes on after the stream broke", async ({ page, site }) => {
  await show(page, `${site}/run/${IDS.live}`);
  await expect(page.locator(".state")).toHaveText("recording");
  const end = () => page.locator("svg.lanes text.middle").last().textContent();
  const before = await end();
  const table = page.locator('[data-card="course"]').getByRole("button", { name: "As a table" });
  await table.click();
  const rows = page.locator('[data-card="course"] table');
  const counted = async () => Number(await rows.getAttribute("aria-rowcount"));
  expect(await counted()).toBeGreaterThan(0);
  await expect
    .poll(
      async () => (await page.evaluate(() => document.querySelectorAll("svg.lanes").length)) === 1,
    )
    .toBe(true);
  await expect.poll(end, { timeout: 20_000 }).not.toBe(before);
  await expect(table).toHaveAttribute("aria-expanded", "true");
  // The server's course is old: a report that is asked for again must not take away what came since.
  await expect.poll(counted, { timeout: 40_000 }).toBeGreaterThan(62);
});

test("the list of runs leads to another run, on the same page, and keeps the keyboard", async ({
  page,
  site,
}) => {
  await show(page, `${site}${overview}/environment`);
  const list = page.getByLabel("Run", { exact: true });
  await expect(list.locator("option")).not.toHaveCount(1);
  await list.focus();
  await list.selectOption({ label: "no probe (3)" });
  await expect(page.getByText("38 probes", { exact: false }).first()).toBeAttached();
  expect(new URL(page.url()).pathname).toBe("/run/3/environment");
  await expect(page.getByLabel("Run", { exact: true })).toBeFocused();
});

test("a skip link leads to the page", async ({ page, site }) => {
  await show(page, site + overview);
  await page.keyboard.press("Tab");
  await expect(page.getByText("Skip to content")).toBeFocused();
});

test("on a narrow screen the page's own link and the runs' figures are in view", async ({
  page,
  site,
}) => {
  await page.setViewportSize({ width: 390, height: 800 });
  const inView = async (selector: string) => {
    const box = await page.locator(selector).first().boundingBox();
    expect(box?.x ?? -1, selector).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 1000), selector).toBeLessThanOrEqual(390);
  };
  for (const part of ["", "/sheet", "/environment"]) {
    await show(page, site + overview + part);
    await inView('.runbar [aria-current="page"]');
  }
  await show(page, site);
  await inView(".waits:visible");
});

test("runs: where there is no trend the page says why, and what to do", async ({ page, site }) => {
  await page.route("**/api/trends", (route) =>
    route.fulfill({
      json: {
        answer: "A trend takes 3 finished runs of one pipeline with the same settings.",
        command: "headrace run rm1/pipeline.toml",
        trends: [],
      },
    }),
  );
  await show(page, site);
  const card = page.locator('[data-card="trends"]');
  await expect(card).toContainText("takes 3 finished runs");
  await expect(card).toContainText("headrace run rm1/pipeline.toml");
});
