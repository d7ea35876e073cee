/* SPDX-License-Identifier: MIT */
/*
 * viewer.js - the picture in viewer.html: a flame graph on a canvas, of all or of the callers and callees of one function;
 * a table, notes.
 *
 * Plain JavaScript, nothing fetched. The libraries that draw flame graphs know one value a frame: no interval, no
 * scopes to stand on, no second measure. What it draws from is the element "data": see report_html.c for its shape.
 */
"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const ROW = 19; // pixels of a frame
const NARROWEST = 0.6; // pixels: what is narrower is not drawn
const VALUE_LEAST = 12; // letters that a value behind a name takes

// ---- numbers ----
const bytesText = (n) => {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	let i = 0, a = Math.abs(n);
	while (a >= 1024 && i < 6) { a /= 1024; i++; }
	return (n < 0 ? "-" : "") + (i ? a.toPrecision(a >= 1000 ? 4 : 3) : a.toFixed(0)) + " " + units[i];
};
const countText = (n) => {
	let i = 0, a = Math.abs(n);
	while (a >= 999.5 && i < 4) { a /= 1000; i++; }
	return (n < 0 ? "-" : "") + (i ? a.toPrecision(3) : a.toFixed(0)) + ["", "k", "M", "G", "T"][i];
};
const valueText = (m, n) => m.unit === "bytes" ? bytesText(n) : countText(n);
const percentText = (part, whole) => !(whole > 0) ? "" : part > 0 && part / whole < 5e-5 ? "under 0.01 %" :
	(100 * part / whole).toFixed(part / whole < 0.1 ? 2 : 1) + " %";
// Bounds that look the same to the digits shown would say nothing.
const intervalText = (low, high, value, text) => text(low) !== text(high) ? `${text(low)} to ${text(high)} (95 %)` :
	`+-${text(Math.max(value - low, high - value)).replace("+", "")} (95 %)`;

// The interval of user/profile/estimate.c, formula by formula: two gamma distributions while few samples were seen.
const Z = 1.959963984540054, NORMAL_FROM = 30, SERIES_UP_TO = 400, NONE_SEEN = Math.log(20);
const lgamma = (x) => {
	const c = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
		-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
	if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lgamma(1 - x);
	let a = c[0];
	for (let i = 1; i < 9; i++) a += c[i] / (x - 1 + i);
	const t = x + 6.5;
	return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(a);
};
const gammaP = (a, x) => {
	const scale = Math.exp(-x + a * Math.log(x) - lgamma(a));
	if (x < a + 1) {
		let term = 1 / a, sum = term;
		for (let i = 1; i < 500 && Math.abs(term) > Math.abs(sum) * 1e-12; i++) { term *= x / (a + i); sum += term; }
		return sum * scale;
	}
	let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
	for (let i = 1; i < 500; i++) {
		const an = -i * (i - a);
		b += 2;
		d = 1 / (Math.abs(an * d + b) < 1e-300 ? 1e-300 : an * d + b);
		c = Math.abs(b + an / c) < 1e-300 ? 1e-300 : b + an / c;
		h *= d * c;
		if (Math.abs(d * c - 1) < 1e-12) break;
	}
	return 1 - scale * h;
};
// Of the normal distribution, to 1e-7 (Abramowitz and Stegun 26.2.17): far below a pixel.
const normalCdf = (z) => {
	const t = 1 / (1 + 0.2316419 * Math.abs(z));
	const q = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI) * t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 +
		t * (-1.821255978 + t * 1.330274429))));
	return z < 0 ? q : 1 - q;
};
const gammaCdf = (g, x) => x <= 0 ? 0 : g.shape > SERIES_UP_TO ?
	normalCdf((Math.cbrt(x / g.scale / g.shape) - 1 + 1 / (9 * g.shape)) * 3 * Math.sqrt(g.shape)) :
	gammaP(g.shape, x / g.scale);
const gammaOf = (mean, variance) => ({ shape: mean * mean / variance, scale: variance / mean });
const quantile = (a, b, p) => {
	const far = (g) => g.scale * (g.shape + 10 * Math.sqrt(g.shape) + 20);
	let low = 0, high = Math.max(far(a), far(b));
	for (let i = 0; i < 60; i++) {
		const mid = (low + high) / 2;
		if (gammaCdf(a, mid) + gammaCdf(b, mid) < 2 * p) low = mid; else high = mid;
	}
	return (low + high) / 2;
};
// { low, high } or null: not known. rate 0: everything was kept.
const interval = (sum, rate = data.rate) => {
	const { value: bytes, variance, count } = sum;
	if (isNaN(variance)) return null;
	if (!count && bytes <= 0 && rate > 1) return { low: bytes, high: NONE_SEEN * rate };
	if (variance <= 0 || bytes <= 0) return { low: bytes, high: bytes };
	const mean = variance / bytes, weight = Math.max(rate, mean);
	if (bytes / mean >= NORMAL_FROM && (rate <= 0 || variance / (weight * weight) >= NORMAL_FROM))
		return { low: bytes - Z * Math.sqrt(variance), high: bytes + Z * Math.sqrt(variance) };
	const seen = gammaOf(bytes, variance), more = gammaOf(bytes + weight, variance + weight * weight);
	return { low: count === 1 ? Math.max(bytes - mean, 0) : quantile(seen, more, 0.025),
		high: quantile(seen, more, 0.975) };
};
// What changed, from a sum before to one after; the formula is that of user/report/report_diff.c.
const change = (before, after) => {
	const value = after.value - before.value;
	const a = interval(before, data.sides.rates[0]), b = interval(after, data.sides.rates[1]);
	if (!a || !b) return { value, low: NaN, high: NaN };
	return { value, low: value - Math.hypot(after.value - b.low, a.high - before.value),
		high: value + Math.hypot(b.high - after.value, before.value - a.low) };
};

