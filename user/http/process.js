/* SPDX-License-Identifier: MIT */
/*
 * process.js - the page of one process: what it holds, a chart of that over time within what is resident, what changed within
 * a span of the chart, what grows, and what was saved.
 *
 * The tables of what grows come with the page (report_growth_html.c), as they take the server a while: they are fetched again
 * once a minute only.
 */
"use strict";
(() => {
const { el, svg, setText, bytes, signedBytes, percent, count } = page;
const app = document.getElementById("app"), stacks = document.getElementById("stacks");
const STACKS_MS = 60000, ROWS = 20;
let now; // the data
const put = (node, key, ...content) => { // only if it is another one
	if (node.dataset.key === key) return;
	node.dataset.key = key;
	node.replaceChildren(...content.flat().filter(Boolean));
};

// ---- head and cards ----
const head = el("div", { class: "head" }), path = el("p", { class: "path" }), notes = el("div"), cards = el("div", { class: "cards two" });
const card = (title, value, said, kind) => el("div", { class: "card " + (kind || "") }, el("span", {}, title), el("b", {}, value), el("small", { title: said }, said));
const errorText = (p) => p.inuse_error_bytes > 0 ? `\u00b1 ${bytes(1.96 * p.inuse_error_bytes)}` : "exact";
const drawHead = () => {
	const p = now.process, list = page.badges(p), g = p.growth;
	const is_known = p.inuse_bytes !== undefined;
	put(head, JSON.stringify([p.name, list]), el("h1", {}, p.name || "(no name)"), el("small", {}, `PID ${p.pid}`),
		list.map(([text, kind, why]) => el("span", { class: "badge " + kind, title: why }, text)));
	setText(path, [p.exe, p.container && "container " + p.container.slice(0, 12), p.cgroup && "control group " + p.cgroup].filter(Boolean).join(" \u00b7 "));
	put(notes, JSON.stringify([list, now.is_paused]), now.is_paused && el("p", { class: "banner" }, "Recording is paused: SIGUSR1 removed all probes, SIGUSR2 attaches them again."),
		list.filter(([, kind]) => kind !== "good").map(([text, kind, why]) => el("p", { class: "banner " + kind }, el("b", {}, text + ". "), why)));
	put(cards, JSON.stringify(p),
		card("In use", is_known ? bytes(p.inuse_bytes) : "unknown", is_known ? `${errorText(p)} in ${count(p.inuse_objects || 0)} blocks` : "see above", is_known ? "" : "note"),
		card("Resident", bytes(p.rss_bytes || 0), is_known && p.rss_bytes ? `in use: ${percent(p.inuse_bytes / p.rss_bytes)} of it` : ""),
		p.limit_bytes ? card("Control group", percent(page.limitShare(p)), `of its limit of ${bytes(p.limit_bytes)}`, page.isNear(p) ? "bad" : "") :
			card("Control group", "no limit", ""),
		card("Growth", !g ? "not yet" : g.trend === "steady" ? "steady" : signedBytes(g.bytes_per_min),
			!g ? "after two minutes" : `${g.trend === "steady" ? "" : "per minute, "}${page.trends[g.trend][0]} over ${page.span(60 * g.minutes)}`, g && g.trend === "grows" ? "bad" : ""),
		card("Allocated", bytes(p.alloc_bytes || 0), "since heaptap began to track it"),
		card("Probe cost", p.overhead === undefined ? "not yet" : percent(p.overhead), `of its CPU time${p.step ? `, ${p.step}` : ""}`));
};

// ---- the chart ----
const MARGIN = { left: 68, right: 14, top: 24, bottom: 24 };
const picture = svg("svg", { tabindex: "0", role: "img", "aria-label":
	"In use over time. Arrow keys move along it, with Shift they choose a span, Enter shows what changed in it." });
const said = el("div", { class: "chart-said", "aria-live": "polite" }), legend = el("div", { class: "legend" }), bandLegend = el("div", { class: "legend bands" });
const chart = { range: "hour", is_inuse_only: false, is_folded: false, points: [], bands: [], times: [], cursor: -1, from: null, to: null };
const niceStep = (most) => {
	for (let unit = 1; ; unit *= 1024) for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500]) if (n * unit * 4.5 >= most) return n * unit;
};
const timeStep = (ms) => [10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 21600].map((s) => 1000 * s).find((s) => ms / s <= 7) || 43200000;
// { t, inuse, resident, error }: the interval is as wide as now's, in proportion to the root of what is in use.
const readPoints = () => {
	const past = now[chart.range], p = now.process;
	if (!past) return [];
	const n = past.inuse.length, scale = p.inuse_bytes > 0 && p.inuse_error_bytes > 0 ? 1.96 * p.inuse_error_bytes / Math.sqrt(p.inuse_bytes) : 0;
	return past.inuse.map((inuse, i) => ({ t: now.past_until_ms - (n - 1 - i) * past.step_s * 1000, inuse, resident: past.resident[i],
		error: inuse === null ? 0 : scale * Math.sqrt(inuse) }));
};
// Losses are counted, not timed: the chart knows of those that come while it is looked at.
const losses_seen = [];
let lost = -1;
const watchLosses = () => {
	const cnt = now.losses.reduce((all, l) => all + l.value, 0);
	if (lost >= 0 && cnt > lost) losses_seen.push({ t: now.time_ms, text: "loss", title: `${count(cnt - lost)} losses, of all processes: see below.` });
	lost = cnt;
};
const marksOf = () => {
	const p = now.process, names = { peak: "peak", limit: "near limit" };
	const list = (now.saved || []).map((s) => s.pid === p.pid ? { t: s.time_ms, text: names[s.at] || s.why, title: `Saved profile: ${s.why}${s.inuse_bytes === undefined ? "" : `, in use ${bytes(s.inuse_bytes)}`}` } :
		s.at === "last" && { t: s.time_ms, text: "restart", title: `PID ${s.pid} of this name ended: ${s.why}` });
	if (p.exec_ms) list.push({ t: p.exec_ms, text: "exec", title: "The process executed its program." });
	return list.concat(losses_seen).filter(Boolean).sort((a, b) => a.t - b.t);
};
const axes = ({ width, height, t0, t1, top, step, x, y }) => {
	const parts = [], right = width - MARGIN.right, floor = height - MARGIN.bottom;
	for (let n = 0; n <= top; n += step)
		parts.push(svg("line", { x1: MARGIN.left, x2: right, y1: y(n), y2: y(n) }),
			svg("text", { x: MARGIN.left - 8, y: y(n) + 4, "text-anchor": "end" }, n ? bytes(n).replace(/\.0+ /, " ") : "0"));
	const every = timeStep((t1 - t0) * Math.max(1, 760 / width)), zone = new Date(t0).getTimezoneOffset() * 60000;
	for (let t = Math.ceil((t0 - zone) / every) * every + zone; t <= t1; t += every)
		if (x(t) < right - 20) parts.push(svg("line", { x1: x(t), x2: x(t), y1: floor, y2: floor + 4 }),
			svg("text", { x: x(t), y: height - 5, "text-anchor": "middle" }, page.when(t, every < 60000)));
	return parts;
};
// Resident memory by row, as areas on top of each other: the largest rows in the server's order, in which live blocks come
// first, so that in use lies beside them; the rest is one more. null: a reading that failed.
const BANDS = 7;
const rowWords = (name) => ((now.rows.list || []).find((row) => row.row === name) || { what: name }).what;
const readBands = (t0, t1) => {
	const points = now.rows && now.rows[chart.range] || { times_ms: [], bytes: {} }, is_in = (value, i) => points.times_ms[i] >= t0 && points.times_ms[i] <= t1;
	chart.times = points.times_ms.filter(is_in);
	const rows = Object.entries(points.bytes).map(([name, values]) => ({ name, values: values.filter(is_in) }))
		.map((band) => ({ ...band, sum: band.values.reduce((all, n) => all + Math.max(n || 0, 0), 0) })).filter((band) => band.sum);
	const least = rows.map((band) => band.sum).sort((a, b) => b - a)[rows.length > BANDS + 1 ? BANDS - 1 : rows.length - 1];
	const bands = rows.filter((band) => band.sum >= least), rest = rows.filter((band) => band.sum < least), floor = chart.times.map(() => 0);
	if (rest.length) bands.push({ name: "other", values: chart.times.map((t, i) => rest.reduce((all, band) => band.values[i] === null ? null : all + band.values[i], 0)) });
	for (const band of bands) {
		band.from = [...floor];
		band.values.forEach((n, i) => { floor[i] += Math.max(n || 0, 0); });
		band.to = [...floor];
	}
	const has_rows = chart.times.length > 1 && bands.length > 0;
	chart.bands = has_rows && !chart.is_inuse_only && !chart.is_folded ? bands : [];
	return has_rows;
};
// Between two lines, with gaps where a reading failed.
const bandPath = (band, xs, y) => {
	let d = "", run = [];
	const end = () => {
		const line = (key, order) => order.map((i) => `${xs[i].toFixed(1)} ${y(band[key][i]).toFixed(1)}`).join("L");
		if (run.length > 1) d += `M${line("to", run)}L${line("from", [...run].reverse())}Z`;
		run = [];
	};
	band.values.forEach((n, i) => { if (n === null) end(); else run.push(i); });
	end();
	return d;
};
let x = (t) => t, y = (n) => n, timeAt = (px) => px, height = 280, width = 800;
const drawChart = () => {
	const all = readPoints(), begin = Math.max(all.findIndex((d) => d.inuse !== null), 0);
	const points = chart.points = all.slice(begin), p = now.process; // before, it was not followed
	width = Math.max(picture.clientWidth || 800, 200);
	height = picture.clientHeight || 280;
	const known = points.filter((d) => d.inuse !== null || d.resident !== null);
	picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
	if (known.length < 2) {
		picture.replaceChildren(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" },
			now.is_past_full ? "Too many processes are tracked: this one has no chart." : "The chart begins when there are two points, ten seconds apart."));
		chart.bands = [];
		drawLegend(false, false, false);
		return;
	}
	const t1 = points[points.length - 1].t, t0 = Math.min(points[0].t, t1 - 60000);
	const has_rows = readBands(t0, t1), bands = chart.bands;
	let most = Math.max(1024, ...bands.length ? bands[bands.length - 1].to : [], ...known.map((d) => Math.max((d.inuse || 0) + d.error, !chart.is_inuse_only && d.resident || 0)));
	const has_limit = p.limit_bytes > 0 && p.limit_bytes < 2 * most;
	if (has_limit) most = Math.max(most, p.limit_bytes);
	const step = niceStep(most * 1.04), top = Math.max(most * 1.04, step);
	const right = width - MARGIN.right, floor = height - MARGIN.bottom;
	x = (t) => MARGIN.left + (t - t0) / (t1 - t0) * (right - MARGIN.left);
	y = (n) => floor - n / top * (floor - MARGIN.top);
	timeAt = (px) => t0 + (px - MARGIN.left) / (right - MARGIN.left) * (t1 - t0);
	const parts = axes({ width, height, t0, t1, top, step, x, y });
	let has_gap = false;
	for (let i = 0, from = -1; i <= points.length; i++) {
		const is_gap = i < points.length && points[i].inuse === null && points[i].t >= t0;
		if (is_gap && from < 0) from = i;
		if (is_gap || from < 0) continue;
		const a = Math.max(MARGIN.left, x(points[Math.max(from - 1, 0)].t)), b = x(points[Math.min(i, points.length - 1)].t);
		parts.push(svg("rect", { class: "gap", x: a, y: MARGIN.top, width: Math.max(b - a, 1), height: floor - MARGIN.top },
			svg("title", {}, "In use was unknown.")));
		has_gap = true;
		from = -1;
	}
	const xs = chart.times.map(x), over = bands.length ? " over" : "";
	for (const one of bands) parts.push(svg("path", { class: "row r-" + one.name, d: bandPath(one, xs, y) }, svg("title", {}, rowWords(one.name))));
	const band = page.paths(points.map((d) => [x(d.t), d.inuse === null ? null : y(Math.min(d.inuse + d.error, top))]), floor);
	const low = page.paths(points.map((d) => [x(d.t), d.inuse === null || !d.error ? null : y(Math.max(d.inuse - d.error, 0))]), floor);
	const inuse = page.paths(points.map((d) => [x(d.t), d.inuse === null ? null : y(d.inuse)]), floor);
	if (!over) parts.push(svg("path", { class: "area", d: inuse.area, opacity: ".45" }));
	// Between the two bounds: the area below the upper one, without the one below the lower.
	if (low.area) parts.push(svg("path", { class: "area" + over, "fill-rule": "evenodd", d: band.area + low.area }));
	if (!chart.is_inuse_only) parts.push(svg("path", { class: "rss", d: page.paths(points.map((d) => [x(d.t), d.resident === null ? null : y(d.resident)]), floor).line }));
	if (over) parts.push(svg("path", { class: "halo", d: inuse.line }));
	parts.push(svg("path", { class: "inuse" + over, d: inuse.line }));
	if (has_limit) parts.push(svg("line", { class: "limit", x1: MARGIN.left, x2: right, y1: y(p.limit_bytes), y2: y(p.limit_bytes) }),
		svg("text", { class: "limit", x: right, y: y(p.limit_bytes) - 5, "text-anchor": "end" }, `limit ${bytes(p.limit_bytes)}`));
	let free = MARGIN.left;
	for (const mark of marksOf()) {
		if (mark.t < t0 || mark.t > t1) continue;
		const at = x(mark.t), long = 6.4 * mark.text.length, is_left = at + long > right, has_text = (is_left ? at - long : at) >= free;
		parts.push(svg("g", { class: "mark" }, svg("title", {}, `${page.when(mark.t)}: ${mark.title}`),
			svg("line", { class: "mark", x1: at, x2: at, y1: 14, y2: floor }),
			has_text && svg("text", { x: is_left ? at - 3 : at + 3, y: 12, "text-anchor": is_left ? "end" : "start" }, mark.text)));
		if (has_text) free = at + 8 + (is_left ? 0 : long);
	}
	picture.replaceChildren(...parts, pick, cursor, dot);
	drawLegend(has_gap, has_limit, has_rows);
	drawPick();
	drawCursor();
};
const drawLegend = (has_gap, has_limit, has_rows) => {
	const p = now.process, item = (css, text) => el("span", { class: css }, el("i"), text), has_bands = chart.bands.length > 0;
	put(legend, JSON.stringify([has_gap, has_limit, has_rows, has_bands, p.limit_bytes, p.inuse_error_bytes > 0, chart.is_inuse_only, chart.is_folded]),
		item(has_bands ? "l-over" : "l-inuse", "in use"),
		p.inuse_error_bytes > 0 && item(has_bands ? "l-band l-over" : "l-band", "95 % interval"), el("button", { type: "button", class: "l-rss", "aria-pressed": String(!chart.is_inuse_only), title: "Show or hide it",
			onclick: () => { chart.is_inuse_only = !chart.is_inuse_only; drawChart(); legend.querySelector(".l-rss").focus(); } }, el("i"), "resident"),
		has_rows && !chart.is_inuse_only && el("button", { type: "button", class: "fold", "aria-expanded": String(!chart.is_folded),
			onclick: () => { chart.is_folded = !chart.is_folded; drawChart(); legend.querySelector(".fold").focus(); } }, "by row"),
		has_limit && item("l-limit", "limit of its control group"),
		!has_limit && p.limit_bytes > 0 && el("span", {}, `limit ${bytes(p.limit_bytes)}: above the chart`), has_gap && item("l-gap", "unknown"));
	put(bandLegend, JSON.stringify(chart.bands.map((band) => band.name)), chart.bands.map((band) => el("span", { class: "r-" + band.name, title: rowWords(band.name) },
		el("i"), band.name.replace("_", " ") + " ", el("b"))));
};
// The rows at the reading next to the cursor; without one, the newest.
const sayBands = (t) => {
	const i = chart.times.reduce((best, one, k) => Math.abs(one - t) < Math.abs(chart.times[best] - t) ? k : best, chart.times.length - 1);
	chart.bands.forEach((band, k) => setText(bandLegend.children[k].lastChild, band.values[i] === null ? "unknown" : bytes(band.values[i])));
};

