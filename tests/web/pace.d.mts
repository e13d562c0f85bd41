import type { Page } from "@playwright/test";

export function measurePace(
  page: Page,
  address: string,
  run: number,
): Promise<{ what: string; kind: "paint" | "ready" | "answer" | "input" | "absent"; ms: number }[]>;