// What would move or hide letters: controls, and marks of the direction of writing.
const harmless = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
// Times as the reader writes them, in the reader's zone.
const localTimes = (text) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (utc) => {
	const at = new Date(utc), is_today = at.toDateString() === new Date().toDateString();
	return isNaN(at) ? utc : is_today ? at.toLocaleTimeString() : at.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
});
const said = document.querySelector("pre.said"); // lines as long as the window, not as a terminal
said.textContent = said.textContent.trim().replace(/\n +/g, " ");
if (data.sides) {
	data.sides.names = data.sides.names.map((name) => localTimes(harmless(name)));
	for (const node of [document.querySelector("h1"), said, document.querySelector("title")])
		node.textContent = localTimes(node.textContent);
}
for (const list of ["names", "threads", "processes", "notes"]) data[list] = data[list].map(harmless);
data.scopes = data.scopes.map((path) => path.map(harmless));
// Indexes come as differences, which are short: see report_html.c.
const parentOf = Int32Array.from(data.nodes.up, (up, i) => i - (up || i + 1));
for (let i = 1; i < data.samples.node.length; i++) data.samples.node[i] += data.samples.node[i - 1];

// ---- the tree ----
// Functions are names with a module; a group (a scope, a thread) is a function too, behind those of the file.
const groups = [{ key: "none", title: "none" }];
if (data.processes.length > 2) groups.push({ key: "process", title: "process" });
if (data.scopes.length > 1) groups.push({ key: "scope", title: "scope" });
if (data.threads.length > 2) groups.push({ key: "thread", title: "thread" });
// A moment of the time line is a measure like others, whose values are added up from lives when it is chosen.
const points = data.moments ? data.moments.points.map(([ns, bytes, words, at]) => ({ ns, bytes, words, at })) : [];
const MOMENT_ERRORS = 3; // in variances and counts
let momentMeasure = data.measures.findIndex((m) => m.key === "moment");
let moment = momentMeasure < 0 ? null : points.find((p) => p.at >= 0 && data.measures[momentMeasure].title === `in use at ${p.words}`); // of that measure
const fillMoment = (point) => {
	const { sample, first, last, bytes, variance, count } = data.moments.lives, cnt = data.samples.node.length;
	const values = new Array(cnt).fill(0), variances = new Array(cnt).fill(0), counts = new Array(cnt).fill(0);
	for (let i = 0, s = 0; i < sample.length; i++) {
		s += sample[i];
		if (first[i] > point.at || last[i] < point.at) continue;
		values[s] += bytes[i];
		variances[s] += variance[i];
		counts[s] += count[i];
	}
	if (momentMeasure < 0) momentMeasure = data.measures.push({ key: "moment", unit: "bytes", objects: -1,
		variance: data.measures[0].variance < 0 ? -1 : MOMENT_ERRORS, is_known: true }) - 1;
	moment = point;
	data.measures[momentMeasure].title = `in use at ${point.words}`;
	data.samples.values[momentMeasure] = values;
	data.samples.variances[MOMENT_ERRORS] = variances;
	data.samples.counts[MOMENT_ERRORS] = counts;
};
// A difference is shown as such, or one of its sides alone.
const sides = [{ key: "both", title: "difference" }, ...(data.sides ? data.sides.names : []).map((name, i) => ({ key: "ab"[i], title: `${"AB"[i]}: ${name}` }))];
const view = { measure: data.measures.findIndex((m) => m.key === data.opens), group: groups[1]?.key === "process" ? 1 : 0, side: 0, inverted: false,
	folded: true, focus: -1, at: 0, find: "" }; // focus: the function whose callers and callees are shown
if (view.measure < 0) view.measure = Math.max(data.measures.findIndex((m) => m.is_known), 0);
const funcCount = data.funcs.name.length;
const groupNames = [];
const funcName = (f) => f < funcCount ? data.names[data.funcs.name[f]] : groupNames[f - funcCount];
const funcModule = (f) => f < funcCount ? data.names[data.funcs.module[f]] : "";
const groupIds = new Map();
const groupId = (name) => {
	let id = groupIds.get(name);
	if (id === undefined) {
		id = funcCount + groupNames.length;
		groupIds.set(name, id);
		groupNames.push(name);
	}
	return id;
};
const groupPath = (s) => {
	if (groups[view.group].key === "scope") {
		const path = data.samples.scope[s];
		return path < 0 ? [groupId("(no scope)")] : data.scopes[path].map(groupId);
	}
	const [of, names, none] = groups[view.group].key === "thread" ? [data.samples.thread, data.threads, "(no thread)"] :
		[data.samples.process, data.processes, "(no process)"];
	return [groupId(of[s] < 0 ? none : names[of[s]])];
};

