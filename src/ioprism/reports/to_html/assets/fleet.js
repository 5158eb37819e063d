const find = (id) => document.getElementById(id);
const seconds = (value) => `${plain(value)} s`;
const ROW = 26, MARGIN = 8, LABEL = 130, AXIS = 22, REFRESH_MS = 1000, MOST_ROWS = 200;
const percent = (share) => share === null ? "" : `${(100 * share).toFixed(0)} %`;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Time from the past to the horizon, in pixels.
function scale(state, width) {
  const past = state.horizon / 2, span = past + state.horizon;
  return (x) => LABEL + (x + past) / span * (width - LABEL - MARGIN);
}

function draw(state) {
  const canvas = find("rows").querySelector("canvas") || find("rows").appendChild(element("canvas"));
  const jobs = state.jobs.slice(0, MOST_ROWS), width = find("rows").clientWidth, height = jobs.length * ROW + AXIS + MARGIN;
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${jobs.length} jobs and their next phases`);
  const pen = canvas.getContext("2d"), at = scale(state, width), bottom = height - AXIS;
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  pen.globalAlpha = 0.18;
  pen.fillStyle = "#c22";
  for (const one of state.overlaps) pen.fillRect(at(Math.max(one.start, 0)), 0, Math.max(1, at(one.end) - at(Math.max(one.start, 0))), bottom);
  pen.globalAlpha = 1;
  jobs.forEach((job, row) => drawJob(pen, at, job, row * ROW + MARGIN / 2));
  drawAxis(pen, at, state, width, bottom);
}

function drawJob(pen, at, job, top) {
  const text = style("--ink") || "#333", colour = style("--c1") || "#26a";
  pen.fillStyle = text;
  pen.textBaseline = "middle";
  pen.fillText(job.job.length > 18 ? `${job.job.slice(0, 17)}…` : job.job, 2, top + ROW / 2);
  const wide = job.ahead.length ? job.ahead[0].end - job.ahead[0].start : 0;
  for (const one of job.predicted) {
    const left = at(one.due), right = Math.max(left + 3, at(one.due + wide));
    if (right < LABEL) continue;
    if (one.came !== null && at(one.came) >= LABEL) {
      pen.fillStyle = one.on_time ? colour : "#c22";
      pen.fillRect(at(one.came), top + 6, Math.max(3, right - left), ROW - 14);
    }
    pen.strokeStyle = text;
    pen.strokeRect(Math.max(LABEL, left), top + 3, right - Math.max(LABEL, left), ROW - 8);
  }
  pen.fillStyle = colour;
  for (const one of job.ahead) {
    pen.globalAlpha = 0.15 + 0.85 * one.confidence;
    pen.fillRect(at(one.start), top + 3, Math.max(3, at(one.end) - at(one.start)), ROW - 8);
  }
  pen.globalAlpha = 1;
}

function drawAxis(pen, at, state, width, bottom) {
  pen.strokeStyle = pen.fillStyle = style("--ink") || "#333";
  pen.beginPath();
  pen.moveTo(at(0), 0);
  pen.lineTo(at(0), bottom);
  pen.stroke();
  pen.textBaseline = "top";
  pen.textAlign = "center";
  for (const share of [-0.5, 0, 0.5, 1]) {
    const x = share * state.horizon;
    pen.fillText(share === 0 ? "now" : `${x > 0 ? "+" : "−"}${seconds(Math.abs(x))}`, Math.min(width - 30, Math.max(LABEL + 24, at(x))), bottom + 4);
  }
  pen.textAlign = "left";
}

function tell(state) {
  const next = state.overlaps[0];
  find("verdict").textContent = next
    ? `${next.jobs.join(" and ")} will do I/O at the same time ${next.start <= 0 ? "now" : `in ${seconds(next.start)}`}`
    : state.jobs.length ? "No jobs meet ahead" : "Waiting for jobs";
  find("lag").hidden = state.lag_seconds <= 1;
  find("lag").textContent = `The service lags: ${state.analyses_waiting} jobs wait for their analysis, the first for ${seconds(state.lag_seconds)}. Predictions are those of before.`;
  table(find("overlaps"), ["from", "to", "jobs", "together"], state.overlaps.slice(0, 20).map((one) => [
    `in ${seconds(Math.max(0, one.start))}`, `in ${seconds(one.end)}`, one.jobs.join(", "), rate(one.rate)]));
  table(find("jobs"), ["job", "period", "next phase", "sure", "moves", "predicted on time"], state.jobs.map((job) => [
    job.job, job.period === null ? "none" : seconds(job.period),
    job.ahead.length ? `in ${seconds(Math.max(0, job.ahead[0].start))}` : "", job.ahead.length ? percent(job.ahead[0].confidence) : "",
    job.ahead.length ? bytes(job.ahead[0].bytes) : "", percent(job.on_time_share)]));
}

async function refresh() {
  try {
    const horizon = find("horizon").value;
    const answer = await fetch(horizon ? `fleet?horizon=${horizon}` : "fleet");
    const state = await answer.json();
    find("link").textContent = "connected";
    tell(state);
    if (!document.hidden) draw(state);
  } catch { find("link").textContent = "not connected"; }
  setTimeout(refresh, REFRESH_MS);
}
refresh();
