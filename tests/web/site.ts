// What the tests share: a server of made-up runs, and a page that is watched.
import AxeBuilder from "@axe-core/playwright";
import { expect, test as base } from "@playwright/test";
import type { Page } from "@playwright/test";
import { networkInterfaces } from "node:os";
import { serve } from "./mock.mjs";

export { IDS } from "./mock.mjs";

// An address of this machine that is not its own alone; undefined where it has no network.
export const outerAddress = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === "IPv4" && !each.internal)?.address;

// Hosts that a page may ask: this machine.
const own = ["http://127.0.0.1:", `http://${outerAddress}:`, "data:", "blob:", "file:"];

// What a browser says of itself: a refused request, which some tests are about and pages say in words,
// and that one of the headers needs https, which a server in a cluster has not.
const expected = /Failed to load resource|Cross-Origin-Opener-Policy header has been ignored/;

const bundle = process.env.HEADRACE_WEB_BUNDLE ?? "bundle";

interface Watched {
  // Errors of scripts and of the console, and requests that left for another host.
  troubles: string[];
}

interface WorkerFixtures {
  site: string; // address of the server of made-up runs
  emptySite: string;
}

async function withServer(empty: boolean, use: (address: string) => Promise<void>) {
  const { server, address } = await serve(bundle, { empty });
  await use(address);
  server.closeAllConnections();
  server.close();
}

export const test = base.extend<{ watched: Watched }, WorkerFixtures>({
  site: [async ({}, use) => withServer(false, use), { scope: "worker" }],
  emptySite: [async ({}, use) => withServer(true, use), { scope: "worker" }],
  watched: [
    async ({ page }, use) => {
      const troubles: string[] = [];
      page.on("pageerror", (error) => troubles.push(`script: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error" && !expected.test(message.text()))
          troubles.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        if (!own.some((each) => request.url().startsWith(each)))
          troubles.push(`request: ${request.url()}`);
      });
      await use({ troubles });
      expect(troubles, "a page made no error and asked no other host").toEqual([]);
    },
    { auto: true },
  ],
});

// Shows a page and waits until it is drawn.
export async function show(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await expect(page.locator("main > *").first()).toBeVisible();
  await expect(page.locator("main[aria-busy]")).toHaveCount(0);
  // Charts draw when their boxes have a width: one frame later.
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const said = violations.map(
    (each) =>
      `${each.id}: ${each.help}: ${each.nodes
        .slice(0, 3)
        .map((node) => node.target.join(" "))
        .join("; ")}`,
  );
  expect(said).toEqual([]);
}

export async function expectNoOverflow(page: Page): Promise<void> {
  const over = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    // Names what sticks out, without what is inside a box that scrolls.
    return [...document.querySelectorAll("body *")]
      .filter(
        (node) =>
          node.getBoundingClientRect().right > width + 1 &&
          !node.closest(".scroll, nav, code, .tall"),
      )
      .slice(0, 5)
      .map(
        (node) =>
          `${node.tagName}.${node.getAttribute("class")}: ${node.textContent?.slice(0, 40)}`,
      );
  });
  expect(over).toEqual([]);
  expect(
    await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ),
  ).toBeLessThanOrEqual(0);
}

export const nodes = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

export const query = (page: Page) => new URL(page.url()).searchParams;