// The shapes of trees: { parent, func, leaf }, leaf: the node of each sample, -1: it is in none. cap: nodes at most; 0: not known.
const newShape = (cap) => {
	const [child, other, parent, func] = [1, 2, 3, 4].map(() => cap ? new Int32Array(cap) : []); // child: the newest of a node, other: the one before it
	let cnt = 0;
	const add = (at, f) => {
		parent[cnt] = at; func[cnt] = f; child[cnt] = other[cnt] = -1;
		return cnt++;
	};
	add(-1, -1);
	const step = (at, f) => {
		let c = child[at];
		while (c >= 0 && func[c] !== f) c = other[c];
		if (c >= 0) return c;
		c = add(at, f);
		other[c] = child[at];
		child[at] = c;
		return c;
	};
	return { parent, func, leaf: new Int32Array(data.samples.node.length), add, step };
};
const whole = { parent: parentOf, func: Int32Array.from(data.nodes.func), leaf: data.samples.node };
// Frames of allocators and standard libraries at the end of a stack count as the own function that called them, and a
// function stands once on a path.
let folded = null;
const foldShape = () => {
	const { parent, func } = whole, n = parent.length, t = newShape(n), to = new Int32Array(n), own = Uint8Array.from(data.funcs.own);
	const above = new Uint8Array(n), below = new Uint8Array(n); // has an own function there, or is one
	for (let i = n - 1; i > 0; i--) {
		below[i] |= own[func[i]];
		below[parent[i]] |= below[i];
	}
	for (let i = 1; i < n; i++) {
		const up = parent[i];
		let is_out = above[up] && !below[i];
		above[i] = above[up] | own[func[i]];
		for (let p = to[up]; p > 0 && !is_out; p = t.parent[p]) is_out = t.func[p] === func[i];
		to[i] = is_out ? to[up] : t.step(to[up], func[i]);
	}
	for (let s = 0; s < t.leaf.length; s++) t.leaf[s] = to[whole.leaf[s]];
	const cnt = to.reduce((a, b) => Math.max(a, b)) + 1;
	return { ...t, parent: t.parent.subarray(0, cnt), func: t.func.subarray(0, cnt) };
};
const baseShape = () => view.folded ? folded = folded || foldShape() : whole;
// The functions of a sample's stack, from the leaf.
const pathOf = (base, s) => {
	const path = [];
	for (let n = base.leaf[s]; n > 0; n = base.parent[n]) path.push(base.func[n]);
	return path;
};
const groupShape = (base) => {
	const t = newShape(0);
	for (let s = 0; s < t.leaf.length; s++) {
		let at = 0;
		if (view.group) for (const f of groupPath(s)) at = t.step(at, f);
		const path = pathOf(base, s);
		for (const f of view.inverted ? path : path.reverse()) at = t.step(at, f);
		t.leaf[s] = at;
	}
	return t;
};
// The root is the function, its callees are below it; its callers are below node CALLERS, which is nobody's child.
const CALLERS = 1;
const sandwichShape = (base) => {
	const t = newShape(0);
	t.callers = new Int32Array(t.leaf.length);
	t.add(0, view.focus);
	for (let s = 0; s < t.leaf.length; s++) {
		const path = pathOf(base, s), i = path.lastIndexOf(view.focus); // the outermost, as its total has it
		let callee = 0, caller = CALLERS;
		for (let k = i - 1; k >= 0; k--) callee = t.step(callee, path[k]);
		for (let k = i + 1; i >= 0 && k < path.length; k++) caller = t.step(caller, path[k]);
		t.leaf[s] = i < 0 ? -1 : callee;
		t.callers[s] = caller;
	}
	return t;
};

