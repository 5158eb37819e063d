// The workbench: puts the page together and keeps tracks, panel, story and link in step.
import { TimeAxis } from "../shared/axis.ts";
import { css } from "../shared/colours.ts";
import { button, byId, el, select } from "../shared/dom.ts";
import { csvOf, csvCell, save } from "../shared/download.ts";
import { openPalette, type Command } from "../shared/palette.ts";
import { bindSearch } from "../shared/search.ts";
import { chip, markReady, onlyMoves, Shell, swatch } from "../shared/shell.ts";
import { inRanks, rankSpans, Store, type Selection } from "../shared/state.ts";
import type { Sheet } from "../shared/tables.ts";
import type { Hit } from "../shared/tracks.ts";
import { hideTip, showTip } from "../shared/tooltip.ts";
import { bytes, clock, count, duration, plural, rate } from "../shared/units.ts";
import { callFacts, callKey, callTitle, findCall, windowOfCall } from "./calls.ts";
import { countedOf, curveFacts, forgetCurves, phaseAt, phaseFacts, targetFacts } from "./charts.ts";
import { fillDetails } from "./details.ts";
import { litMarks, subjectOf, type Subject } from "./highlight.ts";
import { busyOf, callsOf, decodeMarks, eachStretch, endOf, firstAtLeast, fromBase64, hasBytes, hasPlace, inflate, timeOf } from "./marks.ts";
import { Job, type PhaseOf } from "./model.ts";
import { only, Pane } from "./pane.ts";
import { paintOf } from "./paint.ts";
import { proofOf, type Proof } from "./proof.ts";
import { rowTitle, type Row } from "./rows.ts";
import { matchesOf } from "./search.ts";
import { COLOURS, LINK, type View } from "./state.ts";
import { fillHead, fillStory, markShown, type StoryActions } from "./story.ts";
import { tabsOf } from "./tabs.ts";
import { awaitStory, fetchTile, followTiles, type Tile } from "./tiles.ts";
import type { Cause, PageData } from "./types.ts";

const SORTS: [string, string][] = [["rank", "rank"], ["time", "I/O time"], ["late", "lateness"], ["bytes", "bytes"]];
const NEAR = 6; // pixels beside a phase that still point at it
const COLOUR_NAMES = COLOURS.map((one): [string, string] => [one, one === "size" ? "request size" : one]);

class Workbench extends Shell<View, Row> {
  declare readonly pane: Pane;
  private subject: Subject | null = null;
  private matches: Int32Array = new Int32Array(0);
  private proof: Proof | null = null;
  private detailing = 0;
  private early = false;
  private proved = "";
  private fetchTiles: () => void = () => undefined;

  constructor(readonly data: PageData, readonly job = new Job(data)) {
    const [first, last] = data.time, axis = new TimeAxis(first, last > first ? last : first + 1), store = new Store(LINK);
    super(store, axis, new Pane(job, store, axis));
    this.commands = this.makeCommands();
  }

  async start(): Promise<void> {
    const { data, job } = this, first = data.explore ? fetchTile(this.axis.first, this.axis.last, null) : null; // the server answers while the page is put together
    if (data.explore) document.documentElement.dataset["late"] = "";
    if (data.only) document.documentElement.dataset["only"] = only(data.only);
    this.bindControls();
    if (!data.explore) this.fillText();
    if (first) { this.take(await first); this.fillText(); }
    else if (data.timeline.count && data.timeline.data && data.timeline.columns) {
      job.adopt(decodeMarks(data.timeline as Parameters<typeof decodeMarks>[0], await inflate(fromBase64(data.timeline.data))));
      delete data.timeline.data;
    }
    this.early = job.marks.count > 200000;
    this.store.restore();
    if (data.only === "rhythm") this.store.set({ tab: "period" });
    if (first) this.exploreMore(await first);
    markReady(() => { if (this.early) { this.early = false; this.settleDetails(); } });
  }