// ---- pointing, and choosing a span ----
const pick = svg("rect", { class: "pick", y: MARGIN.top, height: 0, width: 0 }), cursor = svg("line", { class: "cursor" }), dot = svg("circle", { r: 4 });
const drawPick = () => {
	const is_chosen = chart.from !== null && chart.from !== chart.to;
	const a = is_chosen ? Math.max(MARGIN.left, x(Math.min(chart.from, chart.to))) : 0;
	const b = is_chosen ? Math.min(width - MARGIN.right, x(Math.max(chart.from, chart.to))) : 0;
	pick.setAttribute("x", a);
	pick.setAttribute("width", Math.max(b - a, 0));
	pick.setAttribute("height", height - MARGIN.top - MARGIN.bottom);
};
const drawCursor = () => {
	const d = chart.points[chart.cursor];
	cursor.style.display = dot.style.display = d ? "" : "none";
	sayBands(d ? d.t : Infinity);
	if (!d) {
		const many = (now.moments || []).length > 1;
		put(said, "hint" + many, many ? "Drag over a span, or use Shift and the arrow keys, to see what changed in it." : now.moments_note || "");
		return;
	}
	for (const [key, value] of [["x1", x(d.t)], ["x2", x(d.t)], ["y1", MARGIN.top], ["y2", height - MARGIN.bottom]]) cursor.setAttribute(key, value);
	dot.style.display = d.inuse === null ? "none" : "";
	if (d.inuse !== null) { dot.setAttribute("cx", x(d.t)); dot.setAttribute("cy", y(d.inuse)); }
	put(said, "at" + d.t, page.time(d.t), " \u00b7 in use ", el("b", {}, d.inuse === null ? "unknown" : bytes(d.inuse)),
		d.error && d.inuse !== null ? ` \u00b1 ${bytes(d.error)}` : "", d.resident === null ? "" : ` \u00b7 resident ${bytes(d.resident)}`);
};
const nearestPoint = (t) => chart.points.reduce((best, d, i) => Math.abs(d.t - t) < Math.abs((chart.points[best] || d).t - t) ? i : best, 0);
const eventTime = (event) => {
	const box = picture.getBoundingClientRect(), at = (event.clientX - box.left) * width / box.width;
	return timeAt(Math.min(Math.max(at, MARGIN.left), width - MARGIN.right));
};
let dragged = null; // where a drag began
picture.onpointerdown = (event) => {
	if (event.button || !chart.points.length) return;
	dragged = { x: event.clientX, t: eventTime(event) };
	if (event.pointerType === "mouse") picture.setPointerCapture(event.pointerId);
};
picture.onpointermove = (event) => {
	if (!chart.points.length) return;
	chart.cursor = nearestPoint(eventTime(event));
	if (dragged && Math.abs(event.clientX - dragged.x) > 5) { chart.from = dragged.t; chart.to = eventTime(event); drawPick(); }
	drawCursor();
};
picture.onpointerup = (event) => {
	if (dragged && Math.abs(event.clientX - dragged.x) > 5) show(Math.min(chart.from, chart.to), Math.max(chart.from, chart.to));
	dragged = null;
};
picture.onpointercancel = () => { dragged = null; };
picture.onpointerleave = () => { if (!dragged) { chart.cursor = -1; drawCursor(); } };
picture.onkeydown = (event) => {
	const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
	if (event.key === "Enter" && chart.from !== null && chart.from !== chart.to) show(Math.min(chart.from, chart.to), Math.max(chart.from, chart.to));
	if (event.key === "Escape") { chart.from = chart.to = null; drawPick(); }
	if (!way || !chart.points.length) return;
	event.preventDefault();
	const at = chart.cursor < 0 ? chart.points.length - 1 : chart.cursor;
	chart.cursor = Math.min(Math.max(at + way * (event.altKey ? 10 : 1), 0), chart.points.length - 1);
	if (event.shiftKey) {
		if (chart.from === null) chart.from = chart.points[at].t;
		chart.to = chart.points[chart.cursor].t;
		drawPick();
	}
	drawCursor();
};
const rangeButtons = [["hour", "Hour"], ["day", "Day"]].map(([key, text]) => el("button", { type: "button", "aria-pressed": String(key === "hour"), onclick: () => {
	chart.range = key;
	chart.cursor = -1;
	for (const button of rangeButtons) button.setAttribute("aria-pressed", button.textContent === text);
	drawChart();
} }, text));

