// The pages of the program itself: `headrace serve` over databases that this program recorded
// (stores.py). What the sentences say is compared with what the commands print.
import { expect } from "@playwright/test";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

// Starts the server over a database; ends it after `use`.
async function serving(
  database: string,
  use: (address: string) => Promise<void>,
  ...more: string[]
) {
  const child = spawn(headrace, ["serve", "--db", database, "--port", "0", ...more], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const address = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (text: Buffer) => resolve(text.toString().trim().split("\n")[0]));
      child.once("exit", (code) => reject(new Error(`headrace serve ended with ${code}`)));
    });
    await use(more.length > 0 ? address : address.replace(/\/run\/.*$/, "").replace(/\/$/, ""));
  } finally {
    child.kill("SIGTERM");
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
    test(`${name}: every page is drawn, is accessible and fits 1280 and 390 pixels`, async ({
      page,
    }) => {
      test.setTimeout(240_000);
      await serving(join(stores, name), async (address) => {
        for (const path of ["/", "/compare", "/sql", ...ids.flatMap(runPages)]) {
          for (const [width, scheme] of [
            [1280, "light"],
            [390, "dark"],
          ] as const) {
            await page.setViewportSize({ width, height: 900 });
            await page.emulateMedia({ colorScheme: scheme });
            await show(page, address + path);
            await expect(page.getByText("could not be drawn")).toHaveCount(0);
            await expect(page.getByText("This page cannot be shown.")).toHaveCount(0);
            await expectNoOverflow(page);
            await expectAccessible(page);
            expect(await nodes(page)).toBeLessThanOrEqual(3000);
          }
        }
      });
    });
  }

  test("an empty database is a page with the command that fills it", async ({ page }) => {
    await serving(join(stores, "empty.db"), async (address) => {
      await show(page, address);
      await expect(page.getByText(/headrace demo/)).toBeVisible();
      await expectAccessible(page);
      await show(page, `${address}/run/1`);
      await expect(page.getByText("there is no run 1")).toBeVisible();
    });
  });

  test("the first page says what the command says", async ({ page }) => {
    await serving(join(stores, "recorded.db"), async (address) => {
      const said = JSON.parse(
        execFileSync(headrace, ["report", "1", "--db", join(stores, "recorded.db"), "--json"], {
          encoding: "utf8",
        }),
      );
      await show(page, `${address}/run/1`);
      await expect(page.locator("h1")).toHaveText(said.page.verdict);
      await expect(page.locator(".badge").first()).toHaveText(said.page.badge);
      for (const line of said.page.lines.filter((each: { command: boolean }) => !each.command)) {
        await expect(
          page.locator(".answers").getByText(line.text, { exact: true }).first(),
        ).toBeVisible();
      }
    });
  });

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

  test("a day of recording is painted within a second of its data", async ({ page }) => {
    await serving(join(stores, "long.db"), async (address) => {
      await show(page, `${address}/run/1`);
      const paint = await page.evaluate(
        () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity,
      );
      test.info().annotations.push({
        type: "first contentful paint",
        description: `${paint.toFixed(0)} ms`,
      });
      expect(paint).toBeLessThan(10_000);
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
    test.setTimeout(120_000);
    const folder = mkdtempSync(join(tmpdir(), "headrace-web-"));
    const database = join(folder, "live.db");
    const child = spawn(
      headrace,
      [
        "run",
        join(stores, "table/pipeline.toml"),
        "--db",
        database,
        "--duration",
        "25s",
        "--quiet",
      ],
      { stdio: "ignore", cwd: stores },
    );
    try {
      await expect.poll(() => existsSync(database), { timeout: 20_000 }).toBe(true);
      await serving(database, async (address) => {
        await expect
          .poll(
            async () =>
              ((await (await page.request.get(`${address}/api/runs`)).json()).runs ?? []).length,
            { timeout: 20_000 },
          )
          .toBeGreaterThan(0);
        await show(page, `${address}/run/1`);
        await expect(page.locator(".state")).toHaveText("recording");
        await expect(page.locator("svg.lanes")).toBeVisible({ timeout: 30_000 });
        const last = async () =>
          Number(
            (await page.locator("svg.lanes text.middle.dim").last().textContent())?.replace(
              /[^\d.]/g,
              "",
            ),
          );
        const before = await last();
        await expect.poll(last, { timeout: 30_000 }).toBeGreaterThan(before);
        await expect(page.locator(".state")).toBeHidden({ timeout: 60_000 });
      });
    } finally {
      child.kill("SIGINT");
    }
  });

  test("others need the token, which does not stay in the address", async ({ page, browser }) => {
    test.skip(!outerAddress, "this machine has no address but its own");
    await serving(
      join(stores, "recorded.db"),
      async (address) => {
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
      },
      "--host",
      String(outerAddress),
    );
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
    expect(asked.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
  });
});
