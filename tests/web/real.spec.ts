// The pages of the program itself: `headrace serve` over databases that this program recorded
// (stores.py). What the sentences say is compared with what the commands print.
import { expect } from "@playwright/test";
import type { Page } from "@playwright/test";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { measurePace } from "./pace.mjs";
import {
  expectAccessible,
  expectNoOverflow,
  nodes,
  outerAddress,
  settled,
  show,
  test,
} from "./site";

const headrace = process.env.HEADRACE ?? "";
const stores = process.env.HEADRACE_WEB_STORES ?? "";
const missing = !headrace || !stores || !existsSync(join(stores, "recorded.db"));

const skipped = "HEADRACE and HEADRACE_WEB_STORES are not set: scripts/test_web.sh sets them";

interface Server {
  address: string; // as it was printed
  root: string; // without the page and the token
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

async function begin(database: string, ...more: string[]): Promise<Server> {
  const child = spawn(headrace, ["serve", "--db", database, ...more], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (text: Buffer) => resolve(text.toString().trim().split("\n")[0]));
    child.once("exit", (code) => reject(new Error(`headrace serve ended with ${code}`)));
  });
  return {
    address,
    root: new URL(address).origin,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

// Starts the server over a database; ends it after `use`.
async function serving(database: string, use: (address: string) => Promise<void>) {
  const server = await begin(database, "--port", "0");
  try {
    await use(server.root);
  } finally {
    await server.end("SIGTERM");
  }
}

// Records a run of `seconds` while `use` looks at it.
async function recording(seconds: number, use: (database: string) => Promise<void>) {
  const database = join(mkdtempSync(join(tmpdir(), "headrace-web-")), "live.db");
  const pipeline = join(stores, "table/pipeline.toml");
  const child = spawn(
    headrace,
    ["run", pipeline, "--db", database, "--duration", `${seconds}s`, "--quiet"],
    { stdio: "ignore", cwd: stores },
  );
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  try {
    await expect.poll(() => existsSync(database), { timeout: 20_000 }).toBe(true);
    await use(database);
  } finally {
    child.kill("SIGINT");
    await ended;
  }
}

// A run is listed as soon as its recorder has begun.
async function listed(page: Page, address: string) {
  const runs = async () =>
    ((await (await page.request.get(`${address}/api/runs`)).json()).runs ?? []).length;
  await expect.poll(runs, { timeout: 20_000 }).toBeGreaterThan(0);
}

const FORMS = [
  [1280, "light"],
  [1280, "dark"],
  [390, "light"],
  [390, "dark"],
] as const;

// What every page must be, in each size and scheme.
async function expectSound(page: Page, address: string) {
  for (const [width, scheme] of FORMS) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await show(page, address);
    await expect(page.getByText("could not be drawn")).toHaveCount(0);
    await expect(page.getByText("This page cannot be shown.")).toHaveCount(0);
    await expectNoOverflow(page);
    await expectAccessible(page);
    expect(await nodes(page)).toBeLessThanOrEqual(3000);
  }
}

const runPages = (id: number) =>
  ["", "/operators", "/io", "/what-if", "/sheet", "/environment"].map(
    (part) => `/run/${id}${part}`,
  );

