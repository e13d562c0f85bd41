// Light or dark: the system's choice until somebody makes another, which is kept in this browser.
import { h } from "./element";

type Theme = "system" | "light" | "dark";

const KEY = "headrace-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const WORDS: Record<Theme, string> = { system: "System", light: "Light", dark: "Dark" };

// A browser may refuse to keep anything; then the choice lasts as long as the page.
function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

let theme: Theme = stored();
const dark = matchMedia("(prefers-color-scheme: dark)");

// The style sheet has each palette once, so the system's wish is written into the page like a choice.
function apply(): void {
  const wanted = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.setAttribute("data-theme", wanted);
}

dark.addEventListener("change", apply);
apply();

export function themeSwitch(): HTMLElement {
  apply();
  const word = h("span", { class: "word" }, WORDS[theme]);
  const name = () => `Colours: ${WORDS[theme]}. Switch to ${WORDS[NEXT[theme]]}`;
  const button = h("button", { class: "btn theme", type: "button", "aria-label": name() });
  button.append(h("span", { "aria-hidden": "true" }, "◐"), word);
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Not kept; it still holds for this page.
    }
    apply();
    word.textContent = WORDS[theme];
    button.setAttribute("aria-label", name());
  });
  return button;
}