// Of a difference value and its like are of after, was has those of before, and a frame is as wide as the larger of
// both is, stack by stack.
let tree; // { parent, func, depth, value, count, variance, objects, own, width, was, first, next }
const sumUp = ({ parent, func, leaf, callers }) => {
	const m = data.measures[view.measure], samples = data.samples, n = parent.length, unlinked = callers ? CALLERS : 0;
	const sums = () => ({ value: new Float64Array(n), variance: new Float64Array(n), count: new Float64Array(n),
		objects: new Float64Array(n), own: new Float64Array(n) });
	const t = { parent, func, has_callers: !!callers, depth: new Uint16Array(n), ...sums(), was: data.sides && !view.side ? sums() : null,
		first: new Int32Array(n).fill(-1), next: new Int32Array(n).fill(-1), is_sorted: new Uint8Array(n) };
	const value = samples.values[view.measure], objects = m.objects < 0 ? null : samples.values[m.objects];
	const variance = m.variance < 0 ? null : samples.variances[m.variance];
	const count = m.variance < 0 ? null : samples.counts[m.variance];
	for (let s = 0; s < leaf.length; s++) {
		const is_before = data.sides && s < data.sides.before;
		if (leaf[s] < 0 || (view.side && is_before !== (view.side === 1))) continue;
		const to = t.was && is_before ? t.was : t;
		for (let at = leaf[s]; at >= 0; at = callers && at !== callers[s] ? callers[s] : -1) {
			to.value[at] += value[s];
			to.own[at] += value[s];
			to.variance[at] += variance && variance[s] !== null ? variance[s] : NaN;
			to.count[at] += count ? count[s] : 0;
			if (objects) to.objects[at] += objects[s];
		}
	}
	t.width = t.was ? t.own.map((own, i) => Math.max(own, t.was.own[i])) : t.value;
	// A child stands behind its parent: one walk from the end sums up, one from the begin knows depths.
	const addUp = (column) => { for (let i = n - 1; i > 0; i--) if (i !== unlinked) column[parent[i]] += column[i]; };
	for (const of of t.was ? [t, t.was] : [t]) for (const key of ["value", "variance", "count", "objects"]) addUp(of[key]);
	if (t.was) addUp(t.width);
	for (let i = 1; i < n; i++) {
		t.depth[i] = t.depth[parent[i]] + 1;
		if (i !== unlinked) { t.next[i] = t.first[parent[i]]; t.first[parent[i]] = i; }
	}
	return t;
};
// The first child of a node, of all its children the largest: they are sorted when they are first asked for, as few are ever seen.
const firstOf = (i) => {
	if (tree.is_sorted[i]) return tree.first[i];
	const list = [];
	for (let c = tree.first[i]; c >= 0; c = tree.next[c]) list.push(c);
	list.sort((a, b) => tree.width[b] - tree.width[a]).forEach((c, k) => { tree.next[c] = k + 1 < list.length ? list[k + 1] : -1; });
	tree.is_sorted[i] = 1;
	return tree.first[i] = list.length ? list[0] : -1;
};
const build = () => {
	const base = baseShape();
	tree = sumUp(view.focus >= 0 ? sandwichShape(base) : view.inverted || view.group ? groupShape(base) : base);
	view.at = 0;
	match();
};
const isCaller = (i) => {
	while (i > CALLERS) i = tree.parent[i];
	return tree.has_callers && i === CALLERS;
};
const nameOf = (i) => i ? funcName(tree.func[i]) : view.focus >= 0 ? funcName(view.focus) : "all";
const sumOf = (i, of = tree) => ({ value: of.value[i], variance: of.variance[i], count: of.count[i] });
// By how much a frame changed, and by more than chance?
const changeOf = (i) => change(sumOf(i, tree.was), sumOf(i));
const isSure = (c) => c.low > 0 || c.high < 0;
const changeText = (m, n) => (n > 0 ? "+" : "") + valueText(m, n);
// What the table and the search show of a node: what it holds, or what changed.
const shownOf = (i, key = "value") => tree[key][i] - (tree.was ? tree.was[key][i] : 0);
const shownText = (m, n) => tree.was ? changeText(m, n) : valueText(m, n);

// ---- what is searched: the frames that match, and what goes through them, each stack once ----
let matches = null, matched = 0, matchedCount = 0; // of functions
const match = () => {
	matches = null;
	if (!view.find) return;
	const wanted = view.find.toLowerCase(), hit = new Map();
	const fits = (f) => {
		let is = hit.get(f);
		if (is === undefined) {
			is = funcName(f).toLowerCase().includes(wanted) || funcModule(f).toLowerCase().includes(wanted) ||
				(f < funcCount && data.names[data.funcs.file[f]].toLowerCase().includes(wanted));
			hit.set(f, is);
		}
		return is;
	};
	const n = tree.parent.length, inside = new Uint8Array(n);
	matches = new Uint8Array(n);
	matched = 0;
	const found = new Set();
	for (let i = 1; i < n; i++) {
		matches[i] = fits(tree.func[i]) ? 1 : 0;
		inside[i] = inside[tree.parent[i]] | matches[i];
		if (matches[i]) found.add(tree.func[i]);
		if (matches[i] && !inside[tree.parent[i]]) matched += shownOf(i);
	}
	matchedCount = found.size;
	if (tree.has_callers) matched = NaN; // callers and callees of the same stacks
};

