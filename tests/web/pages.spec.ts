// Every page in every state: drawn without an error, readable by a reader of screens, within its
// width, and never blank.
import { IDS, expectAccessible, expectNoOverflow, nodes, settled, show, test } from "./site";
import { expect } from "@playwright/test";

const VIEWS: { name: string; path: string }[] = [
  { name: "runs", path: "/" },
  { name: "overview", path: `/run/${IDS.plain}` },
  { name: "operators", path: `/run/${IDS.plain}/operators` },
  { name: "operators against another run", path: `/run/${IDS.plain}/operators?with=${IDS.level1}` },
  { name: "IO layout", path: `/run/${IDS.plain}/io` },
  { name: "characterization", path: `/run/${IDS.plain}/sheet` },
  { name: "what-if", path: `/run/${IDS.plain}/what-if` },
  { name: "environment", path: `/run/${IDS.plain}/environment` },
  { name: "comparisons", path: "/compare" },
  { name: "comparison", path: "/compare/1" },
  { name: "fleet", path: "/fleet" },
  { name: "SQL", path: "/sql?q=SELECT%201" },
];

const STATES = Object.entries(IDS).map(([name, id]) => ({ name, id: Number(id) }));

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1280, 390]) {
    for (const view of VIEWS) {
      test(`${view.name}, ${scheme}, ${width} pixels`, async ({ page, site }) => {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
        await page.setViewportSize({ width, height: 900 });
        await show(page, site + view.path);
        await expectNoOverflow(page);
        await expectAccessible(page);
        expect(await nodes(page)).toBeLessThanOrEqual(3000);
        expect((await page.locator("main").innerText()).length).toBeGreaterThan(40);
      });
    }
  }
}

for (const state of STATES) {
  for (const part of ["", "/operators", "/io", "/what-if", "/sheet", "/environment"]) {
    test(`run "${state.name}"${part} is a page`, async ({ page, site }) => {
      await page.setViewportSize({ width: 390, height: 800 });
      await show(page, `${site}/run/${state.id}${part}`);
      await expectNoOverflow(page);
      await page.setViewportSize({ width: 1280, height: 800 });
      await settled(page);
      await expectNoOverflow(page);
      await expectAccessible(page);
      await expect(page.getByText("could not be drawn")).toHaveCount(0);
      expect(await nodes(page)).toBeLessThanOrEqual(3000);
    });
  }
}

test("an unknown run says so, and where the others are", async ({ page, site }) => {
  for (const part of ["", "/operators", "/io", "/what-if", "/sheet", "/environment"]) {
    await show(page, `${site}/run/999${part}`);
    await expect(page.getByText("There is no such run.")).toBeVisible();
    await expect(page.getByRole("link", { name: "All runs" })).toBeVisible();
    await expectAccessible(page);
  }
});

test("a job leads to the others, and an unknown one says where the newest is", async ({
  page,
  site,
}) => {
  await show(page, `${site}/fleet`);
  await page.getByRole("link", { name: "ctr before" }).click();
  await expect(page).toHaveTitle("Job ctr before · headrace");
  await show(page, `${site}/fleet/9`);
  await expect(page.getByText("There is no such job.")).toBeVisible();
  await expectAccessible(page);
});

test("an unknown address says so", async ({ page, site }) => {
  await show(page, `${site}/run/abc/nothing`);
  await expect(page.getByText("There is no page at this address.")).toBeVisible();
});

test("a comparison without a result shows its runs so far", async ({ page, site }) => {
  await show(page, `${site}/compare/2`);
  await expect(page.getByText("It is interrupted: there is no verdict.")).toBeVisible();
  await expect(page.getByRole("link", { name: "run 30" })).toBeVisible();
  await expectAccessible(page);
});

test("an empty database says which command fills it", async ({ page, emptySite }) => {
  await show(page, emptySite);
  await expect(page.getByText("headrace demo")).toBeVisible();
  await expectAccessible(page);
  await show(page, `${emptySite}/compare`);
  await expect(page.getByText("headrace compare")).toBeVisible();
  await show(page, `${emptySite}/fleet`);
  await expect(page.getByText("holds no job")).toBeVisible();
  await expectAccessible(page);
  await show(page, `${emptySite}/sql`);
  await expect(page.getByLabel("Query", { exact: true })).toBeVisible();
});

test("a server that does not answer is named", async ({ page, site }) => {
  await page.route("**/api/runs/*/report?*", (route) => route.abort());
  await page.goto(`${site}/run/1`);
  await expect(page.getByText("The server does not answer.")).toBeVisible();
});

test("an answer that is no JSON, or another shape, is an error in words", async ({
  page,
  site,
}) => {
  await page.route("**/api/runs/*/report?*", (route) =>
    route.fulfill({ status: 200, body: "<html>" }),
  );
  await page.goto(`${site}/run/1`);
  await expect(page.getByText("The server's answer cannot be read.")).toBeVisible();
  await page.unroute("**/api/runs/*/report?*");
  await page.route("**/api/runs/*/report?*", (route) =>
    route.fulfill({ status: 200, contentType: "application/json", body: "[]" }),
  );
  await page.goto(`${site}/run/1`);
  await expect(page.getByText("This page cannot be shown.").first()).toBeVisible();
});

test("names from outside are text, whatever they hold", async ({ page, site }) => {
  for (const path of [
    "/",
    `/run/${IDS.hostile}`,
    `/run/${IDS.hostile}/operators`,
    `/run/${IDS.hostile}/io`,
    `/run/${IDS.hostile}/sheet`,
    `/run/${IDS.hostile}/environment`,
    `/run/${IDS.hostile}/what-if`,
    "/fleet/3",
  ]) {
    await show(page, site + path);
    await page.waitForTimeout(200);
    expect(
      await page.evaluate(() => (window as unknown as { hacked?: number }).hacked),
    ).toBeUndefined();
    await expect(page.locator("main img, main script, main b > b")).toHaveCount(0);
  }
});

test("a thousand operators are a table of few nodes that scrolls to the last", async ({
  page,
  site,
}) => {
  await show(page, `${site}/run/${IDS.many}/operators`);
  expect(await nodes(page)).toBeLessThanOrEqual(3000);
  const box = page.getByRole("region", { name: "Operators" });
  await box.evaluate((node) => (node.scrollTop = node.scrollHeight));
  await expect(
    page.getByRole("button", { name: "stage_11.step_11_83", exact: true }),
  ).toBeVisible();
  expect(await nodes(page)).toBeLessThanOrEqual(3000);
  await page.getByLabel("Find an operator").fill("stage_7.step_7_50");
  await expect(page.getByRole("button", { name: "stage_7.step_7_50", exact: true })).toBeVisible();
});

test("on paper nothing is cut, no control is printed, and it is white", async ({ page, site }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await show(page, `${site}/run/${IDS.plain}`);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await expect(page.getByRole("button", { name: "Copy" }).first()).toBeHidden();
  await expect(page.locator("svg.lanes")).toBeVisible();
  const ground = await page
    .locator(".card")
    .first()
    .evaluate((node) => getComputedStyle(node).backgroundColor);
  expect(ground).toBe("rgb(255, 255, 255)");
});
