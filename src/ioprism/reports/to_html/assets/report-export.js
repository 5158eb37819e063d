// What leaves the page: pictures as PNG and SVG, rows as CSV.
function saveText(name, text, type) {
  const link = element("a"), address = URL.createObjectURL(new Blob([text], { type }));
  link.href = address; link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A cell that a spreadsheet would take for a formula is kept as text.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = String(value), safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csvOf = (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";

function selectedRows(shown, state) {
  const { marks, lit } = shown, rows = [["start", "end", "rank", "layer", "operation", "file", "offset", "bytes", "calls", "seconds"]];
  eachStretch(marks, state.time.low, state.time.high, (from, to) => {
    for (let i = from; i < to; i += 1) {
      if (lit[i] !== 2) continue;
      const a = timeOf(marks, i), round = (value) => +value.toFixed(9);
      rows.push([round(a), round(a + lengthOf(marks, i)), marks.rank[i] < 0 ? null : marks.rank[i], data.layers[marks.layer[i]], data.operations[marks.operation[i]],
        marks.file[i] < 0 ? null : fileName(marks.file[i]), marks.flags[i] & HAS_PLACE ? marks.offset[i] : null, marks.flags[i] & HAS_BYTES ? marks.bytes[i] : null, callsOf(marks, i), round(busyOf(marks, i))]);
    }
  });
  return rows;
}

function savePng(frames, name) {
  const width = frames[0].canvas.clientWidth, tall = frames.reduce((sum, one) => sum + one.height + 22, 8);
  const sheet = document.createElement("canvas"), pen = sheet.getContext("2d");
  sheet.width = width * RATIO; sheet.height = tall * RATIO;
  pen.scale(RATIO, RATIO);
  pen.fillStyle = colour("--ground"); pen.fillRect(0, 0, width, tall);
  let top = 4;
  for (const one of frames) {
    one.paint();
    pen.fillStyle = colour("--ink"); pen.font = "13px system-ui, sans-serif"; pen.fillText(one.label, LEFT, top + 14);
    pen.drawImage(one.canvas, 0, top + 20, width, one.height);
    top += one.height + 22;
  }
  const link = element("a");
  link.href = sheet.toDataURL("image/png"); link.download = name;
  link.click();
}

const plainText = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// Takes the strokes of a canvas and writes them as SVG; pixels of calls become an image in it.
function svgPen(out, shift) {
  let path = "", dash = "";
  const at = (x, y) => `${+x.toFixed(2)} ${+(y + shift).toFixed(2)}`, put = (text) => out.push(text);
  return {
    isSvg: true, fillStyle: "", strokeStyle: "", lineWidth: 1, textAlign: "left", font: "", imageSmoothingEnabled: false,
    beginPath() { path = ""; }, moveTo(x, y) { path += `M${at(x, y)}`; }, lineTo(x, y) { path += `L${at(x, y)}`; },
    stroke() { put(`<path d="${path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}/>`); },
    fillRect(x, y, w, h) { put(`<rect x="${+x.toFixed(2)}" y="${+(y + shift).toFixed(2)}" width="${+w.toFixed(2)}" height="${+h.toFixed(2)}" fill="${this.fillStyle}"/>`); },
    measureText: (text) => ({ width: 6.6 * text.length }),
    fillText(text, x, y) {
      const anchor = { center: "middle", right: "end" }[this.textAlign] || "start";
      put(`<text x="${+x.toFixed(2)}" y="${+(y + shift).toFixed(2)}" fill="${this.fillStyle}" text-anchor="${anchor}">${plainText(text)}</text>`);
    },
    drawImage(image, x, y, w, h) { put(`<image x="${x}" y="${y + shift}" width="${w}" height="${h}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${image.toDataURL("image/png")}"/>`); },
    setLineDash(steps) { dash = steps.length ? ` stroke-dasharray="${steps.join(" ")}"` : ""; },
    save() {}, restore() {}, rect() {}, clip() {}, scale() {},
  };
}

function svgOf(frames) {
  const width = frames[0].canvas.clientWidth, out = [];
  let top = 4;
  for (const one of frames) {
    out.push(`<text x="${LEFT}" y="${top + 14}" fill="${colour("--ink")}">${plainText(one.label)}</text>`);
    one.paint(svgPen(out, top + 20));
    top += one.height + 22;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" font-family="system-ui, sans-serif" font-size="12"><rect width="100%" height="100%" fill="${colour("--ground")}"/>${out.join("")}</svg>`;
}