// ---- the picture ----
const canvas = $("picture"), tip = $("tip");
let drawn = []; // of each row: [x, width, node]...
let pick = -1; // by keyboard
const colors = {};
const readColors = () => {
	const style = getComputedStyle(document.documentElement);
	for (const name of ["ink", "dim", "page", "line", "hit", "own", "other", "group", "label", "more", "less", "same"])
		colors[name] = style.getPropertyValue("--" + name).trim();
};
const shade = (f) => {
	// The same name has the same shade in every picture.
	let hash = 0;
	const name = funcName(f);
	for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
	const [hue, saturation, light] = colors[f >= funcCount ? "group" : data.funcs.own[f] ? "own" : "other"].split(" ");
	return `hsl(${+hue + (hash & 15) - 8} ${saturation} ${parseFloat(light) + ((hash >> 4) & 7) - 3}%)`;
};
// Two colours, the stronger the larger the part that changed; what may be chance has neither.
const shadeChange = (i) => {
	const c = changeOf(i), part = tree.width[i] > 0 ? Math.min(Math.abs(c.value) / tree.width[i], 1) : 0;
	if (!isSure(c) && !isNaN(c.low)) return `hsl(${colors.same})`;
	const [hue, saturation, light] = colors[c.value > 0 ? "more" : "less"].split(" ");
	const [, , plain] = colors.same.split(" ");
	return c.value === 0 ? `hsl(${colors.same})` : `hsl(${hue} ${saturation} ${parseFloat(plain) + (parseFloat(light) -
		parseFloat(plain)) * (0.25 + 0.75 * part)}%)`;
};
const shades = new Map();
const draw = () => {
	const width = canvas.parentElement.clientWidth - 2 * parseFloat(getComputedStyle(document.body).paddingLeft) || 300;
	const ratio = window.devicePixelRatio || 1;
	const total = tree.width[view.at];
	// The rows below one, each frame within its caller's width.
	const below = (row) => {
		const rows = [];
		while (row.length && total > 0) {
			const next = [];
			for (const [x, , i] of row) {
				let at = x;
				for (let c = firstOf(i); c >= 0; c = tree.next[c]) {
					const w = width * tree.width[c] / total;
					if (w < NARROWEST) break; // the rest is narrower still
					next.push([at, w, c]);
					at += w;
				}
			}
			row = next;
			if (next.length) rows.push(next);
		}
		return rows;
	};
	const above = [];
	for (let i = view.at; i >= 0; i = tree.parent[i]) above.unshift([[0, width, i]]);
	const callers = tree.has_callers ? below([[0, width, CALLERS]]).reverse() : [];
	const rows = [...callers, ...above, ...below(above[above.length - 1])];
	drawn = rows;
	const height = rows.length * ROW + 1;
	canvas.style.height = height + "px";
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const c = canvas.getContext("2d");
	c.scale(ratio, ratio);
	c.font = "12px system-ui, sans-serif";
	c.textBaseline = "middle";
	const letter = c.measureText("abcdefghijklmnopqrstuvwxyz::_<>").width / 31;
	rows.forEach((row, y) => {
		for (const [x, w, i] of row) {
			const f = tree.func[i];
			const key = tree.was ? i : f;
			let color = i === 0 ? colors.line : shades.get(key);
			if (!color) shades.set(key, color = tree.was ? shadeChange(i) : shade(f));
			c.globalAlpha = !callers.length && y < above.length - 1 ? 0.55 : matches && !matches[i] && i ? 0.4 : 1;
			c.fillStyle = matches && matches[i] ? colors.hit : color;
			c.fillRect(x, y * ROW, Math.max(w - 0.6, 0.4), ROW - 1);
			c.globalAlpha = 1;
			if (i === pick) { c.strokeStyle = colors.hit; c.lineWidth = 2; c.strokeRect(x + 1, y * ROW + 1, Math.max(w - 2, 1), ROW - 3); }
			if (w < 4 * letter) continue;
			let name = nameOf(i);
			const room = Math.floor((w - 7) / letter), value = name.length + VALUE_LEAST <= room ? frameText(i) : "";
			const has_value = value && name.length + value.length + 3 <= room;
			if (name.length > room) name = name.slice(0, Math.max(room - 1, 1)) + "\u2026";
			c.fillStyle = matches && matches[i] ? "#fff" : colors.label;
			c.textAlign = "left";
			c.fillText(name, x + 4, y * ROW + ROW / 2, w - 6);
			c.textAlign = "right";
			if (has_value) c.fillText(value, x + w - 5, y * ROW + ROW / 2);
		}
	});
	say();
};
// What stands in a frame behind its name.
const frameText = (i) => {
	const m = data.measures[view.measure], percent = tree.was || !i ? "" : percentText(tree.value[i], tree.value[0]);
	return shownText(m, shownOf(i)) + (percent && "  " + percent);
};
// What stands above the picture: of the zoomed frame, or of the search.
const describeChange = (i) => {
	const m = data.measures[view.measure], c = changeOf(i);
	const parts = [`${valueText(m, tree.was.value[i])} \u2192 ${valueText(m, tree.value[i])}`, changeText(m, c.value)];
	if (m.variance < 0) return parts;
	if (c.low === c.high) return [...parts, "exact"];
	if (isNaN(c.low)) return [...parts, "significance unknown"];
	return [...parts, intervalText(c.low, c.high, c.value, (n) => changeText(m, n)),
		isSure(c) ? "beyond sampling noise" : "within sampling noise"];
};
const describe = (i) => {
	if (tree.was) return describeChange(i);
	// The intervals of a difference cover what differs: they say nothing of one side alone.
	const m = data.measures[view.measure], sum = sumOf(i), at = view.side ? null : interval(sum);
	const parts = [valueText(m, sum.value)];
	if (m.variance >= 0 && at)
		parts.push(at.low === at.high ? "exact" : intervalText(at.low, at.high, sum.value, (n) => valueText(m, n)));
	if (m.objects >= 0) parts.push(countText(tree.objects[i]) + " blocks");
	if (i && tree.value[0]) parts.push(percentText(sum.value, tree.value[0]) + (tree.has_callers ? " of this function" : " of all"));
	return parts;
};
const put = (where, ...parts) => {
	where.replaceChildren(...parts.map((part) => {
		if (part instanceof Node) return part;
		return document.createTextNode(part);
	}));
};
const bold = (text) => { const b = document.createElement("b"); b.textContent = text; return b; };
const small = (text) => { const s = document.createElement("small"); s.textContent = text; return s; };
const say = () => {
	const m = data.measures[view.measure];
	if (!m.is_known) { put($("where"), bold(m.title + ": unknown"), ". " + m.why); return; }
	const i = pick >= 0 ? pick : view.at;
	const parts = [bold(nameOf(i)), " " + m.title + ": " + describe(i).join(", ")];
	if (matches) parts.push(" \u2013 ", isNaN(matched) ? "" : `${shownText(m, matched)}${tree.was ? "" : ` (${percentText(matched, tree.value[0])})`} through `,
		`\u201c${view.find}\u201d: ${matchedCount} function${matchedCount === 1 ? "" : "s"}`);
	if (!(tree.width[0] > 0)) parts.push(" \u2013 nothing to draw");
	put($("where"), ...parts);
	$("sandwich").disabled = view.focus < 0 && !isFunction(i);
};
const isFunction = (i) => i > 0 && tree.func[i] < funcCount;
const nodeAt = (event) => {
	const box = canvas.getBoundingClientRect(), row = drawn[Math.floor((event.clientY - box.top) / ROW)];
	const x = event.clientX - box.left;
	if (!row) return -1;
	const found = row.find(([from, width]) => x >= from && x < from + width);
	return found ? found[2] : -1;
};
const showTip = (event) => {
	const i = nodeAt(event), m = data.measures[view.measure];
	tip.hidden = i <= 0;
	if (i <= 0) return;
	const f = tree.func[i], file = f < funcCount ? data.names[data.funcs.file[f]] : "";
	const own = shownOf(i, "own") ? `, itself ${shownText(m, shownOf(i, "own"))}` : "";
	put(tip, bold(funcName(f)), small([funcModule(f), file].filter((text) => text).join(" \u2013 ")),
		`${m.title}: ${describe(i).join(", ")}${own}`,
		...(view.at && !tree.was ? [small(percentText(tree.value[i], tree.value[view.at]) + " of the view")] : []));
	const box = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6)) + "px";
	tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
};
// Show the callers and callees of a function; -1: all stacks again.
const focusOn = (f) => {
	view.focus = f;
	$("sandwich").setAttribute("aria-pressed", f >= 0);
	rebuild();
};
const zoom = (i) => {
	if (i < 0) return;
	tip.hidden = true;
	if (tree.has_callers) { if (isFunction(i)) focusOn(tree.func[i]); return; }
	view.at = i;
	pick = -1;
	draw();
};
const reset = () => { if (view.focus >= 0) focusOn(-1); else zoom(0); };
const move = (key) => {
	const at = pick >= 0 ? pick : view.at, is_up = isCaller(at) || (at === 0 && key === "ArrowUp"); // callers stand upside down
	const head = is_up && !at ? CALLERS : at, parent = tree.parent[at] === CALLERS && tree.has_callers ? 0 : tree.parent[at];
	let next = -1;
	if (key === (is_up ? "ArrowUp" : "ArrowDown")) next = is_up && !at && !tree.has_callers ? -1 : firstOf(head);
	else if (key === "ArrowUp" || key === "ArrowDown") next = parent;
	else if (key === "ArrowRight") next = tree.next[at];
	else if (at > 0) for (let c = tree.first[tree.parent[at]]; c >= 0 && c !== at; c = tree.next[c]) next = c;
	if (next < 0) return;
	pick = next;
	if (!tree.has_callers && tree.depth[pick] < tree.depth[view.at]) view.at = pick;
	draw();
};