// ---- resident memory by row: the newest reading ----
const rowsWhen = el("small"), rowsNote = el("div"), rowsTable = el("div");
const rowsPart = el("section", { id: "rows" }, el("h2", {}, "Resident memory", rowsWhen), rowsNote, rowsTable);
const drawRows = () => {
	const r = now.rows;
	rowsPart.hidden = !r;
	if (!r) return;
	const note = r.why_not ? `Unknown: ${r.why_not}.` : r.note || (r.heap_why_not ? `The heap was not read: ${r.heap_why_not}.` : "");
	setText(rowsWhen, r.list ? `${bytes(r.rss_bytes)}, read ${page.span(Math.max(now.time_ms - r.time_ms, 0) / 1000)} ago` : "");
	put(rowsNote, note, note && el("p", { class: "dim" }, note));
	put(rowsTable, JSON.stringify(r.list || null), r.list && page.table([["Resident", "num"], ["Share", "num"], ["What", "where"], ["Kind"]],
		r.list.filter((row) => row.bytes).sort((a, b) => b.bytes - a.bytes).map((row) => [bytes(row.bytes), r.rss_bytes ? percent(row.bytes / r.rss_bytes) : "",
			el("span", { class: "row-what r-" + row.row }, el("i"), row.what), row.row])));
};

