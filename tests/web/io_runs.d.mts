export function makeIoLayout(options?: Record<string, unknown>): Record<string, unknown>;
