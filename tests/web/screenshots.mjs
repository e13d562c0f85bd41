// Pictures of pages, to look at them: node screenshots.mjs ADDRESS FOLDER PATH...
//
// Each path of the pages ("/run/7/operators") is taken at 1280 and 390 pixels, light and dark;
// with --deuteranopia also as somebody sees it who cannot tell red from green. --most=N: the upper N
// pixels alone, as the pictures of docs/images (--most=1700).
import { chromium } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const words = process.argv.slice(2);
const simulate = words.includes("--deuteranopia");
const quick = words.includes("--quick"); // one size and scheme
const most = Number(words.find((word) => word.startsWith("--most="))?.slice(7) ?? Infinity);
const [address, folder, ...paths] = words.filter((word) => !word.startsWith("--"));
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.HEADRACE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
for (const path of paths) {
  const name = path.replace(/\W+/g, "-").replace(/^-|-$/g, "") || "runs";
  for (const [width, scheme] of quick
    ? [[1280, "light"]]
    : [
        [1280, "light"],
        [1280, "dark"],
        [390, "light"],
        [390, "dark"],
      ]) {
    const page = await browser.newPage({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      timezoneId: "UTC",
    });
    page.on("pageerror", (error) => console.log(`${path}: ${error.message}`));
    page.on(
      "console",
      (message) => message.type() === "error" && console.log(`${path}: ${message.text()}`),
    );
    await page.goto(address + path);
    await page.waitForSelector("main:not([aria-busy]) > *");
    await page.waitForTimeout(500);
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.screenshot({
      path: join(folder, `${name}-${width}-${scheme}.png`),
      fullPage: true,
      clip: { x: 0, y: 0, width, height: Math.min(most, height) },
    });
    if (simulate) {
      const session = await page.context().newCDPSession(page);
      await session.send("Emulation.setEmulatedVisionDeficiency", { type: "deuteranopia" });
      await page.screenshot({
        path: join(folder, `${name}-${width}-${scheme}-deuteranopia.png`),
        fullPage: true,
      });
    }
    await page.close();
  }
}
await browser.close();
