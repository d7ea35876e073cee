/* SPDX-License-Identifier: MIT */
/*
 * page.js - what the pages of heaptap serve share: numbers and times as people write them, elements, lines, and fetching
 * the data again.
 *
 * Plain JavaScript; nothing is fetched but from this server. Names are foreign: they reach the page as text only, by el().
 */
"use strict";
const page = (() => {
// ---- numbers and times ----
const bytes = (n) => {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	let i = 0, a = Math.abs(n);
	while (a >= 1023.5 && i < 6) { a /= 1024; i++; }
	return (n < 0 ? "\u2212" : "") + (i && a < 999.5 ? a.toPrecision(3) : a.toFixed(0)) + " " + units[i];
};
const signedBytes = (n) => (n > 0 ? "+" : "") + bytes(n);
const count = (n) => {
	let i = 0, a = Math.abs(n);
	while (a >= 999.5 && i < 4) { a /= 1000; i++; }
	return (i ? a.toPrecision(3) : a.toFixed(0)) + ["", "k", "M", "G", "T"][i];
};
const percent = (share) => {
	const n = 100 * share;
	return (n <= 0 ? "0" : n < 0.01 ? "<0.01" : n < 1 ? n.toFixed(2) : n < 10 ? n.toFixed(1) : n.toFixed(0)) + " %";
};
// In the reader's zone; with the day if it is not today.
const when = (ms, seconds = true) => {
	const at = new Date(ms), is_today = at.toDateString() === new Date().toDateString();
	const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
	return is_today ? time : at.toLocaleDateString([], { day: "numeric", month: "short" }) + " " + time;
};
const whenExactly = (ms) => new Date(ms).toLocaleString([], { dateStyle: "full", timeStyle: "long" });
const span = (s) => s < 90 ? s.toFixed(0) + " s" : s < 5400 ? (s / 60).toFixed(0) + " min" :
	s < 129600 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(1) + " d";
// As the server takes times: UTC, whole seconds.
const utc = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";

// ---- elements ----
// Controls, and marks that turn the direction of writing, would move or hide letters.
const harmless = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
const fill = (node, attrs, children) => {
	for (const [key, value] of Object.entries(attrs || {})) {
		if (value === undefined || value === null || value === false) continue;
		if (typeof value === "function") node[key] = value;
		else node.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : harmless(value));
	}
	for (const child of children.flat()) {
		if (child === undefined || child === null || child === false) continue;
		node.append(child instanceof Node ? child : harmless(child));
	}
	return node;
};
const el = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);
const svg = (tag, attrs, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
// To set what is already there would cost a layout.
const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const time = (ms, seconds) => el("time", { datetime: new Date(ms).toISOString(), title: whenExactly(ms) }, when(ms, seconds));

// ---- lines ----
// Paths of a line and of the area below it; points [x, y or null], gaps stay open.
const paths = (points, floor) => {
	let line = "", area = "", run = [];
	const end = () => {
		if (!run.length) return;
		if (run.length === 1) run.push([run[0][0] + 1, run[0][1]]); // a single point is seen, too
		const text = run.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L");
		line += "M" + text;
		area += `M${run[0][0].toFixed(1)} ${floor}L${text}L${run[run.length - 1][0].toFixed(1)} ${floor}Z`;
		run = [];
	};
	for (const [x, y] of points) if (y === null) end(); else run.push([x, y]);
	end();
	return { line, area };
};

// ---- what a process says of itself, in both pages ----
const trends = {
	grows: ["grows", "Heap in use keeps growing."],
	grew: ["grew, now flat", "Heap in use grew, then stayed level."],
	steady: ["steady", "Changes are within its usual fluctuations, or the sampling error."],
	shrinks: ["shrinks", "Heap in use keeps shrinking."],
};
const OOM_NEAR = 0.9;
const limitShare = (p) => p.limit_bytes > 0 && p.limit_used_bytes !== undefined ? p.limit_used_bytes / p.limit_bytes : 0;
const isNear = (p) => limitShare(p) >= OOM_NEAR;
// [words, kind, what it means]; the texts are the server's where it has one.
const badges = (p) => [
	p.is_inuse_unknown && ["unknown", "note", p.inuse_note],
	!p.is_inuse_unknown && p.inuse_note && ["partial", "note", "In use: " + p.inuse_note],
	isNear(p) && [`OOM near: ${percent(limitShare(p))}`, "bad",
		`Its control group uses ${bytes(p.limit_used_bytes)} of its limit of ${bytes(p.limit_bytes)}.`],
	p.growth_note && ["unexplained growth", "warn", p.growth_note],
	p.step && !p.is_inuse_unknown && [p.step, "warn", "Probes would exceed the overhead limit, so the recording is less precise."],
	p.is_tapped && ["tapped", "good", "Its allocator is tapped: about 1 % of its CPU time."],
].filter(Boolean);

// ---- the data, again and again ----
// Without the credentials that a browser keeps in the address of a page: fetch() would refuse them.
const address = (path) => new URL(path, location.origin + location.pathname).href;
const get = async (path) => {
	const answer = await fetch(address(path), { cache: "no-store", headers: { Accept: "*/*" } });
	if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
	return answer;
};
const data = () => JSON.parse(document.getElementById("data").textContent);
// Call show(data) now, and with new data every period until paused.
const live = (show) => {
	const state = document.getElementById("state"), said = el("span"), button = el("button", { type: "button" });
	const period = +document.body.dataset.live || 10;
	let is_paused = !+document.body.dataset.live, timer = 0, is_over = false;
	const say = (text, kind) => { state.className = kind; said.textContent = text; button.textContent = is_paused ? "Resume" : "Pause"; };
	const plan = () => { clearTimeout(timer); if (!is_paused && !is_over) timer = setTimeout(again, period * 1000); };
	const again = async () => {
		if (document.hidden) { plan(); return; }
		try {
			show(await (await get("api")).json());
			if (!is_paused) say(`Auto-refresh ${period} s`, "");
		} catch (e) {
			is_over = e.status === 404;
			say(is_over ? "No longer tracked" : "No answer, retrying", "lost");
			button.hidden = is_over;
		}
		plan();
	};
	const pause = (yes) => {
		is_paused = yes;
		say(is_paused ? "Paused" : `Auto-refresh ${period} s`, is_paused ? "paused" : "");
		if (is_paused) clearTimeout(timer); else again();
	};
	button.onclick = () => pause(!is_paused);
	state.replaceChildren(said, button);
	show(data());
	say(is_paused ? "Paused" : `Auto-refresh ${period} s`, is_paused ? "paused" : "");
	plan();
	return { again, pause };
};

// ---- tables that both pages have ----
// On a narrow screen a row is a paragraph, in which each cell says what it is.
const labelCells = (node) => {
	const labels = [...node.querySelectorAll("th")].map((th) => th.textContent);
	for (const row of node.querySelectorAll("tr")) [...row.querySelectorAll("td")].forEach((td, i) => { td.dataset.label = labels[i]; });
	return node;
};
const table = (heads, rows) => el("div", { class: "sheet wide-table" }, labelCells(el("table", {},
	el("thead", {}, el("tr", {}, heads.map(([text, css]) => el("th", { class: css, scope: "col" }, text)))),
	el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el("td", { class: heads[i][1] }, cell))))))));
