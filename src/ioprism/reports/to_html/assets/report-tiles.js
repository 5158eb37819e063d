// The same page over a trace of any size: marks come from the local server as the user zooms.
async function fetchTile(low, high, ranks) {
  const wanted = new URLSearchParams({ start: String(low), end: String(high), columns: String(Math.min(900, Math.max(400, window.innerWidth))), ranks });
  const answer = await fetch(`tile?${wanted}`, { cache: "no-store" });
  if (!answer.ok) throw new Error(`tile: ${answer.status}`);
  const raw = new Uint8Array(await answer.arrayBuffer());
  const length = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
  data.timeline.width = header.width;
  return marksOf(header, raw.subarray(4 + length));
}

// Asks for what is seen, once the user pauses; the old picture stays until the new one is there.
function followTiles(shown, state, redraw) {
  let asked = 0, number = 0, last = "";
  const follow = () => {
    const { low, high } = state.time, margin = 0.25 * (high - low), key = `${low} ${high} ${state.ranks}`;
    if (key === last) return;
    last = key;
    clearTimeout(asked);
    asked = setTimeout(async () => {
      number += 1;
      const mine = number, began = performance.now();
      const marks = await fetchTile(Math.max(state.time.first, low - margin), Math.min(state.time.last, high + margin), state.ranks);
      if (mine !== number) return;
      shown.marks = marks;
      shown.restyle();
      shown.choose();
      find("coarse").hidden = !data.timeline.width;
      document.documentElement.dataset.tile = String(Math.round(performance.now() - began));
      redraw();
    }, 80);
  };
  state.time.plots.add({ draw: follow });
  state.listeners.add(follow);
}

// The story comes when the analyses have finished; until then the picture is already there.
async function awaitStory(tell) {
  for (;;) {
    const answer = await fetch("story", { cache: "no-store" }), told = answer.ok ? await answer.json() : null;
    if (told) { tell(told); return; }
    if (!answer.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
}