// ---- what changed ----
const from = el("select", { "aria-label": "From" }), to = el("select", { "aria-label": "To" });
const changed = el("div", { class: "changed", "aria-live": "polite" });
const asPicture = el("a", {}, "As a flame graph");
const compareTools = el("div", { class: "compare" }, el("label", {}, "From", from), el("label", {}, "to", to),
	el("button", { type: "button", class: "main", onclick: () => showChosen(false) }, "Compare"), asPicture);
const comparePart = el("section", {}, el("h2", {}, "What changed"), compareTools, changed);
// Either side is a moment, in seconds, or a saved profile: "peak". The first may be of another process: "@14" is now, "@14 last" saved.
const fillSelects = () => {
	const moments = now.moments || [], others = now.others || [];
	const past = (now.saved || []).filter((s, i, all) => s.pid !== now.process.pid && all.findIndex((one) => one.pid === s.pid && one.at === s.at) === i);
	// The newest of each kind: that is what the server gives.
	const saved = (now.saved || []).filter((s) => s.pid === now.process.pid && s.at !== "last").filter((s, i, all) => all.findIndex((one) => one.at === s.at) === i);
	const kept = [from.value, to.value];
	const option = (value, text) => el("option", { value }, text);
	for (const side of [from, to])
		put(side, JSON.stringify([moments, saved, others, past]), moments.map((s, i) => option(s, page.when(1000 * s) + (i === moments.length - 1 ? " (last)" : ""))).reverse(),
			saved.length ? el("optgroup", { label: "Saved profiles" }, saved.map((s) => option(s.at, `${s.at}, ${page.when(s.time_ms)}`))) : null,
			side === from && others.length ? el("optgroup", { label: "Other processes, now" }, others.map((p) => option("@" + p.pid, `${p.name} (PID ${p.pid})`))) : null,
			side === from && past.length ? el("optgroup", { label: "Other processes, saved profiles" }, past.map((s) => option(`@${s.pid} ${s.at}`,
				`${s.name} (PID ${s.pid}) ${s.at}, ${page.when(s.time_ms)}`))) : null);
	if ([...from.options].some((o) => o.value === kept[0])) from.value = kept[0]; else if (moments.length) from.value = moments[0];
	if ([...to.options].some((o) => o.value === kept[1])) to.value = kept[1];
	comparePart.hidden = moments.length < 2 && !(moments.length && saved.length + others.length + past.length);
	point();
};
const side = (value) => isNaN(+value) ? value : page.utc(1000 * value);
const timeOf = (value) => isNaN(+value) ? (now.saved.find((s) => s.pid === now.process.pid && s.at === value) || {}).time_ms || 0 : 1000 * value;
const query = () => {
	const [, pid, at] = from.value.match(/^@(\d+) ?(.*)/) || [];
	return `diff?${!pid ? `from=${side(from.value)}` : `from_pid=${pid}${at && `&from=${at}`}`}&to=${side(to.value)}`;
};
const point = () => { asPicture.href = query(); };
from.onchange = to.onchange = point;
const nearestMoment = (ms) => now.moments.reduce((best, s) => Math.abs(1000 * s - ms) < Math.abs(1000 * best - ms) ? s : best, now.moments[0]);
// A span of the chart: from the nearest moment to the nearest one.
const show = (fromMs, toMs, is_quiet = false) => {
	if ((now.moments || []).length < 2) { setText(changed, now.moments_note || ""); return; }
	let a = nearestMoment(fromMs), b = nearestMoment(toMs);
	if (a === b) {
		const i = now.moments.indexOf(a);
		if (i > 0) a = now.moments[i - 1]; else b = now.moments[1];
	}
	from.value = a;
	to.value = b;
	showChosen(is_quiet);
};
let asked = 0;
const showChosen = async (is_quiet) => {
	point();
	const [a, b] = [from.value, to.value], mine = ++asked;
	if (!a || !b) return;
	const is_of_two = a.startsWith("@");
	chart.from = is_quiet || is_of_two ? null : timeOf(a);
	chart.to = is_quiet || is_of_two ? null : timeOf(b);
	drawPick();
	if (+a >= +b) { changed.replaceChildren(el("p", { class: "dim" }, "The first moment must be before the second.")); return; }
	if (!is_quiet) history.replaceState(null, "", `#from=${encodeURIComponent(a)}&to=${b}`);
	changed.replaceChildren(el("p", { class: "dim" }, "Comparing\u2026"));
	try {
		const d = await (await page.get(query() + "&format=json")).json();
		if (mine === asked) drawChanged(d, is_of_two);
	} catch (e) {
		if (mine === asked) changed.replaceChildren(el("p", { class: "banner" }, e.message));
	}
};
const intervalText = (row) => row.inuse_bytes_delta_low === null ? "" : row.inuse_bytes_delta_low === row.inuse_bytes_delta_high ? "exact" :
	`${signedBytes(row.inuse_bytes_delta_low)} to ${signedBytes(row.inuse_bytes_delta_high)}`;
