import type { Server } from "node:http";

export const IDS: Record<
  | "plain"
  | "outside"
  | "blind"
  | "hostile"
  | "many"
  | "gappy"
  | "branched"
  | "level1"
  | "live"
  | "bare"
  | "long",
  number
>;
export function serve(
  bundle: string,
  options?: { port?: number; empty?: boolean; more?: Map<number, unknown> },
): Promise<{ server: Server; address: string }>;
