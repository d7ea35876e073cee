// SPDX-License-Identifier: MIT
// decode.js - decodes a profile with npm's pprof-format and prints one line for each sample:
//   values|labels|root;...;leaf
// then "types|...", "mapping|...", "comment|...". Usage: decode.js FILE, NODE_PATH set.
const fs = require("fs");
const zlib = require("zlib");
const { Profile } = require("pprof-format");

const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[2])));
const text = (i) => p.stringTable.strings[Number(i)];
const byId = (list) => new Map(list.map((x) => [Number(x.id), x]));
const locations = byId(p.location);
const functions = byId(p.function);

for (const s of p.sample) {
  const names = [];
  for (const id of s.locationId)
    for (const line of locations.get(Number(id)).line)
      names.push(text(functions.get(Number(line.functionId)).name));
  const labels = s.label.map((l) => `${text(l.key)}=${text(l.str)}`);
  console.log([s.value.map(Number).join(","), labels.join(","), names.reverse().join(";")].join("|"));
}
console.log("types|" + p.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`).join(","));
console.log("default|" + text(p.defaultSampleType));
console.log("period|" + `${text(p.periodType.type)}/${text(p.periodType.unit)} ${p.period}`);
console.log("time|" + p.timeNanos);
for (const m of p.mapping)
  console.log(`mapping|${m.id}|${text(m.filename)}|${text(m.buildId)}|${m.memoryStart}|${m.memoryLimit}`);
for (const c of p.comment) console.log("comment|" + text(c));