const delta = (row) => el("span", { class: row.is_significant === false ? "dim" : row.inuse_bytes_delta > 0 ? "up" : row.inuse_bytes_delta < 0 ? "down" : "" },
	signedBytes(row.inuse_bytes_delta));
const drawChanged = (d, is_of_two) => {
	const total = d.total, rows = d.rows.filter((row) => row.inuse_bytes_delta !== 0);
	const noise = total.is_significant === false ? ": within sampling noise" : "";
	const sideName = (name) => name.replace(/\d{4}-\d\d-\d\dT[\d:]+Z/, (utc) => page.when(Date.parse(utc)));
	const [a, b] = is_of_two ? ["A", "B"] : ["Before", "After"], only = (words) => is_of_two ? "" : words;
	changed.replaceChildren(el("p", {}, is_of_two && "A: ", sideName(d.before), is_of_two ? ", B: " : " \u2192 ", sideName(d.after), `: in use ${bytes(total.inuse_bytes_before || 0)} \u2192 ${
		bytes(total.inuse_bytes_after || 0)}, `, el("b", {}, delta(total)), noise),
		rows.length ? page.table([["Change", "num"], ["95 %", "num"], [a, "num"], [b, "num"], ["Where", "where"]],
			rows.slice(0, ROWS).map((row) => [delta(row), el("small", {}, row.is_significant === false ? "within noise" : intervalText(row)),
				row.inuse_bytes_before === null ? only("new") : bytes(row.inuse_bytes_before), row.inuse_bytes_after === null ? only("gone") : bytes(row.inuse_bytes_after),
				where(row.name)])) : el("div", { class: "sheet empty" }, "Nothing changed."),
		rows.length > ROWS ? el("p", { class: "dim" }, `And ${rows.length - ROWS} smaller ones: `, el("a", { href: asPicture.href }, "all, as a flame graph"), ".") : "");
};
// "function file:line < caller": a link that finds the function in the flame graph
const where = (name) => {
	const [own, ...callers] = name.split(" < ");
	return el("span", {}, el("a", { href: "viewer#" + new URLSearchParams({ q: own.replace(/ \S+:\d+$/, "") }) }, own),
		callers.length ? el("small", {}, " from " + callers.join(" < ")) : "");
};

