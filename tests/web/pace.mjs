// How fast the pages of a run are: until something is painted, until it is all there, and from each
// input to the next picture. node pace.mjs ADDRESS RUN [ROUNDS] prints the median of the rounds and
// their range; real.spec.ts asks once.
import { chromium } from "@playwright/test";

const INPUTS = ["pointermove", "pointerdown", "click", "keydown", "input", "change", "wheel"];

// In the page: from an input's time stamp until the frame after it was painted.
function watchInputs(names) {
  window.inputs = [];
  for (const name of names) {
    const seen = (event) =>
      requestAnimationFrame(() =>
        setTimeout(() => window.inputs.push(performance.now() - event.timeStamp)),
      );
    window.addEventListener(name, seen, { capture: true, passive: true });
  }
}

const frames = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));

async function ready(page) {
  await page.locator("main > *").first().waitFor();
  await page.locator("main:not([aria-busy])").waitFor();
  await frames(page);
}

// Milliseconds until the first picture with text, and until the page is all there.
async function load(page, address) {
  await page.goto(address);
  await ready(page);
  return page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity,
    ready: performance.now(),
  }));
}

// The longest that any input of `act` took to be seen. An act that no input came of says nothing.
async function longest(page, what, act) {
  await page.evaluate(() => (window.inputs = []));
  await act();
  await frames(page);
  await frames(page);
  const inputs = await page.evaluate(() => window.inputs);
  if (inputs.length === 0) throw new Error(`no input of "${what}" was seen`);
  return Math.max(...inputs);
}

// From the click or key of `act` until the server's answer to it is drawn.
async function answered(page, url, act) {
  const answer = page.waitForResponse((response) => url.test(response.url()));
  await page.evaluate(() => (window.began = performance.now()));
  await act();
  await (await answer).finished();
  await frames(page);
  return page.evaluate(() => performance.now() - window.began);
}

async function ofOverview(page, add, rows) {
  const lanes = page.locator("svg.lanes");
  await lanes.scrollIntoViewIfNeeded();
  const box = await lanes.boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
  await add("point at the lanes", async () => {
    for (let i = 0; i < 40; i++) await page.mouse.move(...at(0.15 + i * 0.015));
  });
  await add("pin a time", () => page.mouse.click(...at(0.4)));
  await add("drag a range", async () => {
    await page.mouse.move(...at(0.3));
    await page.mouse.down();
    for (let i = 0; i < 10; i++) await page.mouse.move(...at(0.3 + i * 0.02));
    await page.mouse.up();
  });
  const ms = await answered(page, /course\?.*from=/, () =>
    page.getByRole("button", { name: "Nearer" }).click(),
  );
  rows.push({ what: "finer windows of a range", kind: "answer", ms });
  await add("keys of the lanes", async () => {
    await page.getByRole("group", { name: /Course of the run/ }).focus();
    for (const key of ["ArrowRight", "Shift+ArrowRight", "+", "+", "-", "0", "Escape"])
      await page.keyboard.press(key);
  });
  for (const name of ["How to read this", "As a table"]) {
    const button = page.locator('[data-card="course"]').getByRole("button", { name });
    await add(`${name} of the lanes`, () => button.click());
  }
  await add("drawing as a file", () => page.getByRole("button", { name: /^SVG.*happen/ }).click());
  await add("colours", () => page.getByRole("button", { name: /Colours/ }).click());
}

// Rows say what a run has nothing of, so that nobody takes it for quick.
async function ifThere(locator, what, rows, act) {
  if (await locator.count()) await act();
  else rows.push({ what, kind: "absent", ms: NaN });
}

async function ofOperators(page, add, rows) {
  const table = page.getByRole("region", { name: "Operators" });
  await table.scrollIntoViewIfNeeded();
  await table.hover();
  await add("scroll the operators", async () => {
    for (let i = 0; i < 20; i++) await page.mouse.wheel(0, 400);
  });
  await add("sort the operators", () =>
    page.getByRole("button", { name: "busy", exact: true }).click(),
  );
  const typed = (field, what, text) =>
    ifThere(field, what, rows, () => add(what, () => field.pressSequentially(text)));
  const clicked = (button, what) =>
    ifThere(button, what, rows, () => add(what, () => button.click()));
  await typed(page.getByLabel("Find an operator"), "find an operator", "hash.1");
  await add("choose an operator", () => page.locator("tr.op button").first().click());
  for (const name of ["On a core", "Blocked inside"])
    await clicked(page.getByRole("button", { name, exact: true }), `stacks: ${name}`);
  await clicked(page.locator("svg.icicle g").nth(2), "widen a frame");
  await typed(page.getByLabel("Find a function"), "find a function", "reader");
}

async function ofWhatIf(page, add, rows) {
  const slider = page.locator(".slider input").first();
  await ifThere(slider, "move a slider", rows, async () => {
    await slider.focus();
    await add("move a slider", async () => {
      for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
    });
    const ms = await answered(page, /\/whatif$/, () => page.keyboard.press("ArrowLeft"));
    rows.push({ what: "a slider until it is answered", kind: "answer", ms });
  });
}

async function ofSql(page, add, rows) {
  const count = await page.locator(".saved button").count();
  for (let i = 0; i < count; i++) {
    const button = page.locator(".saved button").nth(i);
    const what = await button.textContent();
    const ms = await answered(page, /\/api\/sql$/, () => button.click());
    rows.push({ what: `SQL: ${what}`, kind: "answer", ms });
  }
}

const OF_PAGE = { "": ofOverview, "/operators": ofOperators, "/what-if": ofWhatIf };

// Rows {what, kind, ms}; kind "paint", "ready", "answer" (until the server has answered), "input", or
// "absent": the run has nothing to try it on. Throws where an input was not seen by the page.
// `page` is a new one: nothing of it was loaded yet.
export async function measurePace(page, address, run) {
  await page.addInitScript(watchInputs, INPUTS);
  const rows = [];
  for (const part of ["", "/operators", "/io", "/what-if", "/sheet", "/environment"]) {
    const { paint, ready: all } = await load(page, `${address}/run/${run}${part}`);
    const name = part.slice(1) || "overview";
    rows.push({ what: name, kind: "paint", ms: paint }, { what: name, kind: "ready", ms: all });
    const add = async (what, act) =>
      rows.push({ what, kind: "input", ms: await longest(page, what, act) });
    await OF_PAGE[part]?.(page, add, rows);
  }
  await load(page, `${address}/sql`);
  await ofSql(page, null, rows);
  await load(page, address);
  const search = page.getByLabel("Search runs");
  const ms = await longest(page, "search runs", () => search.pressSequentially("day"));
  rows.push({ what: "search runs", kind: "input", ms });
  return rows;
}

const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

if (process.argv[1]?.endsWith("pace.mjs")) {
  const [address, run, rounds = "1"] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath: process.env.HEADRACE_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const found = new Map();
  for (let round = 0; round < Number(rounds); round++) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    for (const { what, kind, ms } of await measurePace(page, address, run)) {
      const line = `${kind.padEnd(7)} ${what}`;
      found.set(line, [...(found.get(line) ?? []), ms]);
    }
    await page.close();
  }
  for (const [line, all] of found)
    console.log(
      `${middle(all).toFixed(0).padStart(6)} ms [${all[0].toFixed(0)}, ${all[all.length - 1].toFixed(0)}]  ${line}`,
    );
  await browser.close();
}