  private take(tile: Tile): void {
    this.job.loaded = tile;
    this.job.rankStep = tile.rankStep;
    this.data.timeline.width = tile.width;
    this.job.adopt(tile.marks);
  }

  private exploreMore(whole: Tile): void {
    this.fetchTiles = followTiles(this.pane, whole, (tile) => {
      this.take(tile);
      forgetCurves();
      this.refresh(new Set(["marks"]));
      this.pane.ask();
    });
    void awaitStory((told, complete) => {
      const { timeline: _timeline, time: _time, explore: _explore, ...rest } = told;
      Object.assign(this.data, rest);
      this.fillText();
      this.refresh(new Set(["show", "tab", "open"]));
      this.pane.ask();
      if (complete) document.documentElement.dataset["told"] = "yes";
    });
  }

  private fillText(): void {
    fillHead(this.job, this.storyActions);
    fillStory(this.job, byId("story"), this.storyActions);
    this.tabs.set(tabsOf({ job: this.job, store: this.store, choose: (row, sheet) => this.choose(row, sheet), details: (panel) => this.details(panel), png: () => this.savePng(), svg: () => this.saveSvg(), keys: () => openPalette(this.commands) }));
  }

  private readonly storyActions: StoryActions = {
    show: (id) => this.highlight(this.store.view.show === id ? "" : id),
    proof: (cause) => this.showProof(cause),
    ledger: (cause) => this.ledger(cause),
  };

  private bindControls(): void {
    const { store, pane, job } = this, filter = el("input", { id: "filter", size: "10", placeholder: "0-3,8 or host", autocomplete: "off" });
    const chooser = (id: "colour" | "sort", choices: [string, string][]): HTMLElement => { const made = select(id, choices, store.view[id], (value) => store.set({ [id]: value })); made.querySelector("select")!.id = id; return made; };
    filter.addEventListener("change", () => store.set({ filter: filter.value }));
    byId("controls").replaceChildren(chooser("colour", COLOUR_NAMES), chooser("sort", SORTS), el("label", {}, "rows ", filter));
    this.bind();
    pane.scroll.addEventListener("scroll", () => this.fetchTiles());
    const actions = { show: (name: string) => this.highlight(name), rank: (rank: number) => this.selectRank(rank), phase: (n: number) => this.goPhase(this.job.phases()[n]), filter: (text: string) => store.set({ filter: text }) };
    bindSearch("Search files, functions, ranks", (text) => matchesOf(job, text, actions));
  }

  protected select({ low, high, ranks }: Selection): void { this.store.set({ select: { low, high, ranks }, call: "", tab: "details" }); }

  protected follow(): void {
    this.fetchTiles();
    this.settleDetails();
  }

  // Brings everything in step with what changed in the view.
  protected refresh(changed: Set<string>): void {
    const { store: { view }, pane, job } = this, any = (...keys: string[]): boolean => keys.some((key) => changed.has(key));
    if (pane.paint && onlyMoves(changed)) { if (view.tab === "details") this.settleDetails(); return; }
    if (any("colour", "theme", "marks") || !pane.paint) { pane.paint = paintOf(job, view.colour); this.legend(); }
    if (any("show", "marks")) this.light(view.show);
    if (any("proof")) this.restoreProof(view.proof);
    if (any("call", "marks")) { pane.pinnedCall = view.call ? findCall(job, view.call) : -1; }
    if (any("open", "pins", "sort", "group", "rows", "filter", "marks")) { pane.arrange(); this.fetchTiles(); }
    this.controls(view);
    if (any("show", "filter", "proof", "colour", "marks")) this.chips();
    if (any("marks")) this.settleDetails(); // adding up takes longer than a frame
    this.tabs.show(view.tab, any("tab", "select", "show", "call", "layer", "theme"));
  }

