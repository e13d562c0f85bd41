// A server that others can reach asks for a token, which stands behind the "#" of the address that it
// printed: browsers never send that part. It is exchanged once for a cookie that scripts cannot read,
// and taken out of the address, so that it is in no history and no screenshot.
import { offline, post } from "./api";

const TOKEN = /^#token=([0-9a-f]{8,128})$/;

export async function openSession(): Promise<void> {
  const match = offline ? null : TOKEN.exec(location.hash);
  if (!match) return;
  history.replaceState(null, "", location.pathname + location.search);
  await post("/api/session", { token: match[1] });
}
