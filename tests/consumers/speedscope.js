// SPDX-License-Identifier: MIT
// speedscope.js FILE...: each is as speedscope's own schema wants it, and what that cannot say: indexes of frames that are
// there, a weight for each stack, weights that add up. A line for each profile in it: name, unit, total.
const fs = require("fs");
const path = require("path");
const Ajv = require("ajv");

const release = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist", "release");
const schema = JSON.parse(fs.readFileSync(path.join(release, "file-format-schema.json"), "utf8"));
const validate = new Ajv({ strict: false }).compile(schema);
const must = (holds, what) => {
	if (!holds) throw new Error(what);
};

for (const name of process.argv.slice(2)) {
	const file = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fs.readFileSync(name)));
	must(validate(file), `${name}: ${JSON.stringify(validate.errors)}`);
	must(file.activeProfileIndex < file.profiles.length, `${name}: no profile`);
	for (const p of file.profiles) {
		must(p.type === "sampled" && p.samples.length === p.weights.length, `${name}: stacks and weights differ`);
		for (const stack of p.samples)
			must(stack.length && stack.every((i) => Number.isInteger(i) && i >= 0 && i < file.shared.frames.length),
				`${name}: a frame that is not there`);
		const sum = p.weights.reduce((a, b) => a + b, 0);
		must(p.weights.every((w) => w > 0) && sum === p.endValue - p.startValue, `${name}: the weights do not add up`);
		console.log(p.name, p.unit, sum);
	}
}
