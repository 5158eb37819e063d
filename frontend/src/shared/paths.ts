// Names of files where there is little room: as much of a path as tells it from others.

const PATH = /(?:\/[^\s/,;:]+){4,}/g; // in a sentence
const LONG = 36; // characters; shorter paths stay whole

const ending = (path: string, parts: number): string => path.split("/").slice(-parts).join("/");

// A sentence whose long paths keep their last two parts; its whole belongs into a title.
export const shortPaths = (text: string): string => text.replace(PATH, (path) => path.length > LONG ? `…/${ending(path, 2)}` : path);

// The same for sentences that stand together: those that would become equal stay whole.
export function shortTitles(texts: string[]): (text: string) => string {
  const meant = new Map<string, string>(), taken = new Set<string>();
  for (const text of texts) { const short = shortPaths(text), other = meant.get(short); if (other !== undefined && other !== text) taken.add(short); meant.set(short, text); }
  return (text) => { const short = shortPaths(text); return taken.has(short) ? text : short; };
}

export function shortName(path: string, most = 34): string {
  const name = path.slice(path.lastIndexOf("/") + 1) || path;
  return name.length > most ? `${name.slice(0, most - 13)}…${name.slice(-11)}` : name;
}

// Names of files, with the folder where names are equal.
export function shortNames(paths: string[], most = 34): (path: string) => string {
  const times = new Map<string, number>();
  for (const path of new Set(paths)) { const name = shortName(path, most); times.set(name, (times.get(name) ?? 0) + 1); }
  return (path) => {
    const name = shortName(path, most), parts = path.split("/").filter(Boolean);
    if ((times.get(name) ?? 0) < 2 || parts.length < 2) return name;
    const rest = paths.filter((other) => other !== path && shortName(other, most) === name);
    let length = 2;
    while (length < parts.length && rest.some((other) => ending(other, length) === ending(path, length))) length += 1;
    return length < 4 ? ending(path, length) : `${parts[parts.length - length]}/…/${parts[parts.length - 1]}`;
  };
}
