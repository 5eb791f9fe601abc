// What can be taken away: the link, code, weights and the figure.

const by = (id) => document.getElementById(id);

function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (!answer.ok) throw new Error((await answer.json()).message ?? answer.statusText);
  return answer;
}

const STYLE = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "paint-order",
  "font-size", "font-weight", "font-family", "font-style",
];

const WIDE = 390, HIGH = 260; // a picture with its margin

// All pictures as one SVG document with the colours written out, so that it looks the same elsewhere.
function picture() {
  const images = [...document.querySelectorAll("#plots figure > svg")];
  const parts = images.map((svg, i) => {
    const copy = svg.cloneNode(true);
    const from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
    from.forEach((node, j) => {
      const look = getComputedStyle(node);
      to[j].style.cssText = STYLE.map((name) => `${name}:${look.getPropertyValue(name)}`).join(";");
    });
    const box = svg.viewBox.baseVal;
    copy.setAttribute("x", WIDE * (i % 2));
    copy.setAttribute("y", HIGH * Math.floor(i / 2));
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    return new XMLSerializer().serializeToString(copy);
  });
  const size = `width="${2 * WIDE}" height="${HIGH * Math.ceil(images.length / 2)}"`;
  const back = `<rect ${size} fill="${getComputedStyle(document.body).backgroundColor}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${back}${parts.join("")}</svg>`;
}

function asPng(svg) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * image.width;
      canvas.height = 2 * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = () => reject(new Error("The figure could not be drawn."));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  });
}

export function enableExport(state, say) {
  const told = (text) => { by("exported").hidden = false; by("exported").textContent = text; };
  const doing = (work) => () => Promise.resolve(work()).catch((error) => say(error.message));
  by("copy-link").onclick = doing(async () => {
    told(location.href);
    await navigator.clipboard?.writeText(location.href);
    say("The link is copied.");
  });
  const code = async () => (await post("code", JSON.stringify(state.question))).json();
  by("save-python").onclick = doing(async () => {
    const { python, name } = await code();
    told(python);
    save(`${name}.py`, python, "text/x-python");
  });
  by("save-command").onclick = doing(async () => {
    const { command } = await code(), { teacher } = state.question;
    told(command ?? "The shell command knows teachers that are orthonormal or from a file, and random starts. "
      + "Python repeats every run.");
    if (command && teacher.kind === "vectors") save("teacher.json", JSON.stringify(teacher), "application/json");
  });
  const weights = () => {
    if (!state.end) throw new Error("There are no weights before a run has ended.");
    const { incoming, outgoing, bias, offset } = state.end;
    return bias === null ? { incoming, outgoing } : { incoming, outgoing, bias, offset };
  };
  by("save-json").onclick = doing(() =>
    save("weights.json", JSON.stringify({ ...weights(), question: state.question }), "application/json"));
  by("save-npz").onclick = doing(async () => {
    const answer = await post("weights.npz", JSON.stringify(weights()));
    save("weights.npz", await answer.blob(), "application/octet-stream");
  });
  by("save-nc").onclick = doing(async () => {
    say("Storing the run…");
    const answer = await post("result.nc", JSON.stringify(state.question));
    save("run.nc", await answer.blob(), "application/octet-stream");
    say("The run is stored.");
  });
  by("save-svg").onclick = doing(() => save("understudy-lab.svg", picture(), "image/svg+xml"));
  by("save-png").onclick = doing(async () => save("understudy-lab.png", await asPng(picture()), "image/png"));
}
