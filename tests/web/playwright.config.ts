import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  testMatch: "*.spec.ts",
  // A machine that is measuring something else is slow, and that is no failure of a page.
  timeout: 60_000,
  expect: { timeout: 15_000 },
  workers: 1,
  retries: 1,
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    launchOptions: {
      executablePath: process.env.HEADRACE_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox"],
    },
    viewport: { width: 1280, height: 900 },
    timezoneId: "UTC",
  },
});