// ---- the flame graph: made when it is opened, and by links to a function ----
const frame = el("iframe", { title: "Flame graph" });
const showFlame = (path) => { frame.src = page.address(path); };
const flame = el("details", { class: "sheet flame", ontoggle: () => { if (flame.open && !frame.src) showFlame("viewer"); } },
	el("summary", {}, "Flame graph"), frame);
document.addEventListener("click", (event) => {
	const link = event.target.closest('a[href^="viewer#"]');
	if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
	event.preventDefault();
	showFlame(link.getAttribute("href"));
	flame.open = true;
	flame.scrollIntoView();
});

// ---- the largest stacks over time: what the table of what grows compares, the means of twelve windows ----
const TOP = 5;
const topPicture = svg("svg", { class: "top", role: "img", "aria-label": "The largest stacks over time; the table below has the numbers" });
const topLegend = el("div", { class: "legend" });
const topPart = el("section", { id: "top", class: "chart", hidden: true }, el("h2", {}, "Largest stacks over time"), topPicture, topLegend);
const drawTop = () => {
	const from = stacks.querySelector(".by-stack[data-ages]"), last = (now.moments || []).at(-1) * 1000, numbers = (text) => text.split(" ").map(Number);
	const rows = !from || !last ? [] : [...from.querySelectorAll("tr[data-means]")].map((row) => ({ row, means: numbers(row.dataset.means) }))
		.sort((a, b) => b.means.at(-1) - a.means.at(-1)).slice(0, TOP);
	topPart.hidden = !rows.length;
	if (!rows.length) return;
	const times = numbers(from.dataset.ages).map((age) => last - 1000 * age), t0 = times[0], t1 = times.at(-1);
	const width = Math.max(topPicture.clientWidth || 800, 200), height = topPicture.clientHeight || 170;
	const most = 1.04 * Math.max(1024, ...rows.flatMap((one) => one.means)), step = niceStep(most), top = Math.max(most, step);
	const x = (t) => MARGIN.left + (t - t0) / (t1 - t0) * (width - MARGIN.right - MARGIN.left);
	const y = (n) => height - MARGIN.bottom - n / top * (height - MARGIN.bottom - MARGIN.top);
	topPicture.setAttribute("viewBox", `0 0 ${width} ${height}`);
	topPicture.replaceChildren(...axes({ width, height, t0, t1, top, step, x, y }),
		...rows.map(({ means }, i) => svg("path", { class: "t-" + i, d: page.paths(means.map((n, k) => [x(times[k]), y(n)]), 0).line })));
	put(topLegend, JSON.stringify(rows.map(({ row, means }) => [row.cells[row.cells.length - 1].textContent, means])), rows.map(({ row, means }, i) => {
		const link = row.querySelector("td.where a");
		return el("span", { class: "t-" + i, title: row.querySelector("td.where").textContent }, el("i"), link ? el("a", { href: link.getAttribute("href") }, link.textContent) : "", "\u00a0", el("b", {}, bytes(means.at(-1))));
	}));
};