  private controls(view: View): void {
    byId<HTMLSelectElement>("colour").value = view.colour;
    byId<HTMLSelectElement>("sort").value = view.sort;
    const filter = byId<HTMLInputElement>("filter"), text = view.filter.trim();
    filter.value = view.filter;
    filter.setAttribute("aria-invalid", String(Boolean(text) && !rankSpans(text) && !this.job.data.hosts.names.some((host) => host.toLowerCase().includes(text.toLowerCase()))));
    markShown(view.show);
  }

  private light(name: string): void {
    const { job, pane } = this;
    this.subject = name ? subjectOf(job, name) : null;
    pane.lit = litMarks(job, this.subject);
    pane.file = this.subject?.show?.files?.length === 1 && name.startsWith("file:") ? this.subject.show.files[0] : -1;
    const { lit } = pane, rows: number[] = [];
    if (lit) for (let i = 0; i < lit.length; i += 1) if (lit[i]) rows.push(i);
    this.matches = Int32Array.from(rows).sort((a, b) => job.marks.start[a] - job.marks.start[b]);
  }

  // ---- What can be done ----

  highlight(name: string): void { this.store.set({ show: name, proof: "" }); }

  selectRank(rank: number): void {
    const key = `rank:${rank}`;
    this.openBlockOf(rank);
    this.store.set({ select: { low: this.axis.low, high: this.axis.high, ranks: String(rank) }, tab: "details" });
    this.pane.reveal(key);
  }

  private openBlockOf(rank: number): void {
    const { layout } = this.pane, block = layout.rows.find((row) => (row.kind === "host" || row.kind === "group") && row.ranks.includes(rank));
    if (block && !block.open) this.toggle(block.key);
  }

  pinCall(mark: number): void {
    if (mark < 0) return;
    const { job, axis } = this, from = timeOf(job.marks, mark), to = endOf(job.marks, mark), rank = job.marks.rank[mark], change: Partial<View> = { call: callKey(job, mark), tab: "details" };
    if (from < axis.low || to > axis.high) { const middle = (from + to) / 2, half = Math.max(axis.span / 2, 0.6 * (to - from)); this.show(middle - half, middle + half); Object.assign(change, { low: axis.low, high: axis.high }); }
    this.openBlockOf(rank);
    this.store.set(change);
    this.pane.reveal(`rank:${rank}`);
  }

  goPhase(phase: PhaseOf | undefined): void {
    if (!phase) return;
    const margin = 0.06 * (phase.end - phase.start) || 1e-6;
    this.show(phase.start - margin, phase.end + margin);
    this.store.set({ low: this.axis.low, high: this.axis.high, select: { low: phase.start, high: phase.end, ranks: "" }, call: "", layer: phase.layer, tab: "details" });
  }

  private stepPhase(step: number): void {
    const phases = this.job.phases(), middle = (this.axis.low + this.axis.high) / 2, { select } = this.store.view;
    if (!phases.length) return;
    const now = select ? phases.findIndex((phase) => phase.start === select.low && phase.end === select.high) : -1;
    const next = now >= 0 ? now + step : step > 0 ? (this.axis.whole ? 0 : phases.findIndex((phase) => phase.start > middle)) : phases.findLastIndex((phase) => phase.end < middle);
    this.goPhase(phases[next]);
  }

  private stepMatch(step: number): void {
    const { job, matches } = this, { marks } = job;
    if (!matches.length) return;
    const pinned = this.pane.pinnedCall, starts = Float64Array.from(matches, (i) => marks.start[i]), middle = (this.axis.low - marks.origin) / marks.tick;
    const now = pinned >= 0 ? matches.indexOf(pinned) : -1, from = now >= 0 ? now + step : step > 0 ? firstAtLeast(starts, 0, starts.length, middle) : firstAtLeast(starts, 0, starts.length, middle) - 1;
    this.pinCall(matches[(from + matches.length) % matches.length]);
  }

