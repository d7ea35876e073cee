// SPDX-License-Identifier: MIT
// The page of a process with an hour of made-up readings by row, one of which failed, as an expression for browser.py.
(() => {
	const names = ["live", "trimmable", "pinned", "kept", "own", "anonymous", "stacks", "files", "data", "kernel"], t = Date.now(), MiB = 1 << 20;
	const size = (k, i) => i === 10 ? null : (names.length - k) * MiB + i * 1000;
	const points = { times_ms: Array.from({ length: 30 }, (_, i) => t - (29 - i) * 60000), bytes: {} };
	names.forEach((name, k) => { points.bytes[name] = points.times_ms.map((_, i) => size(k, i)); });
	const list = names.map((row, k) => ({ row, what: `<b>what ${row}</b>`, bytes: size(k, 29) }));
	heaptap.setRows({ time_ms: t, took_ms: 5, rss_bytes: list.reduce((all, row) => all + row.bytes, 0), list, hour: points, day: points });
	const part = document.getElementById("rows"), chart = part.querySelector("svg"), box = chart.getBoundingClientRect(), paths = [...chart.querySelectorAll("path")];
	const runs = new Set(paths.map((path) => path.getAttribute("d").split("M").length - 1));
	// Areas lie on each other: where one ends, the next begins.
	const ends = paths.map((path) => path.getAttribute("d").match(/^M[\d.]+ ([\d.]+)/)[1]), begins = paths.map((path) => path.getAttribute("d").match(/([\d.]+)Z/)[1]);
	const is_stacked = begins.slice(1).every((y, i) => y === ends[i]) && +ends[ends.length - 1] < +ends[0];
	const say = (part) => { chart.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + part * box.width, clientY: box.top + 50, bubbles: true })); return document.querySelector("#rows .chart-said").innerText; };
	const newest = say(1), failed = say((68 + 10 / 29 * (box.width - 82)) / box.width);
	heaptap.setRows({ why_not: "denied", hour: points, day: points });
	const without = part.innerText.includes("Unknown: denied.") && !part.querySelector("table");
	heaptap.setRows(undefined);
	return `bands ${paths.length} runs ${[...runs]} stacked ${is_stacked} newest ${newest.replace(/^[^\u00b7]*/, "")} failed ${failed.includes("unknown")} without ${without} hidden ${part.hidden} markup ${part.querySelectorAll("b b, td b").length}`;
})()
