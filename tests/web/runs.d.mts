export function makeRun(
  id: number,
  name: string,
  options?: Record<string, unknown>,
): Record<string, unknown>;
