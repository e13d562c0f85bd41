// Asks the server, or looks into the file that the page came in: a report of one file holds the
// answers in an element "data", by their paths, and then nothing is ever fetched.

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: no answer
    readonly what: string,
    readonly where = "",
    readonly fix = "",
  ) {
    super(what);
  }
}

function readIsland(): Record<string, unknown> | null {
  const element = document.getElementById("data");
  if (!element) return null;
  try {
    const data: unknown = JSON.parse(element.textContent ?? "");
    return typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
  } catch {
    return {}; // damaged: every page says that it is not in this file
  }
}

const island = readIsland();

// Whether this page is a report of one file.
export const offline = island !== null;

// The paths that the file holds; none where there is a server.
export const offlinePaths: readonly string[] = island ? Object.keys(island) : [];

function fromIsland(path: string): unknown {
  const data = island as Record<string, unknown>;
  for (const key of [path, path.split("?")[0]]) {
    if (Object.prototype.hasOwnProperty.call(data, key)) return data[key];
  }
  throw new ApiError(
    404,
    "This file does not hold that page.",
    path,
    "Open the database with 'headrace serve'.",
  );
}

async function answer(response: Response): Promise<unknown> {
  if (response.status === 204) return null;
  let body: unknown = null;
  try {
    body = await response.json();
  } catch {
    throw new ApiError(response.status, "The server's answer cannot be read.", response.url);
  }
  if (response.ok) return body;
  const error = (body as { error?: Record<string, unknown> } | null)?.error ?? {};
  const text = (key: string) => (typeof error[key] === "string" ? (error[key] as string) : "");
  throw new ApiError(
    response.status,
    text("what") || "The server refused.",
    text("where"),
    text("fix"),
  );
}

async function ask(path: string, init: RequestInit): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "The server does not answer.", path, "Start it again: headrace serve");
  }
  return answer(response);
}

// Throws ApiError, or the abort of `signal`.
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (island) return fromIsland(path) as T;
  return (await ask(path, { signal })) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  if (island) return fromIsland(path) as T;
  return (await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  })) as T;
}

// As get(), but nothing instead of an error: for parts of a page that it can do without.
export async function getOr<T>(path: string, fallback: T, signal?: AbortSignal): Promise<T> {
  try {
    return await get<T>(path, signal);
  } catch (error) {
    if (error instanceof ApiError) return fallback;
    throw error;
  }
}
