// Light or dark: as the system says, until the button says otherwise.

const root = document.documentElement;
root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

export function switchTheme() {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
}
