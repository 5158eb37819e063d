// The findings, worst first: what was seen, what to do, and where it is on the picture.
const MOST_CARDS = 6;
const LEVEL_NAMES = { high: "high", warn: "warning", info: "note", ok: "good" };

function findingCard(finding, state) {
  const card = element("details", undefined, `finding ${finding.level}`);
  card.id = `finding-${finding.id}`;
  const head = element("summary");
  head.append(element("span", LEVEL_NAMES[finding.level] || finding.level, `level ${finding.level}`), element("span", finding.title, "what"));
  if (finding.seconds !== null && !finding.cause) head.append(element("span", `${duration(finding.seconds)} at stake`, "stake"));
  card.append(head);
  const body = element("div", undefined, "body");
  if (finding.show && data.timeline.count) {
    body.append(showButton(finding, state));
  }
  if (finding.evidence.length) {
    const list = element("dl", undefined, "evidence");
    for (const [name, text] of finding.evidence) list.append(element("dt", name), element("dd", text));
    body.append(list);
  }
  finding.advice.forEach((advice) => {
    body.append(element("p", advice.text, "advice"));
    if (advice.snippet) body.append(example(advice.snippet));
  });
  if (finding.details.rows.length) { const holder = element("div", undefined, "scroll"); table(holder, finding.details.columns, finding.details.rows); body.append(holder); }
  body.append(element("p", `rule: ${finding.code}`, "hint"));
  card.append(body);
  return card;
}

function showButton(finding, state) {
  const button = element("button", "Show in the charts");
  button.type = "button";
  button.dataset.show = finding.id;
  button.addEventListener("click", () => showFinding(finding, state));
  return button;
}

function example(snippet) {
  const folded = element("details", undefined, "code"), code = element("pre");
  code.tabIndex = 0;
  code.append(element("code", snippet));
  folded.append(element("summary", "example"), code);
  return folded;
}

function findingsSection(place, state) {
  const own = data.findings.filter((finding) => !finding.cause), explained = own.length < data.findings.length;
  const serious = own.filter((finding) => finding.level === "high" || finding.level === "warn");
  const main = serious.slice(0, MOST_CARDS), rest = own.filter((finding) => !main.includes(finding));
  place.replaceChildren(...main.map((finding) => findingCard(finding, state)));
  if (!main.length) place.append(element("p", explained ? "Nothing beyond what the causes above explain." : "Nothing that costs noticeable time was found.", "calm"));
  if (rest.length) {
    const more = element("details", undefined, "more");
    more.append(element("summary", serious.length > main.length ? `${rest.length} more findings and notes` : `${rest.length} notes, and what is done well`), ...rest.map((finding) => findingCard(finding, state)));
    place.append(more);
  }
  const first = place.querySelector("details.finding");
  if (first && main.length && !explained) first.open = true;
}

function showFinding(finding, state) {
  const again = state.show === finding.id;
  state.set({ show: again ? "" : finding.id });
  if (again) return;
  if (finding.show.times && finding.show.times.length === 1) {
    const [from, to] = finding.show.times[0], margin = 0.15 * (to - from) || 0.5;
    state.time.show(from - margin, to + margin);
  }
  document.getElementById("pictures").scrollIntoView({ behavior: window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function markShown(state) {
  for (const button of document.querySelectorAll("button[data-show]")) {
    const on = button.dataset.show === state.show;
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Stop showing" : "Show in the charts";
  }
}
