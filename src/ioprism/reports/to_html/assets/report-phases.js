// Phases: when the job does I/O, and who is fastest and slowest in each.
const PHASE_COLOURS = { read: "--c1", write: "--c2", metadata: "--c3" };

function phaseStrips(place, state) {
  const layers = Object.keys(data.phases).sort((a, b) => data.heights[b] - data.heights[a]);
  if (!layers.length) return null;
  const tall = 26;
  const at = (x, y, box) => {
    const layer = layers[Math.floor((y - box.top) / box.height * layers.length)];
    return layer === undefined ? null : [layer, data.phases[layer].phases.find((phase) => x >= phase.start && x <= phase.end)];
  };
  return frame(place, {
    label: "I/O phases over time", axis: state.time, height: layers.length * tall + TOP + BOTTOM,
    paint(pen, box) {
      layers.forEach((layer, n) => {
        const top = box.top + n * tall + 3;
        for (const phase of data.phases[layer].phases) paintPhase(pen, box, phase, top, tall - 6);
      });
      leftLabels(pen, box, layers.length, (row) => data.titles[layers[row]] || layers[row]);
    },
    hover(x, y, box) {
      const found = at(x, y, box);
      return found && found[1] ? phaseFacts(found[0], found[1]) : null;
    },
  });
}

function paintPhase(pen, box, phase, top, tall) {
  const from = Math.max(box.left, box.across(phase.start)), to = Math.min(box.right, box.across(phase.end));
  if (to < box.left || from > box.right) return;
  const both = phase.kind.includes(" and ");
  pen.fillStyle = colour(PHASE_COLOURS[both ? "read" : phase.kind] || "--c5");
  pen.fillRect(from, top, Math.max(1.5, to - from), both ? tall / 2 : tall);
  if (both) { pen.fillStyle = colour("--c2"); pen.fillRect(from, top + tall / 2, Math.max(1.5, to - from), tall / 2); }
}

function phaseFacts(layer, phase) {
  return [["phase", `${phase.kind}, through ${data.titles[layer] || layer}`], ["from", clock(phase.start)], ["lasts", duration(phase.end - phase.start)],
    ["ranks", count(phase.ranks)], ["calls", count(phase.operations)], ["moved", bytes(phase.bytes)],
    ["fastest rank", `${phase.fastest.rank}: ${duration(phase.fastest.time)} in calls`], ["slowest rank", `${phase.slowest.rank}: ${duration(phase.slowest.time)} in calls`]];
}

// Spectrum and scalogram behind the answer to "does it repeat?".
function rhythmSection(section, state) {
  const rhythm = data.rhythm;
  section.hidden = !rhythm;
  if (!rhythm) return;
  const found = rhythm.period, lines = rhythm.spectrum;
  section.querySelector("p").textContent = found
    ? `The ${{ read: "reading", write: "writing" }[rhythm.of] || "I/O"} ${found.certainty === "maybe" ? "possibly repeats" : "repeats"} every ${duration(found.seconds)}, give or take ${duration(found.spread)}; ${found.certainty === "maybe" ? "a program with irregular pauses" : "a signal without a rhythm"} would look like this in ${found.false_alarm_probability < 1e-4 ? "less than 0.01" : +(100 * found.false_alarm_probability).toPrecision(2)} % of cases.`
    : "No period: the I/O may be irregular.";
  const step = lines.frequency.length > 1 ? lines.frequency[1] - lines.frequency[0] : 1;
  const hertz = axis(0, lines.frequency.length ? lines.frequency[lines.frequency.length - 1] : 1);
  plot(section.querySelector(".spectrum"), {
    label: "Power spectrum of the bandwidth", axis: hertz, unit: "Hz", height: 170,
    curves: [{ name: "share of variance", colour: "--c1", start: (lines.frequency[0] || 0) - step / 2, step, values: lines.share }],
    marks: found ? [{ x: found.frequency, name: `every ${duration(found.seconds)}` }] : [],
  });
  if (found) hertz.show(0, Math.min(hertz.last, 12 * found.frequency));
  const place = section.querySelector(".scalogram");
  if (rhythm.scalogram) heat(place, { label: "Scalogram: which period is strong when", axis: state.time, ...rhythm.scalogram });
  else place.remove();
}
