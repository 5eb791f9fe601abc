// What each quantity means, shown on hover and on focus. The words, and more, are on the page help.html: every element
// with data-word="x" shows the first paragraph of that page's section x, with a link to it. The key ? opens the link.

const GONE_AFTER = 250; // milliseconds in which the pointer can reach the tip

const tip = document.getElementById("tip");
let sections = null, timer = 0;

async function load() {
  const text = await (await fetch("help.html")).text();
  sections = new DOMParser().parseFromString(text, "text/html");
}

const ownerOf = (event) => event.target.closest?.("[data-word]");
const address = (owner) => `help.html#${owner.dataset.word}`;

function show(owner) {
  const words = sections?.querySelector(`#${CSS.escape(owner.dataset.word)} p`);
  if (!words) return;
  const link = document.createElement("a");
  Object.assign(link, { href: address(owner), target: "_blank", rel: "noopener", textContent: "more" });
  tip.replaceChildren(document.importNode(words, true), link);
  tip.hidden = false;
  place(owner, tip.getBoundingClientRect());
}

// Beside the columns of question and answer, so that nothing there is covered; below elsewhere.
function place(owner, own) {
  const box = owner.getBoundingClientRect();
  let left = box.left, top = box.bottom + 6;
  const column = owner.closest("#question, #answer")?.getBoundingClientRect();
  if (column) [left, top] = [column.left < innerWidth / 2 ? column.right + 4 : column.left - own.width - 4, box.top];
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - own.width - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(top, innerHeight - own.height - 8))}px`;
}

function hide() {
  clearTimeout(timer);
  tip.hidden = true;
}

export function enableTips() {
  load();
  document.addEventListener("pointerover", (event) => {
    const owner = ownerOf(event);
    clearTimeout(timer);
    if (owner) show(owner);
    else if (!tip.contains(event.target)) timer = setTimeout(hide, GONE_AFTER);
  });
  document.addEventListener("focusin", (event) => {
    const owner = ownerOf(event);
    if (owner) show(owner);
    else if (!tip.contains(event.target)) hide();
  });
  document.addEventListener("pointerdown", (event) => { if (!tip.contains(event.target)) hide(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const owner = ownerOf(event);
    if (event.key === "?" && owner) open(address(owner), "_blank", "noopener");
  });
}