test.describe("the program's own server", () => {
  test.skip(missing, skipped);

  for (const [name, ids] of [
    ["recorded.db", [1, 2]],
    ["blind.db", [1]],
    ["long.db", [1]],
  ] as const) {
    test(`${name}: every page is drawn, is accessible and fits`, async ({ page }) => {
      test.setTimeout(600_000);
      await serving(join(stores, name), async (address) => {
        for (const path of ["/", "/compare", "/sql", ...ids.flatMap(runPages)])
          await expectSound(page, address + path);
      });
    });
  }

  test("fleet.db: the page of a job says what the command says", async ({ page }) => {
    test.setTimeout(120_000);
    const database = join(stores, "fleet.db");
    await serving(database, async (address) => {
      await expectSound(page, `${address}/fleet`);
      const answer = await (await page.request.get(`${address}/api/fleet`)).json();
      const said = execFileSync(headrace, ["report", "--fleet", database], { encoding: "utf8" });
      const words = (text: string) => text.replace(/\s+/g, " ");
      for (const text of [answer.first.badge, answer.first.verdict]) {
        expect(words(said)).toContain(words(text));
        await expect(page.locator("main").getByText(text, { exact: true })).toBeVisible();
      }
      for (const id of [1, 2]) await expectSound(page, `${address}/run/${id}`);
    });
  });

  test("an empty database is a page with the command that fills it", async ({ page }) => {
    await serving(join(stores, "empty.db"), async (address) => {
      await show(page, address);
      await expect(page.getByText(/headrace demo/)).toBeVisible();
      await expectAccessible(page);
      await show(page, `${address}/run/1`);
      await expect(page.getByText("there is no run 1")).toBeVisible();
    });
  });

  // Byte for byte: what a reader of the page sees, `report` and `top`. tests/dashboards/same_words_test.cc
  // compares what they are made of for every kind of verdict.
  for (const name of ["recorded.db", "blind.db"]) {
    test(`${name}: the first page says what the commands say`, async ({ page }) => {
      test.setTimeout(300_000);
      const database = join(stores, name);
      // By its name, which commands on the page repeat.
      const env = { ...process.env, PATH: `${dirname(headrace)}:${process.env.PATH}` };
      const asked = (...words: string[]) =>
        JSON.parse(
          execFileSync("headrace", [...words, "--db", database, "--json"], {
            encoding: "utf8",
            env,
          }),
        );
      await serving(database, async (address) => {
        const { runs } = await (await page.request.get(`${address}/api/runs`)).json();
        for (const { id } of runs) {
          const said = asked("report", String(id)).page;
          const top = asked("top", String(id), "--once").verdict;
          await show(page, `${address}/run/${id}`);
          const seen = await page.evaluate(() => ({
            badge: document.querySelector(".badge")?.textContent,
            verdict: document.querySelector("h1")?.textContent,
            lines: [...document.querySelectorAll(".answers p, .answers code")].map(
              (each) => each.textContent,
            ),
          }));
          const lines = said.lines.map((each: { text: string }) => each.text);
          expect(seen, `run ${id}`).toEqual({ badge: said.badge, verdict: said.verdict, lines });
          expect(top.badge).toBe(said.badge);
          expect(top.verdict).toBe(said.verdict);
          expect(top.lines.map((each: { text: string }) => each.text)).toEqual(lines);
        }
      });
    });
  }

  test("a zoom asks the server for more windows and stays after a reload", async ({ page }) => {
    await serving(join(stores, "long.db"), async (address) => {
      await show(page, `${address}/run/1`);
      await page.getByRole("group", { name: /Course of the run/ }).focus();
      const finer = page.waitForResponse((response) => /course\?.*from=/.test(response.url()));
      for (let i = 0; i < 4; i++) await page.keyboard.press("+");
      const course = await (await finer).json();
      expect(course.t.length).toBeGreaterThan(10);
      const range = new URL(page.url()).searchParams.get("t");
      await page.reload();
      await settled(page);
      expect(new URL(page.url()).searchParams.get("t")).toBe(range);
    });
  });

  // The figures are printed and stand in docs/measurements.md; here only what no machine may exceed.
  test("a day of a thousand operators is painted at once and answers at once", async ({ page }) => {
    test.setTimeout(600_000);
    await serving(join(stores, "long.db"), async (address) => {
      for (const { what, kind, ms } of await measurePace(page, address, 1)) {
        console.log(`${kind} ${ms.toFixed(0)} ms: ${what}`);
        expect(kind, `${what}: a day has something to try it on`).not.toBe("absent");
        expect(ms, what).toBeLessThan(kind === "input" ? 2_000 : 60_000);
      }
    });
  });

  test("SQL: a saved question answers; a statement that writes is refused with what would be right", async ({
    page,
  }) => {
    await serving(join(stores, "recorded.db"), async (address) => {
      await show(page, `${address}/sql`);
      await page.locator(".saved button").first().click();
      await expect(page.getByText(/rows? in/)).toBeVisible();
      await page.getByLabel("Query", { exact: true }).fill("DELETE FROM runs");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await expect(page.getByText("This query was refused.")).toBeVisible();
    });
  });

  test("what-if moves", async ({ page }) => {
    await serving(join(stores, "recorded.db"), async (address) => {
      await show(page, `${address}/run/1/what-if`);
      await expect(page.locator(".predicted")).toBeVisible();
      const slider = page.locator(".slider input").first();
      await slider.focus();
      await page.keyboard.press("ArrowRight");
      await expect(page.locator(".said")).toContainText("predicted");
      await expect(page.locator(".answerbox code")).toContainText("compare");
    });
  });

  test("a run is watched while it is recorded", async ({ page }) => {
    test.setTimeout(180_000);
    await recording(40, (database) =>
      serving(database, async (address) => {
        await listed(page, address);
        await show(page, `${address}/run/1`);
        await expect(page.locator(".state")).toHaveText("recording");
        await expect(page.locator("svg.lanes")).toBeVisible({ timeout: 30_000 });
        // The newest time on the axis, such as "400 ms" or "1.2 s"; seconds.
        const last = async () => {
          const text = await page.locator("svg.lanes text.middle.dim").last().textContent();
          return parseFloat(text ?? "") * (/\d\s*ms/.test(text ?? "") ? 0.001 : 1);
        };
        const before = await last();
        await expect.poll(last, { timeout: 30_000 }).toBeGreaterThan(before);
        for (const path of ["", "/operators", "/environment"])
          await expectSound(page, `${address}/run/1${path}`);
        await show(page, `${address}/run/1`);
        await expect(page.locator(".state")).toBeHidden({ timeout: 90_000 });
      }),
    );
  });

  test("a server that dies and comes again leaves no gap in a run that is watched", async ({
    page,
  }) => {
    test.setTimeout(180_000);
    await recording(40, async (database) => {
      const first = await begin(database, "--port", "0");
      await listed(page, first.root);
      await show(page, `${first.root}/run/1`);
      await expect(page.locator("svg.lanes")).toBeVisible({ timeout: 30_000 });
      await first.end("SIGKILL");
      await expect(page.locator(".state")).toHaveText("connection lost, trying again");
      await page.waitForTimeout(4000);
      const second = await begin(database, "--port", new URL(first.root).port);
      try {
        await expect(page.locator(".state")).toHaveText("recording");
        // Its state comes first, what it missed right after.
        let times: number[][] = [];
        const windows = async () => {
          const [download] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: /^CSV.*happen/ }).click(),
          ]);
          const rows = readFileSync(await download.path(), "utf8")
            .trim()
            .split("\r\n")
            .slice(1);
          times = rows.map((row) => row.split(",").slice(0, 2).map(Number));
          return times.length;
        };
        await expect.poll(windows, { timeout: 20_000 }).toBeGreaterThan(10);
        // It was away for four seconds; a window that was recorded then has a tenth to some tenths.
        for (let i = 1; i < times.length; i++)
          expect(times[i][0] - times[i - 1][0] - times[i - 1][1]).toBeLessThan(1);
      } finally {
        await second.end("SIGTERM");
      }
    });
  });

  test("others need the token, which does not stay in the address", async ({ page, browser }) => {
    test.skip(!outerAddress, "this machine has no address but its own");
    const { address, end } = await begin(
      join(stores, "recorded.db"),
      "--port",
      "0",
      "--host",
      String(outerAddress),
    );
    try {
      expect(address).toContain("#token=");
      const stranger = await browser.newPage();
      await stranger.goto(address.replace(/#.*/, ""));
      await expect(stranger.getByText("this server wants a token")).toBeVisible();
      await stranger.close();
      await show(page, address);
      expect(page.url()).not.toContain("token");
      await expect(page.getByRole("link", { name: "demo" })).toBeVisible();
      await page.reload();
      await settled(page);
      await expect(page.getByRole("link", { name: "demo" })).toBeVisible();
    } finally {
      await end("SIGTERM");
    }
  });

  test("comparisons: the list and one of them", async ({ page }) => {
    await serving(join(stores, "recorded.db"), async (address) => {
      await show(page, `${address}/compare`);
      await page.locator("tbody a").first().click();
      await settled(page);
      for (const [width, scheme] of [
        [1280, "light"],
        [390, "dark"],
      ] as const) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme: scheme });
        await settled(page);
        await expect(page.locator("svg.forest")).toBeVisible();
        await expectNoOverflow(page);
        await expectAccessible(page);
      }
    });
  });

  test("the report of one file opens from the disk and asks for nothing", async ({ page }) => {
    const folder = mkdtempSync(join(tmpdir(), "headrace-web-"));
    const file = join(folder, "report.html");
    execFileSync(headrace, [
      "report",
      "1",
      "--db",
      join(stores, "recorded.db"),
      "--format",
      "html",
      "-o",
      file,
    ]);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await show(page, `file://${file}`);
    await expect(page.locator("svg.lanes")).toBeVisible();
    await expectNoOverflow(page);
    await expectAccessible(page);
    await page.getByRole("link", { name: "Operators", exact: true }).click();
    await settled(page);
    await expect(page.locator("svg.icicle, .failure").first()).toBeVisible();
    await page.getByRole("link", { name: "IO layout" }).click();
    await settled(page);
    await expect(page.locator("svg.file-map")).toBeVisible();
    await page.getByRole("link", { name: "Characterization" }).click();
    await settled(page);
    await expect(page.getByText("What does one worker deliver?").first()).toBeVisible();
    await page.getByRole("link", { name: "What-if" }).click();
    await settled(page);
    await expect(page.getByText("headrace serve")).toBeVisible();
    await page.getByRole("link", { name: "Environment" }).click();
    await settled(page);
    await expect(page.getByRole("heading", { name: /^Environment/ })).toBeAttached();
    expect(asked.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
  });
});
