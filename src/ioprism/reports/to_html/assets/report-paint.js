// What colour a call has: by operation, request size, file or duration. Ordered things get ordered colours.
const SIZE_LIMITS = [100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824];
const SIZE_NAMES = ["up to 100 B", "1 KiB", "10 KiB", "100 KiB", "1 MiB", "4 MiB", "10 MiB", "100 MiB", "1 GiB", "larger"];
const TIME_LIMITS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10];
const TIME_NAMES = ["up to 10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "longer"];
const LIGHT_RAMP = [[47, 14, 97], [120, 28, 109], [188, 55, 84], [229, 107, 43], [246, 178, 60]];
const DARK_RAMP = [[128, 90, 213], [190, 90, 190], [235, 100, 130], [250, 150, 80], [252, 214, 110]];
const NEUTRAL = "--rest";

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

function rgb(name) {
  const text = colour(name), n = parseInt(text.slice(1), 16);
  return [n >> 16 & 255, n >> 8 & 255, n & 255];
}

function ramp(steps) {
  const stops = isDark() ? DARK_RAMP : LIGHT_RAMP;
  return Array.from({ length: steps }, (_, i) => {
    const at = i / Math.max(1, steps - 1) * (stops.length - 1.0001), low = Math.floor(at), part = at - low;
    return stops[low].map((value, c) => Math.round(value + part * (stops[low + 1][c] - value)));
  });
}

function binOf(limits, value) {
  let bin = 0;
  while (bin < limits.length && value > limits[bin]) bin += 1;
  return bin;
}

const OPERATION_GROUPS = ["read", "write", "open, close, stat", "sync", "seek and other"];
const GROUP_OF = { read: 0, write: 1, open: 2, close: 2, stat: 2, metadata: 2, sync: 3 };

const PAINTS = {
  operation: {
    title: "operation",
    names: () => OPERATION_GROUPS,
    colours: () => ["--c1", "--c2", "--c3", "--c4", "--c5"].map(rgb),
    of(marks) {
      const group = data.operations.map((name) => GROUP_OF[name] === undefined ? 4 : GROUP_OF[name]);
      return (i) => group[marks.operation[i]];
    },
  },
  size: {
    title: "request size",
    names: () => [...SIZE_NAMES, "no data"],
    colours: () => [...ramp(SIZE_NAMES.length), rgb(NEUTRAL)],
    of: (marks) => (i) => movesBytes(marks, i) ? binOf(SIZE_LIMITS, marks.bytes[i] / Math.max(1, callsOf(marks, i))) : SIZE_NAMES.length,
  },
  duration: {
    title: "duration",
    names: () => TIME_NAMES,
    colours: () => ramp(TIME_NAMES.length),
    of: (marks) => (i) => binOf(TIME_LIMITS, busyOf(marks, i) / Math.max(1, callsOf(marks, i))),
  },
  file: {
    title: "file",
    names: (marks) => [...topFiles(marks).map((file) => shortName(fileName(file))), "other files"],
    colours: (marks) => [...topFiles(marks).map((_, n) => rgb(`--f${n + 1}`)), rgb(NEUTRAL)],
    of(marks) {
      const top = topFiles(marks), place = new Map(top.map((file, n) => [file, n]));
      return (i) => { const found = place.get(marks.file[i]); return found === undefined ? top.length : found; };
    },
  },
};

function fileName(file) {
  if (file < 0) return "several files, or none";
  const name = data.files[file];
  return name === undefined ? `file ${file}` : name;
}

function shortName(path) {
  const name = path.slice(path.lastIndexOf("/") + 1) || path;
  return name.length > 28 ? `${name.slice(0, 16)}…${name.slice(-10)}` : name;
}

// The eight files that take most time.
function topFiles(marks) {
  if (marks.top) return marks.top;
  const spent = new Map();
  for (let i = 0; i < marks.count; i += 1) {
    if (marks.file[i] >= 0) spent.set(marks.file[i], (spent.get(marks.file[i]) || 0) + busyOf(marks, i));
  }
  marks.top = [...spent].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([file]) => file);
  return marks.top;
}

function categorise(marks, chosen) {
  const paint = PAINTS[chosen], of = paint.of(marks), found = new Uint8Array(marks.count);
  for (let i = 0; i < marks.count; i += 1) found[i] = of(i);
  return found;
}
