// SPDX-License-Identifier: MIT
// The chart of a process with an hour of made-up readings by row, one of which failed, as an expression for browser.py.
(() => {
	const names = ["live", "trimmable", "pinned", "kept", "own", "anonymous", "stacks", "files", "data", "kernel"], t = Date.now(), MiB = 1 << 20;
	const size = (k, i) => i === 10 ? null : (names.length - k) * MiB + i * 1000;
	const points = { times_ms: Array.from({ length: 30 }, (_, i) => t - (29 - i) * 60000), bytes: {} };
	names.forEach((name, k) => { points.bytes[name] = points.times_ms.map((_, i) => size(k, i)); });
	const list = names.map((row, k) => ({ row, what: `<b>what ${row}</b>`, bytes: size(k, 29) })), rss = list.reduce((all, row) => all + row.bytes, 0);
	const past = { step_s: 10, inuse: Array(175).fill(9 * MiB), resident: Array(175).fill(rss) };
	const rows = { time_ms: t, took_ms: 5, rss_bytes: rss, list, hour: points, day: points };
	heaptap.set({ past_until_ms: t, hour: past, rows });
	const chart = document.querySelector(".chart svg"), box = chart.getBoundingClientRect(), bands = () => [...chart.querySelectorAll("path.row")], paths = bands();
	const runs = new Set(paths.map((path) => path.getAttribute("d").split("M").length - 1));
	// Areas lie on each other: where one ends, the next begins.
	const ends = paths.map((path) => path.getAttribute("d").match(/^M[\d.]+ ([\d.]+)/)[1]), begins = paths.map((path) => path.getAttribute("d").match(/([\d.]+)Z/)[1]);
	const is_stacked = begins.slice(1).every((y, i) => y === ends[i]) && +ends[ends.length - 1] < +ends[0];
	const right = (css) => +chart.querySelector(css).getAttribute("d").match(/ ([\d.]+)$/)[1], is_within = right("path.rss") < right("path.inuse");
	const say = (part) => { chart.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + part * box.width, clientY: box.top + 50, bubbles: true })); return document.querySelector(".legend.bands").innerText.replace(/\s+/g, " "); };
	const newest = say(1), failed = say((68 + (10 * 60 - 10) / 1740 * (box.width - 82)) / box.width);
	const fold = document.querySelector(".legend .fold");
	fold.click();
	const is_folded = !bands().length && !document.querySelector(".legend.bands").innerText && document.querySelector(".legend .fold").getAttribute("aria-expanded") === "false";
	document.querySelector(".legend .fold").click();
	const part = document.getElementById("rows"), markup = part.querySelectorAll("b b, td b").length;
	heaptap.set({ rows: { why_not: "denied", hour: points, day: points } });
	const without = part.innerText.includes("Unknown: denied.") && !part.querySelector("table") && bands().length === paths.length;
	heaptap.set({ rows: undefined });
	return `bands ${paths.length} runs ${[...runs]} stacked ${is_stacked} within ${is_within} newest ${newest} failed ${/live unknown/.test(failed)} folded ${is_folded} without ${without} hidden ${part.hidden && !bands().length} markup ${markup}`;
})()