// ---- the table: a function with what it has itself and what goes through it, a stack counted once ----
// Whatever the graph shows, it is of all stacks.
let sortBy = "self";
const fillTable = () => {
	const m = data.measures[view.measure], self = new Map(), total = new Map(), shown = tree;
	tree = sumUp(baseShape());
	const above = (i, f) => { for (let p = tree.parent[i]; p > 0; p = tree.parent[p]) if (tree.func[p] === f) return true; return false; };
	for (let i = 1; i < tree.parent.length; i++) {
		const f = tree.func[i];
		if (shownOf(i, "own")) self.set(f, (self.get(f) || 0) + shownOf(i, "own"));
		if (!above(i, f)) total.set(f, (total.get(f) || 0) + shownOf(i));
	}
	const all = tree.value[0], has_percent = !tree.was;
	tree = shown;
	const row = document.querySelector("#table thead tr"), body = document.querySelector("#table tbody");
	row.replaceChildren(...[["self", "itself"], ["total", "with callees"], ["name", "function"]].flatMap(([key, title]) => {
		const th = document.createElement("th"), button = document.createElement("button");
		button.textContent = title + (sortBy === key ? " \u25be" : "");
		button.onclick = () => { sortBy = key; fillTable(); };
		th.append(button);
		return key === "name" || !has_percent ? [th] : [th, document.createElement("th")];
	}));
	const rows = [...total.keys()];
	const size = (n) => has_percent ? n || 0 : Math.abs(n || 0);
	const by = { self: (a, b) => size(self.get(b)) - size(self.get(a)) || by.total(a, b), total: (a, b) => size(total.get(b)) - size(total.get(a)),
		name: (a, b) => funcName(a) < funcName(b) ? -1 : 1 };
	rows.sort(by[sortBy]);
	body.replaceChildren(...rows.slice(0, 500).map((f) => {
		const tr = document.createElement("tr"), name = document.createElement("button");
		const cells = [self.get(f) || 0, total.get(f)].flatMap((n) => has_percent ? [shownText(m, n), percentText(n, all)] : [shownText(m, n)]);
		name.textContent = funcName(f);
		name.title = "its callers and callees";
		name.onclick = () => { show("picture"); focusOn(f); };
		for (const text of [...cells, name]) {
			const td = document.createElement("td");
			td.append(text);
			tr.append(td);
		}
		return tr;
	}));
};

