/* SPDX-License-Identifier: MIT */
/*
 * index.js - the page of all processes: cards, and a table that is filtered, sorted and grouped here.
 *
 * A row is made once and then changed, so that a refresh moves nothing and takes the focus from nobody. What is chosen is
 * in the address behind '#', and can be sent.
 */
"use strict";
(() => {
const { el, svg, setText, bytes, signedBytes, percent } = page;
const app = document.getElementById("app");
const chosen = { find: "", only: "", by: "name", sort: "inuse", up: false };
const unfolded = new Set(), opened = new Set(); // names of groups; keys of rows whose notes are shown
let now; // the data
let first = null; // the pid of the process to compare another one with

// ---- what is chosen ----
const remember = () => {
	const said = new URLSearchParams();
	for (const [key, plain] of [["find", ""], ["only", ""], ["by", "name"], ["sort", "inuse"]])
		if (chosen[key] !== plain) said.set(key, chosen[key]);
	if (chosen.up) said.set("up", 1);
	history.replaceState(null, "", said.size ? "#" + said : location.pathname + location.search);
};
const recall = () => {
	const said = new URLSearchParams(location.hash.slice(1));
	for (const key of ["find", "only", "by", "sort"]) if (said.has(key)) chosen[key] = said.get(key);
	chosen.up = said.has("up");
	if (!["name", "cgroup", "container", "none"].includes(chosen.by)) chosen.by = "name";
	if (!(chosen.sort in columns)) chosen.sort = "inuse";
};

// ---- numbers of a process, or of a group as if it were one ----
const inuse = (p) => p.inuse_bytes ?? -1;
const pace = (p) => p.growth && p.growth.trend !== "steady" ? p.growth.bytes_per_min : 0;
const grows = (p) => !!p.growth && p.growth.trend === "grows";
const columns = {
	name: ["Process", (p) => p.name.toLowerCase()],
	inuse: ["In use", inuse],
	rss: ["Resident", (p) => p.rss_bytes || 0],
	past: ["Last hour", (p) => p.past ? p.past.seconds : -1],
	growth: ["Growth", (p) => p.growth ? pace(p) : -Infinity],
	cost: ["Probe cost", (p) => p.overhead ?? -1],
};
const only = {
	growing: grows,
	near: page.isNear,
	unknown: (p) => !!p.is_inuse_unknown,
};
const sum = (list, of) => list.reduce((all, p) => all + (of(p) || 0), 0);
const compare = (a, b) => {
	const of = columns[chosen.sort][1], x = of(a), y = of(b);
	const by = x < y ? -1 : x > y ? 1 : 0;
	const way = (chosen.sort === "name") !== chosen.up ? 1 : -1;
	return by ? way * by : (a.pid || 0) - (b.pid || 0);
};
const isFound = (p) => {
	const find = chosen.find.toLowerCase();
	return (!chosen.only || only[chosen.only](p)) && (!find || String(p.pid) === find || p.name.toLowerCase().includes(find) ||
		(p.exe || "").toLowerCase().includes(find) || (p.cgroup || "").toLowerCase().includes(find) || (p.container || "").startsWith(find));
};
const groupName = (p) => p[chosen.by] || "";
// The lines of several, added up: each point at the same time before now.
const pastOf = (list) => {
	const POINTS = 40, pasts = list.map((p) => p.past).filter(Boolean), sums = Array(POINTS).fill(null);
	if (!pasts.length) return undefined;
	const seconds = Math.max(...pasts.map((one) => one.seconds));
	for (const { points, top_bytes, seconds: own } of pasts) for (let i = 0; i < POINTS; i++) {
		const ago = seconds * (1 - i / (POINTS - 1)), at = own ? Math.round((1 - ago / own) * (points.length - 1)) : ago ? -1 : 0;
		if (at >= 0 && points[at] !== null) sums[i] += points[at] * top_bytes / 100;
	}
	const top = Math.max(...sums);
	return { seconds, top_bytes: top, points: sums.map((n) => n === null ? null : top ? 100 * n / top : 0) };
};
const groupOf = (name, list) => {
	const known = list.filter((p) => p.inuse_bytes !== undefined), growing = list.filter(grows), judged = list.filter((p) => p.growth);
	return { name, list, key: "group " + name, past: pastOf(known),
		inuse_bytes: known.length ? sum(known, (p) => p.inuse_bytes) : undefined, unknown_cnt: list.length - known.length,
		rss_bytes: sum(list, (p) => p.rss_bytes),
		overhead: list.some((p) => p.overhead !== undefined) ? Math.max(...list.map((p) => p.overhead || 0)) : undefined,
		growth: judged.length ? { trend: ["grows", "grew", "shrinks", "steady"].find((one) => judged.some((p) => p.growth.trend === one)), bytes_per_min: sum(judged, (p) => p.growth.bytes_per_min),
			cnt: growing.length } : undefined };
};

// ---- rows ----
const rows = new Map(); // key -> { row, notes, update }
const cell = (row, css, ...content) => { const td = el("td", { class: css }, content); row.append(td); return td; };
const spark = (past) => {
	const W = 140, H = 30, n = past.points.length;
	const { line, area } = page.paths(past.points.map((v, i) => [n > 1 ? i * W / (n - 1) : W, v === null ? null : H - 2 - v * (H - 4) / 100]), H);
	const last = past.seconds < 3500 ? page.span(past.seconds) : "the last hour";
	return svg("svg", { class: "spark", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img",
		"aria-label": `in use over ${last}, at most ${bytes(past.top_bytes)}` },
		svg("title", {}, `${last}, at most ${bytes(past.top_bytes)}`), svg("path", { class: "area", d: area }), svg("path", { d: line }));
};
const put = (td, key, ...content) => { // only if it is another one
	if (td.dataset.key === key) return;
	td.dataset.key = key;
	td.replaceChildren(...content.filter(Boolean));
};
const makeRow = (key, is_group) => {
	const row = el("tr", { class: is_group ? "group" : "" }), made = { row, notes: null };
	const name = cell(row, "name"), used = cell(row, "num c-inuse"), bar = cell(row, "c-bar"), past = cell(row, "c-spark"),
		growth = cell(row, "num c-growth"), cost = cell(row, "num c-cost"), go = cell(row, "num c-go");
	const barOuter = el("span", { class: "bar" }, el("i")), barText = el("small");
	bar.append(barOuter, barText);
	const link = el("a"), marks = el("span"), sub = el("small", { class: "sub" });
	const fold = el("button", { type: "button", class: "fold", onclick: () => {
		if (!unfolded.delete(made.p.name)) unfolded.add(made.p.name);
		draw();
	} });
	const cnt = el("small");
	name.append(el("div", { class: "title" }, is_group ? [fold, cnt] : link, marks), sub);
	const flames = is_group ? null : el("a", { href: `pid/${key}/viewer` }, "Flame graph");
	const pick = is_group ? null : el("button", { type: "button", class: "pick", title: "choose the process to compare it with",
		onclick: () => { first = first === key ? null : key; drawRows(); } }, "Compare");
	const open = () => { if (!opened.delete(key)) opened.add(key); draw(); };
	made.update = (p, is_member) => {
		made.p = p;
		row.className = is_group ? "group" : is_member ? "member" : "";
		if (is_group) {
			setText(fold, p.name || `(no ${chosen.by})`);
			fold.setAttribute("aria-expanded", unfolded.has(p.name));
			setText(cnt, `\u00d7 ${p.list.length}`);
			setText(sub, p.unknown_cnt ? `${p.unknown_cnt} of ${p.list.length} unknown` : "");
		} else {
			link.href = `pid/${p.pid}/`;
			setText(link, p.name || "(no name)");
			setText(sub, `${p.pid} \u00b7 ${p.exe || "?"}${p.container ? ` \u00b7 ${p.container.slice(0, 12)}` : ""}`);
			sub.title = p.exe || "";
			const list = page.badges(p);
			put(marks, JSON.stringify(list), ...list.map(([text, kind, why]) => el("button", { type: "button", class: "badge " + kind, title: why,
				"aria-expanded": opened.has(key), onclick: open }, text)));
			for (const mark of marks.children) mark.setAttribute("aria-expanded", opened.has(key));
			const is_second = first !== null && first !== key;
			put(go, `${is_second && first} ${!!p.is_inuse_unknown}`, flames, !p.is_inuse_unknown && (is_second ?
				el("a", { class: "pick", href: `pid/${key}/diff?from_pid=${first}`, title: `compare its heap in use with that of PID ${first}` }, `with ${first}`) : pick)); // what is unknown cannot be compared
			pick.setAttribute("aria-pressed", first === key);
		}
		const is_known = p.inuse_bytes !== undefined, share = is_known && p.rss_bytes ? p.inuse_bytes / p.rss_bytes : 0;
		setText(used, is_known ? bytes(p.inuse_bytes) : "unknown");
		used.title = p.inuse_error_bytes > 0 ? `\u00b1 ${bytes(1.96 * p.inuse_error_bytes)} (95 %)` : "";
		barOuter.className = is_known ? "bar" : "bar unknown";
		barOuter.firstChild.style.width = Math.min(100, 100 * share).toFixed(1) + "%";
		barOuter.firstChild.hidden = !is_known;
		setText(barText, `${is_known ? percent(share) + " " : ""}of ${bytes(p.rss_bytes || 0)}`);
		put(past, JSON.stringify(p.past || 0), p.past && p.past.points.length > 1 ? spark(p.past) : el("small", {}, "not yet"));
		const g = p.growth;
		const each = g && (g.trend === "steady" ? "" : signedBytes(g.bytes_per_min) + "/min");
		const words = !g ? "" : is_group && g.cnt ? `${g.cnt} grow` + (g.cnt === 1 ? "s" : "") : page.trends[g.trend][0];
		put(growth, each + words, el("span", {}, each || ""), el("small", { class: "sub " + (g ? g.trend : "") },
			words || (p.is_inuse_unknown ? "" : "too new")));
		growth.title = g && !is_group ? `${page.trends[g.trend][1]} Seen over ${page.span(60 * g.minutes)}.` : "";
		setText(cost, p.overhead === undefined ? "" : percent(p.overhead));
		cost.title = is_group ? "the highest of the group" : "of its CPU time";
		const shown = !is_group && opened.has(key) ? page.badges(p) : [];
		if (!shown.length) made.notes = null;
		else {
			made.notes = made.notes || el("tr", { class: "more" }, el("td", { colspan: heads.length }));
			put(made.notes.firstChild, JSON.stringify(shown), ...shown.map(([text, kind, why]) => el("p", {}, el("span", { class: "badge " + kind }, text), " ", why)));
		}
	};
	return made;
};
const rowOf = (key, is_group) => {
	if (!rows.has(key)) rows.set(key, makeRow(key, is_group));
	return rows.get(key);
};

// ---- the page ----
const cards = {}, notes = el("div"), body = el("tbody"), empty = el("div", { class: "empty" }), rest = el("div");
const makeCard = (key, title) => {
	const value = el("b"), small = el("small"), is_filter = key in only;
	const node = el(is_filter ? "button" : "div", { class: "card", ...(is_filter ? { type: "button", "aria-pressed": "false" } : {}) },
		el("span", {}, title), value, small);
	if (is_filter) node.onclick = () => { chosen.only = chosen.only === key ? "" : key; remember(); draw(); };
	cards[key] = (text, said, kind) => {
		setText(value, text);
		setText(small, said);
		node.className = "card " + (kind || "");
		if (is_filter) node.setAttribute("aria-pressed", chosen.only === key);
	};
	return node;
};
const heads = Object.entries(columns).map(([key, [title]]) => {
	const button = el("button", { type: "button", onclick: () => {
		chosen.up = chosen.sort === key && !chosen.up;
		chosen.sort = key;
		remember();
		draw();
	} }, title);
	return [key, el("th", { scope: "col", class: { inuse: "num c-inuse", rss: "c-bar", past: "c-spark", growth: "num c-growth", cost: "num c-cost" }[key] }, button)];
});
const search = el("input", { type: "search", placeholder: "Filter by name, PID, path (/)", "aria-label": "Filter",
	oninput: () => { chosen.find = search.value.trim(); remember(); draw(); } });
const select = (label, list, key) => {
	const node = el("select", { onchange: () => { chosen[key] = node.value; chosen.up = false; remember(); draw(); } },
		list.map(([value, text]) => el("option", { value }, text)));
	return [el("label", { class: key === "sort" ? "narrow" : "" }, label, node), node];
};
const [byLabel, by] = select("Group by", [["name", "name"], ["cgroup", "control group"], ["container", "container"], ["none", "nothing"]], "by");
const [sortLabel, sort] = select("Sort by", Object.entries(columns).map(([key, [title]]) => [key, title.toLowerCase()]), "sort");
const hits = el("small", { "aria-live": "polite" });

const drawCards = () => {
	const list = now.processes, known = list.filter((p) => p.inuse_bytes !== undefined), cnt = (of) => list.filter(of).length;
	const growing = list.filter(grows), near = cnt(only.near), unknown = cnt(only.unknown);
	cards.followed(String(list.length), now.refused_cnt ? `${now.refused_cnt} cannot be tracked` : `probes: ${percent(now.host_overhead || 0)} of CPU`);
	cards.total(bytes(sum(known, (p) => p.inuse_bytes)), `of ${bytes(sum(list, (p) => p.rss_bytes))} resident`);
	cards.growing(String(growing.length), growing.length ? signedBytes(sum(growing, (p) => p.growth.bytes_per_min)) + "/min" : "none grows", growing.length ? "bad" : "");
	cards.near(String(near), near ? "an OOM kill may be near" : "none near its limit", near ? "bad" : "");
	cards.unknown(String(unknown), unknown ? "click for the remedy" : "none", unknown ? "note" : "");
};
const drawNotes = () => {
	const list = [];
	if (now.is_paused) list.push("Recording is paused: SIGUSR1 removed all probes, SIGUSR2 attaches them again.");
	if (now.refused_cnt) list.push(`${now.refused_cnt} selected process${now.refused_cnt === 1 ? "" : "es"} cannot be tracked; the log says why.`);
	put(notes, JSON.stringify(list), ...list.map((text) => el("p", { class: "banner" }, text)));
};
// The rows in their order: single ones, and groups of two and more, with their members where they are unfolded.
const order = () => {
	const found = now.processes.filter(isFound), groups = new Map(), ordered = [];
	if (chosen.by === "none") return found.sort(compare).map((p) => [p.pid, p, false]);
	for (const p of found) {
		const name = groupName(p);
		if (!groups.has(name)) groups.set(name, []);
		groups.get(name).push(p);
	}
	const units = [...groups].map(([name, list]) => list.length > 1 ? groupOf(name, list) : list[0]).sort(compare);
	for (const unit of units) {
		ordered.push([unit.key || unit.pid, unit, false]);
		if (unit.list && (unfolded.has(unit.name) || chosen.find || chosen.only))
			for (const p of unit.list.sort(compare)) ordered.push([p.pid, p, true]);
	}
	return ordered;
};
const drawRows = () => {
	const list = order(), nodes = [];
	for (const [key, p, is_member] of list) {
		const made = rowOf(key, !!p.list);
		made.update(p, is_member);
		nodes.push(made.row);
		if (made.notes) nodes.push(made.notes);
	}
	const is_same = nodes.length === body.childNodes.length && nodes.every((node, i) => node === body.childNodes[i]);
	if (!is_same) {
		const focus = document.activeElement;
		body.replaceChildren(...nodes);
		if (focus && focus !== document.activeElement && body.contains(focus)) focus.focus({ preventScroll: true });
	}
	const cnt = list.filter(([, p]) => !p.list).length, all = now.processes.length;
	const found = now.processes.filter(isFound).length;
	setText(hits, found === all ? "" : `${found} of ${all}`);
	empty.hidden = found > 0;
	setText(empty, all ? "No process matches." : "No process is tracked now.");
	return cnt;
};
const drawRest = () => {
	put(rest, JSON.stringify([now.files, now.saved, now.losses]),
		page.savedTable(now.saved, now.saved_omitted_cnt, "pid/", false),
		page.section("Probes", "own: each process has its own links; event: processes share one event; all: one link for all processes of the machine",
			page.table([["File", "where"], ["Attached"], ["Processes", "num"], ["Cost of a hit", "num"]],
				now.files.map((f) => [f.path, f.sharing, String(f.process_cnt), f.hit_us.toFixed(2) + " \u00b5s"]))),
		page.lossList(now.losses));
};
const draw = () => {
	for (const [key, th] of heads) {
		if (key !== chosen.sort) th.removeAttribute("aria-sort");
		else th.setAttribute("aria-sort", (key === "name") !== chosen.up ? "ascending" : "descending");
	}
	by.value = chosen.by;
	sort.value = chosen.sort;
	drawCards();
	drawNotes();
	drawRows();
	drawRest();
};
recall();
search.value = chosen.find;
app.replaceChildren(notes,
	el("div", { class: "cards" }, makeCard("followed", "Tracked"), makeCard("total", "In use"), makeCard("growing", "Growing"),
		makeCard("near", "Near their limit"), makeCard("unknown", "Unknown")),
	el("div", { class: "tools" }, search, byLabel, sortLabel, hits),
	el("div", { class: "sheet" }, el("table", { class: "list" },
		el("thead", {}, el("tr", {}, heads.map(([, th]) => th), el("th", { class: "c-go" }))), body), empty),
	rest);
document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	const is_typing = event.target.tagName === "INPUT" || event.target.tagName === "SELECT";
	if (event.key === "/" && !is_typing) { event.preventDefault(); search.focus(); }
	if (event.key === "Escape" && event.target === search) { search.value = chosen.find = ""; remember(); draw(); }
});
const rate = el("p", { class: "dim" });
app.append(rate);
const show = (data) => {
	now = data;
	setText(rate, (data.rate_bytes <= 1 ? "Every allocation is recorded. " : `One sample per ${bytes(data.rate_bytes)} allocated, on average: values are estimates. `) +
		`Allocations from before a process was tracked are not included. heaptap ${data.version}.`);
	draw();
	const pids = new Set(data.processes.map((p) => p.pid));
	for (const [key, made] of rows) if (!made.p.list && !pids.has(key)) { rows.delete(key); opened.delete(key); }
	if (first !== null && !pids.has(first)) { first = null; drawRows(); }
};
const { again } = page.live(show);
// For tests: what is shown.
window.heaptap = { chosen, draw, show, again };
})();
