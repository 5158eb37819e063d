// Pointer, wheel and touch over the tracks: drag selects, Ctrl and wheel or two fingers zoom, one finger scrolls the page.
import { byId } from "./dom.ts";
import type { ShellView } from "./state.ts";
import { OVERVIEW, type Hit, type TrackPane, type TrackRow } from "./tracks.ts";

const DRAG = 4; // pixels that tell a drag from a click
export interface Actions<R> { click: (hit: Hit<R>) => void; hover: (hit: Hit<R> | null, x: number, y: number) => void; select: (low: number, high: number, ranks: string) => void }

export function bindGestures<R extends TrackRow, V extends ShellView>(pane: TrackPane<R, V>, actions: Actions<R>): void {
  for (const [place, pinned] of [[pane.stage, false], [pane.pinStage, true]] as [HTMLElement, boolean][]) bindStage(pane, place, pinned, actions);
  bindOverview(pane);
}

function bindStage<R extends TrackRow, V extends ShellView>(pane: TrackPane<R, V>, place: HTMLElement, pinned: boolean, actions: Actions<R>): void {
  const fingers = new Map<number, { x: number; y: number }>();
  let begin: { x: number; y: number; time: number; scroll: number; low: number; pan: boolean } | null = null, dragging = false, pinch = 0;
  const local = (event: PointerEvent | WheelEvent): [number, number] => { const box = place.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const timeAt = (x: number): number => Math.min(pane.axis.last, Math.max(pane.axis.first, pane.axis.timeAt(x - pane.left, pane.width)));

  place.addEventListener("wheel", (event) => {
    const [x] = local(event);
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); pane.axis.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), timeAt(x)); }
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); pane.axis.pan((event.deltaX || event.deltaY) / pane.width); }
  }, { passive: false });

  place.addEventListener("pointerdown", (event) => {
    const [x, y] = local(event);
    if ((event.target as HTMLElement).closest("button") || x < pane.left || (event.button !== 0 && event.button !== 1)) return;
    fingers.set(event.pointerId, { x, y });
    if (fingers.size === 2) { pinch = distance(fingers); begin = null; dragging = false; pane.draft = null; return; }
    begin = { x, y, time: timeAt(x), scroll: pane.scroll.scrollTop, low: pane.axis.low, pan: event.pointerType === "touch" || event.shiftKey || event.button === 1 };
    if (event.pointerType !== "touch") { event.preventDefault(); byId("tracks").focus({ preventScroll: true }); }
  });

  place.addEventListener("pointermove", (event) => {
    const [x, y] = local(event);
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, { x, y });
    if (fingers.size === 2) {
      const now = distance(fingers), middle = [...fingers.values()].reduce((sum, one) => sum + one.x, 0) / 2;
      if (now > 10 && pinch > 10) pane.axis.zoom(pinch / now, timeAt(middle));
      pinch = now;
      return;
    }
    if (!begin) { pane.cursor = x >= pane.left ? timeAt(x) : null; pane.askAbove(); actions.hover(x >= pane.left ? pane.hit(x, y, pinned) : null, event.clientX, event.clientY); return; } // names of rows have no time
    if (!dragging && Math.hypot(x - begin.x, y - begin.y) < DRAG) return;
    if (!dragging) { dragging = true; actions.hover(null, 0, 0); place.setPointerCapture(event.pointerId); }
    if (begin.pan) { const by = (begin.x - x) / pane.width * pane.axis.span; pane.axis.show(begin.low + by, begin.low + by + pane.axis.span); }
    else { pane.draft = { low: Math.min(begin.time, timeAt(x)), high: Math.max(begin.time, timeAt(x)), ranks: pane.ranksBetween(begin.y + (pinned ? 0 : begin.scroll), y + (pinned ? 0 : pane.scroll.scrollTop), pinned) }; pane.askAbove(); }
  });

  const finish = (event: PointerEvent, kept: boolean): void => {
    fingers.delete(event.pointerId);
    const [x, y] = local(event), draft = pane.draft;
    pane.draft = null;
    if (begin && kept && dragging && draft) actions.select(draft.low, draft.high, draft.ranks);
    else if (begin && kept && !dragging) { actions.hover(null, 0, 0); actions.click(pane.hit(x, y, pinned)); } // the panel says what the tooltip said
    begin = null;
    dragging = false;
    pane.askAbove();
  };
  place.addEventListener("pointerup", (event) => finish(event, true));
  place.addEventListener("pointercancel", (event) => finish(event, false));
  place.addEventListener("pointerleave", () => { if (!begin) { pane.cursor = null; actions.hover(null, 0, 0); pane.askAbove(); } });
  place.addEventListener("dblclick", (event) => {
    if ((event.target as HTMLElement).closest("button")) return;
    const { select } = pane.store.view;
    if (select && select.high > select.low) pane.axis.show(select.low, select.high); else pane.axis.reset();
  });
}

const distance = (fingers: Map<number, { x: number; y: number }>): number => { const [a, b] = [...fingers.values()]; return Math.abs(a.x - b.x) || 1; };

// On the strip, a drag moves the window; outside of it, a drag chooses a new one.
function bindOverview<R extends TrackRow, V extends ShellView>(pane: TrackPane<R, V>): void {
  const place = byId("overview");
  let begin: { time: number; low: number; inside: boolean; y: number; x: number } | null = null;
  const timeOf = (event: PointerEvent): number => { const x = event.clientX - place.getBoundingClientRect().left - pane.left, { axis } = pane; return Math.min(axis.last, Math.max(axis.first, axis.first + x / pane.width * (axis.last - axis.first))); };
  place.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    pane.axis.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), (pane.axis.low + pane.axis.high) / 2);
  }, { passive: false });
  place.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const box = place.getBoundingClientRect(), time = timeOf(event), y = event.clientY - box.top, { axis } = pane;
    begin = { time, low: axis.low, inside: y > OVERVIEW || (!axis.whole && time >= axis.low && time <= axis.high), y, x: event.clientX };
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    if (!begin || Math.abs(event.clientX - begin.x) < DRAG) return;
    const { axis } = pane, time = timeOf(event);
    if (begin.y > OVERVIEW) { const by = (begin.x - event.clientX) / pane.width * axis.span; axis.show(begin.low + by, begin.low + by + axis.span); }
    else if (begin.inside) axis.show(begin.low + time - begin.time, begin.low + time - begin.time + axis.span);
    else axis.show(Math.min(begin.time, time), Math.max(begin.time, time));
  });
  place.addEventListener("pointerup", (event) => {
    if (begin && Math.abs(event.clientX - begin.x) < DRAG && !begin.inside) { const { axis } = pane; axis.show(begin.time - axis.span / 2, begin.time + axis.span / 2); }
    begin = null;
  });
  place.addEventListener("pointercancel", () => { begin = null; });
  place.addEventListener("dblclick", () => pane.axis.reset());
}
