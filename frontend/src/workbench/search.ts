// What the search box finds: files, functions, ranks, hosts, phases and causes by a part of their name.
import type { Match } from "../shared/search.ts";
import type { Job } from "./model.ts";

const MOST = 40;
export interface SearchActions { show: (name: string) => void; rank: (rank: number) => void; phase: (number: number) => void; filter: (text: string) => void }

export function matchesOf(job: Job, text: string, actions: SearchActions): Match[] {
  const wanted = text.trim().toLowerCase(), found: Match[] = [];
  if (!wanted) return found;
  const put = (kind: string, name: string, run: () => void): boolean => { found.push({ kind, text: name, run }); return found.length >= MOST; };
  const number = wanted.match(/^(?:rank\s*)?(\d+)$/);
  if (number && Number(number[1]) < job.ranks && put("rank", job.rankName(Number(number[1])), () => actions.rank(Number(number[1])))) return found;
  job.data.hosts.names.forEach((host) => { if (found.length < 10 && host.toLowerCase().includes(wanted)) put("host", host, () => actions.filter(host)); });
  for (const name of job.marks.functions) if (name.toLowerCase().includes(wanted) && put("function", name, () => actions.show(`fn:${name}`))) return found;
  if (!job.marks.functions.length) for (const name of job.data.operations) if (name.includes(wanted) && put("calls", name, () => actions.show(`fn:${name}`))) return found;
  const phase = wanted.match(/^phase\s*(\d+)$/);
  if (phase && Number(phase[1]) >= 1 && Number(phase[1]) <= job.phases().length) put("phase", `phase ${phase[1]}`, () => actions.phase(Number(phase[1]) - 1));
  for (const one of [...(job.data.diagnosis?.causes ?? []), ...job.data.findings]) if (one.show && one.title.toLowerCase().includes(wanted) && put("finding", one.title, () => actions.show(one.id))) return found;
  for (const [file, name] of Object.entries(job.data.files)) if (name.toLowerCase().includes(wanted) && put("file", name, () => actions.show(`file:${file}`))) return found;
  return found;
}