  private ledger(cause: Cause | null): void {
    if (!cause) { this.store.set({ tab: "facts" }); return; }
    const card = byId<HTMLDetailsElement>(`card-${cause.id}`);
    card.open = true;
    card.scrollIntoView({ block: "nearest" });
    card.querySelector("summary")?.focus({ preventScroll: true });
    this.showProof(cause);
  }

  private showProof(cause: Cause): void {
    const proof = proofOf(this.job, cause);
    this.proof = proof;
    this.proved = cause.id;
    if (!proof) { this.highlight(cause.show ? cause.id : ""); return; }
    this.show(proof.low, proof.high);
    const pins = [proof.slow, proof.peer].filter((rank): rank is number => rank !== null).map((rank) => `rank:${rank}`);
    this.store.set({ low: this.axis.low, high: this.axis.high, show: cause.show ? cause.id : "", proof: cause.id, pins, call: "", layer: proof.layer, tab: "details", select: { low: Math.max(this.axis.first, proof.phase?.start ?? proof.low), high: Math.min(this.axis.last, proof.phase?.end ?? proof.high), ranks: pins.map((key) => key.slice(5)).join(",") } });
    byId("tracks").focus({ preventScroll: true });
  }

  private restoreProof(id: string): void {
    const cause = this.job.data.diagnosis?.causes.find((one) => one.id === id);
    if (!cause || this.proved !== id) this.proof = cause ? proofOf(this.job, cause) : null; // tiles that come later hold less
    this.proved = cause ? id : "";
    this.pane.excess = this.proof?.excess && !this.job.bins ? { rank: this.proof.slow, ...this.proof.excess } : null;
  }

  showAll(): void {
    this.axis.reset();
    this.store.set({ low: null, high: null, select: null, show: "", call: "", filter: "", pins: [], proof: "" });
  }

  // ---- Pointer and keys ----

  protected click(hit: Hit<Row>): void {
    const { store, job } = this;
    if (hit.mark >= 0 && !job.bins) { store.set({ call: callKey(job, hit.mark), tab: "details" }); return; }
    if (hit.row?.chart === "phases") { const phase = phaseAt(job, hit.time, hit.y, NEAR * this.axis.span / this.pane.width); if (phase) { this.goPhase(phase); return; } }
    if (hit.row?.chart === "targets") { const at = targetFacts(job, this.chartBox(), hit.time, hit.y, hit.row.height); if (at) { this.highlight(`target:${at.target}`); return; } }
    if (hit.row && hit.row.height < 12 && hit.row.kind === "rank") { this.selectRank(hit.row.ranks[0]); return; }
    store.set({ select: null, call: "" });
  }

  private chartBox(): { left: number; width: number; top: number; low: number; high: number } { return { left: this.pane.left, width: this.pane.width, top: 0, low: this.axis.low, high: this.axis.high }; }

  protected hover(hit: Hit<Row>, x: number, y: number): void {
    const { job } = this;
    if (!hit.row || (!hit.row.ranks.length && !hit.row.open)) { hideTip(); return; }
    if (hit.mark >= 0) { showTip(callTitle(job, hit.mark), callFacts(job, hit.mark), x, y); return; }
    const { row } = hit, at: [string, string] = ["at", clock(hit.time, this.axis.span / 1000)];
    if (row.chart === "phases") { const phase = phaseAt(job, hit.time, hit.y, NEAR * this.axis.span / this.pane.width); if (phase) showTip(`${job.data.titles[phase.layer] ?? phase.layer} ${phase.kind} phase`, phaseFacts(job, phase), x, y); else hideTip(); return; }
    if (row.chart === "targets") { const found = targetFacts(job, this.chartBox(), hit.time, hit.y, row.height); if (found) showTip(`target ${found.target}`, found.facts, x, y); else hideTip(); return; }
    if (row.chart) { showTip(row.label, curveFacts(job, row.chart, this.chartBox(), hit.time), x, y); return; }
    showTip(rowTitle(job, row), [at], x, y);
  }