const section = (title, note, ...content) => el("section", {}, el("h2", {}, title, note && el("small", {}, note)), content);
// base: of links to /pid/.
const savedTable = (saved, omitted, base, of_one) => {
	if (!saved) return null;
	const rows = saved.map((s) => {
		const at = `${base}${s.pid}/`;
		return [time(s.time_ms), el("span", {}, s.name, " ", el("small", {}, `PID ${s.pid}`)), s.why,
			s.inuse_bytes === undefined ? "unknown" : bytes(s.inuse_bytes), bytes(s.bytes),
			el("span", {}, el("a", { href: `${at}viewer?at=${s.at}` }, "Flame graph"), " \u00b7 ",
				s.at === "last" ? null : [el("a", { href: `${at}diff?at=${s.at}` }, "Compare with now"), " \u00b7 "],
				el("a", { href: `${at}debug/pprof/heap?at=${s.at}` }, "pprof"))];
	});
	return section("Saved profiles", omitted ? `and ${omitted} older ones` : of_one ? "of this process and others of its name" : "",
		rows.length ? table([["Taken"], ["Process", "name"], ["Why"], ["In use", "num"], ["File", "num"], ["Open", "go"]], rows) :
			el("div", { class: "sheet empty" }, "None yet."));
};
const lossList = (losses) => section("Losses", "", el("div", { class: "sheet" }, losses.length ?
	el("ul", { class: "losses" }, losses.map((l) => el("li", {}, `${count(l.value)} ${l.what}`))) :
	el("div", { class: "empty" }, "Nothing was lost.")));

return { bytes, signedBytes, count, percent, when, span, utc, time, el, svg, setText, paths, trends, limitShare, isNear, badges,
	address, get, live, labelCells, table, section, savedTable, lossList };
})();