// ---- the time line ----
const time = $("time");
const timePart = (ns) => (ns - data.moments.begin_ns) / (data.moments.end_ns - data.moments.begin_ns || 1);
// The point that is shown: -1: what is shown is of no moment.
const shownPoint = () => points.findIndex((p) => view.measure === momentMeasure ? p === moment : p.at === data.measures[view.measure].key);
const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
const sayPoint = (i, how) => put($("time-said"), bold(`${valueText(data.measures[0], points[i].bytes)} at ${points[i].words}`), how);
const drawTime = () => {
	if (!points.length) return;
	const i = shownPoint(), p = points[i];
	cursor.style.display = p ? "" : "none";
	if (!p) { put($("time-said"), "Click a moment to see what was in use then."); return; }
	for (const key of ["x1", "x2"]) cursor.setAttribute(key, 100 * timePart(p.ns) + "%");
	time.setAttribute("aria-valuenow", i);
	time.setAttribute("aria-valuetext", `${valueText(data.measures[0], p.bytes)} at ${p.words}`);
	sayPoint(i, " is shown. Click another moment, or use the arrow keys.");
};
const goTo = (i) => {
	const p = points[i];
	if (p.at >= 0) fillMoment(p);
	view.measure = p.at >= 0 ? momentMeasure : data.measures.findIndex((m) => m.key === p.at);
	fillChoices();
	const at = view.inverted || view.group || view.focus >= 0 ? 0 : view.at; // these trees are not the same ones
	rebuild();
	if (at) zoom(at);
};
const pointAt = (event) => {
	const box = time.getBoundingClientRect(), part = (event.clientX - box.left) / box.width;
	return points.reduce((best, p, i) => Math.abs(timePart(p.ns) - part) < Math.abs(timePart(points[best].ns) - part) ? i : best, 0);
};
const beginTime = () => {
	if (!points.length) return;
	for (const [key, value] of [["role", "slider"], ["tabindex", 0], ["aria-valuemin", 0], ["aria-valuemax", points.length - 1]]) time.setAttribute(key, value);
	for (const [key, value] of [["class", "cursor"], ["y1", 0], ["y2", time.getAttribute("height") - 20]]) cursor.setAttribute(key, value);
	time.append(cursor);
	time.onclick = (event) => goTo(pointAt(event));
	time.onpointermove = (event) => sayPoint(pointAt(event), "");
	time.onpointerleave = drawTime;
	time.onkeydown = (event) => {
		const at = shownPoint(), to = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, points.length - 1), Home: 0, End: points.length - 1 }[event.key];
		if (to === undefined) return;
		event.preventDefault();
		if (to !== at) goTo(to);
	};
};

// ---- the controls ----
const show = (what) => {
	for (const name of ["picture", "table", "notes"]) {
		$(name).hidden = name !== what;
		$("tab-" + name).setAttribute("aria-selected", name === what);
	}
	tip.hidden = true;
	if (what === "table") fillTable();
	if (what === "picture") draw();
};
const shown = () => ["picture", "table", "notes"].find((name) => !$(name).hidden);
const rebuild = () => { pick = -1; shades.clear(); build(); show(shown() || "picture"); say(); drawTime(); remember(); };
// A view can be sent: its choice stands behind the '#'.
const remember = () => history.replaceState(null, "", "#" + new URLSearchParams({ m: data.measures[view.measure].key,
	g: groups[view.group].key,
	...(moment && view.measure === momentMeasure ? { t: moment.ns } : {}), ...(view.side ? { s: sides[view.side].key } : {}), ...(view.inverted ? { i: 1 } : {}), ...(view.folded ? {} : { u: 1 }),
	...(view.focus >= 0 ? { f: funcName(view.focus) } : {}), ...(view.find ? { q: view.find } : {}) }));