  private makeCommands(): Command[] {
    const { axis, store } = this;
    return this.withCommon([
      { title: "Next phase", keys: ["]"], run: () => this.stepPhase(1) },
      { title: "Previous phase", keys: ["["], run: () => this.stepPhase(-1) },
      { title: "Next match", keys: ["n"], run: () => this.stepMatch(1) },
      { title: "Previous match", keys: ["p"], run: () => this.stepMatch(-1) },
      { title: "Search files, functions, ranks", keys: ["/"], run: () => byId("search").focus() },
      { title: "Zoom to the selection or call", keys: ["f", "Enter"], run: () => this.zoomToChosen() },
      { title: "Select what is in view", keys: ["v"], run: () => store.set({ select: { low: axis.low, high: axis.high, ranks: "" }, tab: "details" }) },
      { title: "Select the slowest rank here", keys: ["x"], run: () => this.selectSlowest() },
      { title: "Clear selection, highlight and pins", keys: ["Escape"], run: () => store.set({ select: null, show: "", call: "", proof: "", pins: [] }) },
      ...[1, 2, 3].map((n): Command => ({ title: `Show the proof of cause ${n}`, keys: [String(n)], run: () => { const cause = this.data.diagnosis?.causes[n - 1]; if (cause) this.showProof(cause); } })),
      ...(["rank", "time", "late", "bytes"] as const).map((sort): Command => ({ title: `Sort ranks by ${sort === "late" ? "lateness in view" : sort}`, keys: [], run: () => store.set({ sort }) })),
      { title: "Thin or tall rows", keys: ["t"], run: () => store.set({ rows: { auto: "tall", tall: "thin", thin: "auto" }[store.view.rows] ?? "auto" }) },
      { title: "Group ranks by host or not", keys: ["h"], run: () => store.set({ group: this.pane.layout.rows.some((row) => row.kind === "host") ? "none" : "host" }) },
      { title: "Logarithmic bandwidth", keys: ["l"], run: () => store.set({ log: !store.view.log }) },
      { title: "Save the selected calls as CSV", keys: [], run: () => this.saveCsv() },
    ]);
  }

  private zoomToChosen(): void {
    const { select, call } = this.store.view, span = call ? windowOfCall(call) : select ? [select.low, select.high] as [number, number] : null;
    if (span) this.zoomTo(span[0], span[1]);
  }

  private selectSlowest(): void {
    const { job } = this, { select } = this.store.view, low = select?.low ?? this.axis.low, high = select?.high ?? this.axis.high, layer = job.layerNumber(this.store.view.layer), time = new Map<number, number>();
    eachStretch(job.marks, low, high, (from, to) => {
      if (job.marks.layer[from] !== layer) return;
      let sum = 0;
      for (let i = from; i < to; i += 1) sum += busyOf(job.marks, i) * (Math.min(high, endOf(job.marks, i)) - Math.max(low, timeOf(job.marks, i))) / Math.max(1e-12, endOf(job.marks, i) - timeOf(job.marks, i));
      time.set(job.marks.rank[from], (time.get(job.marks.rank[from]) ?? 0) + sum);
    });
    const slowest = [...time].sort((a, b) => b[1] - a[1])[0];
    if (!slowest) return;
    this.openBlockOf(slowest[0]);
    this.store.set({ select: { low, high, ranks: String(slowest[0]) }, tab: "details" });
    this.pane.reveal(`rank:${slowest[0]}`);
  }

  // ---- Panel ----

  private settleDetails(): void {
    clearTimeout(this.detailing);
    this.detailing = window.setTimeout(() => { if (this.store.view.tab === "details") this.tabs.show("details"); }, 180);
  }

