import assert from "node:assert/strict";
import { test } from "node:test";
import { shortName, shortNames, shortPaths, shortTitles } from "../src/shared/paths.ts";

test("long paths in sentences keep what tells files apart", () => {
  assert.equal(shortPaths("writes to /gpfs/alpine/scratch/user/run-1662725/out/fields_1.h5, in pieces"), "writes to …/out/fields_1.h5, in pieces");
  assert.equal(shortPaths("in /scratch/a/b/c.h5: 2 files"), "in /scratch/a/b/c.h5: 2 files");
  assert.equal(shortPaths("58.6 s of 9/10, https://host/a"), "58.6 s of 9/10, https://host/a");
});

test("sentences that would become equal stay whole", () => {
  const [a, b, c] = ["run-1", "run-2", "run-3/out"].map((run) => `writes to /gpfs/alpine/scratch/user/project/${run}/part/x.h5`), short = shortTitles([a, b, "y"]);
  assert.deepEqual([short(a), short(b)], [a, b]);
  assert.equal(shortTitles([a, a])(a), "writes to …/part/x.h5");
  assert.equal(shortTitles([c])(c), "writes to …/part/x.h5");
});

test("files of one name are told apart by as many folders as it takes", () => {
  const paths = ["/proc/478/net/route", "/proc/477/net/route", "/etc/hosts", "/a/1/x/y/z/data", "/a/2/x/y/z/data"], short = shortNames(paths);
  assert.deepEqual(paths.map(short), ["478/net/route", "477/net/route", "hosts", "1/…/data", "2/…/data"]);
  assert.equal(shortNames(["data", "/data"])("data"), "data");
  assert.equal(shortName("a_very_long_name_of_a_file_that_has_no_room.nc", 20), "a_very_…_no_room.nc".slice(0, 7) + "…" + "has_no_room.nc".slice(-11));
});