// ---- what comes with the page, and tables ----
const linkStacks = () => {
	for (const one of stacks.querySelectorAll("table")) page.labelCells(one);
	for (const td of stacks.querySelectorAll(".by-stack td.where")) {
		const text = td.firstChild;
		if (!text || text.nodeType !== Node.TEXT_NODE) continue;
		text.replaceWith(el("a", { href: "viewer#" + new URLSearchParams({ q: text.data.trim().replace(/ \S+:\d+( \(.*)?$/, "") }) }, text.data.trim())); // the line ends there if it has no caller
	}
};
let stacksAt = Date.now();
const againStacks = async () => {
	if (Date.now() - stacksAt < STACKS_MS) return;
	stacksAt = Date.now();
	const text = await (await page.get("./")).text();
	const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("stacks");
	if (!fresh) return;
	stacks.replaceChildren(...fresh.childNodes);
	linkStacks();
	drawTop();
};
const scopes = el("div"), saved = el("div"), losses = el("div");
const drawTables = () => {
	put(scopes, JSON.stringify(now.scopes), page.section("Scopes and threads", "", now.scopes.length ?
		page.table([["In use", "num"], ["95 %", "num"], ["Allocated", "num"], ["Threads"], ["Scope", "where"]], now.scopes.map((s) => [
			s.inuse_bytes === undefined ? "unknown" : bytes(s.inuse_bytes),
			el("small", {}, s.inuse_error_bytes > 0 ? `\u00b1 ${bytes(1.96 * s.inuse_error_bytes)}` : ""), bytes(s.alloc_bytes || 0), s.thread, s.scope])) :
		el("div", { class: "sheet empty" }, "Nothing was sampled yet.")));
	put(saved, JSON.stringify(now.saved || null), page.savedTable(now.saved, now.saved_omitted_cnt, "../", true));
	put(losses, JSON.stringify(now.losses), page.lossList(now.losses));
};

app.replaceChildren(head, path, notes, cards,
	el("div", { class: "chart" }, el("div", { class: "chart-head" }, el("h2", {}, "Memory over time"), legend, el("div", { class: "spans" }, rangeButtons)), bandLegend, picture, said),
	rowsPart, comparePart, flame, topPart, stacks, scopes, saved, losses);
linkStacks();
let is_first = true;
const { again } = page.live((data) => {
	now = data;
	document.title = `${now.process.name} (PID ${now.process.pid})`;
	watchLosses();
	drawHead();
	fillSelects();
	drawChart();
	drawRows();
	drawTables();
	drawTop();
	if (!is_first) againStacks().catch(() => {});
	is_first = false;
});
const said_before = new URLSearchParams(location.hash.slice(1));
const isSide = (select, value) => [...select.options].some((o) => o.value === value);
if (isSide(from, said_before.get("from")) && isSide(to, said_before.get("to"))) {
	[from.value, to.value] = [said_before.get("from"), said_before.get("to")];
	showChosen();
} else if (+said_before.get("from") && +said_before.get("to")) show(1000 * said_before.get("from"), 1000 * said_before.get("to"));
else if (now.moments.length > 1) show(now.past_until_ms - 3600000, now.past_until_ms, true);
new ResizeObserver(() => { drawChart(); drawTop(); }).observe(picture);
// For tests: the chart, what a drag does, and data that are made up.
window.heaptap = { chart, show, again, frame, drawTop, set: (data) => { now = { ...now, ...data }; drawChart(); drawRows(); } };
})();