const recall = () => {
	const said = new URLSearchParams(location.hash.slice(1));
	const said_moment = points.find((p) => p.at >= 0 && p.ns === +said.get("t"));
	if (said_moment) fillMoment(said_moment);
	const m = data.measures.findIndex((one) => one.key === said.get("m")), g = groups.findIndex((one) => one.key === said.get("g"));
	if (m >= 0) view.measure = m;
	if (g >= 0) view.group = g;
	view.side = data.sides ? Math.max(sides.findIndex((one) => one.key === said.get("s")), 0) : 0;
	view.inverted = said.has("i");
	view.folded = !said.has("u");
	view.focus = said.has("f") ? data.funcs.name.findIndex((name) => data.names[name] === said.get("f")) : -1;
	view.find = said.get("q") || "";
};
const choices = (select, list, at, on) => {
	select.replaceChildren(...list.map((one, i) => new Option(one.title, i, false, i === at)));
	select.onchange = () => { on(+select.value); rebuild(); };
};
recall();
const fillChoices = () => choices($("measure"), data.measures, view.measure, (i) => { view.measure = i; });
fillChoices();
choices($("group"), groups, view.group, (i) => { view.group = i; view.focus = -1; });
choices($("side"), sides, view.side, (i) => { view.side = i; });
$("side").parentElement.hidden = !data.sides;
// The page of the process shows the same two moments again.
if ($("back") && location.search.includes("from=") && !location.search.includes("from_pid=")) {
	const asked = new URLSearchParams(location.search), side = (key) => Date.parse(asked.get(key)) / 1000 || asked.get(key);
	if (side("from") && side("to")) $("back").hash = `from=${side("from")}&to=${side("to")}`;
}
if (groups.length < 2) $("group").parentElement.hidden = true;
$("search").value = view.find;
const press = () => {
	for (const [name, is_on] of [["invert", view.inverted], ["fold", view.folded], ["sandwich", view.focus >= 0]]) $(name).setAttribute("aria-pressed", is_on);
};
$("invert").onclick = () => { view.inverted = !view.inverted; view.focus = -1; press(); rebuild(); };
$("fold").onclick = () => { view.folded = !view.folded; press(); rebuild(); };
$("sandwich").onclick = () => focusOn(view.focus >= 0 ? -1 : tree.func[pick > 0 ? pick : view.at]);
$("out").onclick = reset;
$("search").oninput = () => { view.find = $("search").value; match(); draw(); remember(); };
for (const name of ["picture", "table", "notes"]) $("tab-" + name).onclick = () => show(name);
canvas.onmousemove = showTip;
canvas.onmouseleave = () => { tip.hidden = true; };
canvas.onclick = (event) => { canvas.focus({ preventScroll: true }); zoom(nodeAt(event)); };
document.onkeydown = (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	if (event.target.id === "search") { if (event.key === "Escape") canvas.focus(); return; }
	if (event.target.tagName === "SELECT") return;
	if (event.key === "/") { event.preventDefault(); $("search").focus(); }
	else if (event.key === "i") $("invert").click();
	else if (event.key === "f") $("fold").click();
	else if (event.key === "s") $("sandwich").click();
	else if (event.key === "Escape") reset();
	else if (event.key === "Backspace" && view.at) zoom(tree.parent[view.at]);
	else if (event.key === "Enter" && pick >= 0 && event.target === canvas) zoom(pick);
	else if (event.key.startsWith("Arrow") && event.target === canvas) { event.preventDefault(); move(event.key); }
};
onbeforeprint = fillTable; // paper has both
onresize = () => { if (shown() === "picture") draw(); };
// Paper is light, whatever the screen is.
for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).onchange = () => { readColors(); shades.clear(); draw(); };
put($("notes").firstElementChild, ...data.notes.map((text) => { const li = document.createElement("li"); li.textContent = text; return li; }));
onhashchange = () => { // a link of the page that shows this one in a frame
	recall();
	fillChoices();
	$("group").value = view.group;
	$("side").value = view.side;
	$("search").value = view.find;
	press();
	rebuild();
};
if (window.parent !== window) document.querySelector("nav")?.setAttribute("hidden", "");
if ($("plain")) $("plain").hidden = true;
$("bar").hidden = false;
$("legend").hidden = !!data.sides;
press();
readColors();
build();
show("picture");
beginTime();
drawTime();
// For tests and for the curious: what is drawn, and the sums behind it.
window.heaptap = { view, tree: () => tree, drawn: () => drawn, interval, change: changeOf, shade: shadeChange, name: funcName, zoom, focusOn, rebuild, points,
	countText, percentText, intervalText };
})();