  private details(panel: HTMLElement): void {
    const { job, axis, store, pane } = this;
    if (this.early) { panel.replaceChildren(el("p", { class: "hint" }, "Adding up…")); return; } // the first picture comes first
    fillDetails(panel, {
      job, layer: job.layerNumber(store.view.layer), low: axis.low, high: axis.high, select: store.view.select, call: pane.pinnedCall,
      actions: {
        pin: (mark) => this.pinCall(mark), unpin: () => store.set({ call: "" }), copy: (place) => void this.copyLink(place), csv: () => this.saveCsv(),
        showFile: (file) => this.highlight(`file:${file}`), showTarget: (target) => this.highlight(`target:${target}`), showFunction: (name) => this.highlight(`fn:${name}`),
        showRank: (rank) => { const { select } = store.view; this.openBlockOf(rank); store.set({ select: { low: select?.low ?? axis.low, high: select?.high ?? axis.high, ranks: String(rank) } }); pane.reveal(`rank:${rank}`); },
        layer: (layer) => store.set({ layer }), zoom: () => this.zoomToChosen(), clear: () => store.set({ select: null }),
      },
    });
  }

  private async copyLink(place: HTMLElement): Promise<void> {
    try { await navigator.clipboard.writeText(location.href); place.textContent = "Copied"; }
    catch { const box = el("input", { readonly: true, "aria-label": "Link", value: location.href }); place.after(box); box.select(); }
  }

  private choose(row: unknown[], sheet: Sheet): { run: () => void; chosen: boolean } | null {
    const of = (name: string): unknown => row[sheet.columns.findIndex((column) => column.name === name)], { view } = this.store;
    if (sheet.title === "Files") {
      const number = Object.keys(this.data.files).find((key) => this.data.files[key] === of("file"));
      return number === undefined ? null : { run: () => this.highlight(view.show === `file:${number}` ? "" : `file:${number}`), chosen: view.show === `file:${number}` };
    }
    if (sheet.title === "Ranks") { const rank = Number(of("rank")); return { run: () => this.selectRankKeepTab(rank), chosen: Boolean(view.select?.ranks) && inRanks(view.select!.ranks)(rank) }; }
    if (sheet.title === "Storage targets") { const target = of("storage target"); return { run: () => this.highlight(view.show === `target:${target}` ? "" : `target:${target}`), chosen: view.show === `target:${target}` }; }
    if (sheet.title === "Nodes") { const host = String(of("node")); return { run: () => this.store.set({ filter: view.filter === host ? "" : host }), chosen: view.filter === host }; }
    if (sheet.title === "Phases") {
      const from = Number(of("from")), to = from + Number(of("lasts")), layer = String(of("interface"));
      const phase = this.job.allPhases().find((one) => one.layer === layer && Math.abs(one.start - from) < 1e-9);
      return phase ? { run: () => { this.goPhase(phase); this.store.set({ tab: "phases" }); }, chosen: view.select !== null && view.select.low === phase.start && Math.abs(view.select.high - to) < 1e-6 } : null;
    }
    return null;
  }

  private selectRankKeepTab(rank: number): void {
    this.openBlockOf(rank);
    this.store.set({ select: { low: this.axis.low, high: this.axis.high, ranks: String(rank) } });
    this.pane.reveal(`rank:${rank}`);
  }

  // ---- Above the tracks ----

  private chips(): void {
    const { job, store, subject, proof } = this, { view } = store, chips: HTMLElement[] = [];
    const put = (...parts: Parameters<typeof chip>): void => { chips.push(chip(...parts)); };
    if (proof && view.proof) {
      const excess = proof.slowSeconds - proof.peerSeconds;
      const seconds = (value: number): string => job.bins ? "" : ` ${duration(value)}`; // a bin is no time in calls
      put(proof.peer === null ? `Proof: ${job.rankName(proof.slow)}${seconds(proof.slowSeconds)} in such calls; no peer is faster` : `Proof: ${job.rankName(proof.slow)}${seconds(proof.slowSeconds)} beside ${proof.peerKind} peer ${job.rankName(proof.peer)}${seconds(proof.peerSeconds)}${proof.excess && !job.bins ? `; hatched: ${duration(excess)} more` : ""}`, null, button("Back", () => history.back()));
    }
    if (subject) {
      const calls = this.matches.reduce((sum, i) => sum + callsOf(job.marks, i), 0); // of all interfaces: their times do not add up
      put(`Highlighted: ${subject.title}${job.bins ? "" : ` (${plural(calls, "call")})`}`, () => store.set({ show: "" }), button("‹", () => this.stepMatch(-1), { "aria-label": "Previous match", title: "Previous match (p)" }), button("›", () => this.stepMatch(1), { "aria-label": "Next match", title: "Next match (n)" }));
    } else if (view.show) put("The link highlights something that this trace does not have", () => store.set({ show: "" }));
    if (view.filter) put(`Rows: ${view.filter}`, () => store.set({ filter: "" }));
    for (const text of this.notices()) put(text, null);
    byId("chips").replaceChildren(...chips);
  }

