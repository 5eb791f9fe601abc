// The gallery, and stored runs if the lab was opened with some.

import { fromFragment } from "./state.js";

const list = document.getElementById("gallery-list");

function entry({ name, text, fragment }, ask) {
  const item = document.createElement("li"), button = document.createElement("button");
  const small = document.createElement("small");
  small.textContent = text;
  button.append(name, small);
  Object.assign(button, { type: "button", disabled: !fragment });
  button.onclick = () => {
    document.getElementById("gallery").open = false;
    ask(fromFragment(`#${fragment}`));
  };
  item.append(button);
  return item;
}

export async function fillGallery(ask, dots) {
  const { gallery, opened } = await (await fetch("gallery.json")).json();
  list.append(...[...opened, ...gallery].map((found) => entry(found, ask)));
  const largest = Math.max(...opened.map(({ dot }) => dot.seed));
  for (const { dot, fragment } of opened)
    dots.add({ ...dot, question: fragment && fromFragment(`#${fragment}`) }, largest);
}
