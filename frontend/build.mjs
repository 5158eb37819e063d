// Bundles the pages' scripts and style sheets into assets that are committed; `--test` runs the unit tests.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";

const option = (name, standard) => {
  const place = process.argv.indexOf(name);
  return place < 0 ? standard : process.argv[place + 1];
};
const here = (path) => new URL(path, import.meta.url).pathname;
const common = { bundle: true, target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning", minify: true };

if (process.argv.includes("--test")) {
  const files = readdirSync(here("test")).filter((name) => name.endsWith(".test.ts")).map((name) => here(`test/${name}`));
  const place = here(".test-build");
  rmSync(place, { recursive: true, force: true });
  await build({ ...common, entryPoints: files, outdir: place, format: "esm", platform: "node", outExtension: { ".js": ".mjs" } });
  const made = readdirSync(place).map((name) => `${place}/${name}`);
  process.exit(spawnSync(process.execPath, ["--test", ...made], { stdio: "inherit" }).status ?? 1);
}
const place = option("--out", here("../src/ioprism/reports/to_html/assets"));
// A page is a folder beside shared/ with an entry and a style sheet of its name.
for (const name of readdirSync(here("src")).filter((one) => one !== "shared")) {
  await build({ ...common, entryPoints: [here(`src/${name}/${name}.ts`)], outfile: `${place}/${name}.js`, format: "iife" });
  await build({ ...common, entryPoints: [here(`src/${name}/${name}.css`)], outfile: `${place}/${name}.css` });
}
