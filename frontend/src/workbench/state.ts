// What the workbench shows beside what every page shows.
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";

export interface View extends ShellView {
  show: string; // a cause, finding, file, function, rank or target that is highlighted
  call: string; // the pinned call
  colour: string;
  layer: string; // on which details are summed; empty: the main one
  log: boolean;
  sort: string;
  group: string;
  rows: string; // height of rank rows
  filter: string; // ranks that have rows
  proof: string; // the cause whose slow group is shown beside a peer
}

export const COLOURS = ["operation", "function", "file", "size", "duration", "bytes"] as const;
export const STANDARD: View = {
  ...SHELL_VIEW, tab: "details", show: "", call: "", colour: "operation", layer: "", log: false, sort: "rank", group: "auto", rows: "auto", filter: "", proof: "",
};
export const LINK = new Link(STANDARD, { colour: COLOURS, sort: ["rank", "time", "late", "bytes"], group: ["auto", "host", "none"], rows: ["auto", "thin", "tall"] });
