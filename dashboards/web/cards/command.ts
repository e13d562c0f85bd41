// A command to be pasted, on one line, with a button that copies it.
import { h } from "../element";

async function copied(text: string, code: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed here (no https, or an old browser): selected, it takes one key.
    getSelection()?.selectAllChildren(code);
    return false;
  }
}

export function command(text: string, kind = "cmd"): HTMLElement {
  const code = h("code", { tabindex: 0, role: "group", "aria-label": "Command" }, text);
  const button = h("button", { class: "btn", type: "button" }, "Copy");
  const said = h("span", { class: "vh", role: "status" });
  let timer = 0;
  button.addEventListener("click", () => {
    void copied(text, code).then((done) => {
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      said.textContent = button.textContent;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => (button.textContent = "Copy"), 2500);
    });
  });
  return h("div", { class: kind }, code, button, said);
}