  private notices(): string[] {
    const { timeline, explore } = this.data;
    if (timeline.source === "heat map" && timeline.count) return [`Darshan's heat map: bins of ${duration(timeline.width)}. For a per-call trace, record with DXT_ENABLE_IO_TRACE=1.`];
    if (timeline.source === "counters" && timeline.count) return ["Counters only: bars reach from the first to the last call on a file. For a per-call trace, record with DXT_ENABLE_IO_TRACE=1."];
    if (!this.job.marks.count && !explore) return ["No per-call data. For a per-call trace, record with DXT_ENABLE_IO_TRACE=1."];
    if (timeline.width && !explore) return [`${count(timeline.calls)} calls: those of a rank within ${duration(timeline.width)} are drawn as one. ioprism explore shows each.`];
    return [];
  }

  private heatLegend(place: HTMLElement): void {
    const text = el("span"), names = [...new Set(countedOf(this.job).flatMap((layers) => [...layers]))].map((layer) => this.job.layerTitle(layer)).join(", ");
    this.pane.onHeat = (most) => { text.textContent = `up to ${rate(most)} of a rank${names ? `, through ${names}` : ""}`; };
    place.replaceChildren(el("span", { class: "ramp" }), text);
  }

  private legend(): void {
    const place = byId("legend"), paint = this.pane.paint!;
    if (this.store.view.colour === "bytes" || this.job.bins) { this.heatLegend(place); return; }
    place.replaceChildren(...paint.names.map((name, n) => {
      const item = swatch(name, css(paint.colours[n]));
      item.hidden = !paint.present.has(n);
      return item;
    }));
  }

  // ---- Files ----

  private saveCsv(): void {
    const { job, axis } = this, { select } = this.store.view, { marks } = job, low = select?.low ?? axis.low, high = select?.high ?? axis.high, ranks = inRanks(select?.ranks ?? ""), round = (value: number): number => +value.toFixed(9);
    const rows: unknown[][] = [["start", "end", "rank", "layer", "operation", "function", "file", "offset", "bytes", "calls", "seconds"]];
    eachStretch(marks, low, high, (from, to) => {
      if (!ranks(marks.rank[from])) return;
      for (let i = from; i < to; i += 1) {
        if (this.pane.lit && !this.pane.lit[i]) continue;
        rows.push([round(timeOf(marks, i)), round(endOf(marks, i)), marks.rank[i] < 0 ? null : marks.rank[i], job.data.layers[marks.layer[i]], job.operationName(marks.operation[i]), job.functionName(i), marks.file[i] < 0 ? null : job.fileName(marks.file[i]), hasPlace(marks, i) ? marks.offset[i] : null, hasBytes(marks, i) ? marks.bytes[i] : null, callsOf(marks, i), round(busyOf(marks, i))]);
      }
    });
    save("calls.csv", csvOf(rows), "text/csv");
  }

}

const page = new Workbench(JSON.parse(byId("data").textContent ?? "{}") as PageData);
Object.assign(window, { ioprism: { page, job: page.job, store: page.store, axis: page.axis, pane: page.pane, csvCell, bytes } });
void page.start();
