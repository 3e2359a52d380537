// Plays the recorded motions of motions.js on the start page; no library, nothing is loaded.
(() => {
  const stage = document.getElementById("motions");
  if (!stage || typeof MOTIONS === "undefined") return;
  const make = (tag, parent, attributes = {}) => {
    const space = ["svg", "line"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  const buttons = make("div", stage, { class: "motion-buttons" });
  const body = make("div", stage, { class: "motion-body" });
  const left = make("div", body, { class: "motion-shape" });
  const drawing = make("svg", left, { viewBox: "-1.9 -1.6 3.8 3.2", role: "img", "aria-label": "the moved shape" });
  const slider = make("input", left, { type: "range", min: 0, value: 0, "aria-label": "how far" });
  const list = make("ol", body, { class: "motion-networks" });
  const rows = MOTIONS.networks.map((name) => {
    const row = make("li", list);
    make("b", row).textContent = name;
    return { row, words: make("span", row) };
  });
  let motion = MOTIONS.motions[0];

  const lines = (points, kind) => {
    for (const [a, b] of motion.edges) {
      const [x1, y1, x2, y2] = [...points[a], ...points[b]];
      make("line", drawing, { x1, y1: -y1, x2, y2: -y2, class: kind });
    }
  };
  const show = () => {
    const frame = motion.frames[Number(slider.value)];
    drawing.replaceChildren();
    lines(motion.frames[0].points, "before");
    lines(frame.points, "after");
    frame.changes.forEach((change, k) => {
      const stays = change < 1e-9;
      const at_start = slider.value === "0";
      const verdict = at_start ? "start" : motion.keeps[k] ? (stays ? "kept" : "broken") : stays ? "same-here" : "changes";
      rows[k].row.className = verdict;
      rows[k].words.textContent = {
        start: "", kept: "same output, as it must", broken: "theory is wrong",
        "same-here": "same output here", changes: `output changes, by ${change.toExponential(0)}`,
      }[verdict];
    });
  };
  const choose = (one, button) => {
    motion = one;
    for (const other of buttons.children) other.setAttribute("aria-pressed", other === button);
    const reach = 1.1 * Math.max(...one.frames.flatMap((frame) => frame.points.flat().map(Math.abs)));
    drawing.setAttribute("viewBox", `${-reach * 1.15} ${-reach} ${reach * 2.3} ${reach * 2}`);
    slider.max = one.frames.length - 1;
    slider.value = Math.round(slider.max * 0.6);
    show();
  };
  for (const one of MOTIONS.motions) {
    const button = make("button", buttons, { type: "button" });
    button.textContent = one.name;
    button.addEventListener("click", () => choose(one, button));
  }
  slider.addEventListener("input", show);
  choose(MOTIONS.motions[2], buttons.children[2]);
})();
