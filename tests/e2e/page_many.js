// SPDX-License-Identifier: MIT
// The index with 300 processes that are made up, as an expression for browser.py.
(() => {
	const { chosen, draw, show } = heaptap, data = JSON.parse(document.getElementById("data").textContent);
	const rows = () => [...document.querySelectorAll(".list tbody tr")];
	data.processes = Array.from({ length: 300 }, (_, i) => ({ pid: i + 1, name: "name" + i % 8, exe: "/bin/x" + i, inuse_bytes: i * 1e6, rss_bytes: 1e9, overhead: 0.01,
		growth: { trend: i % 4 ? "steady" : "grows", bytes_per_min: 1000, minutes: 59 }, past: { seconds: 3590, top_bytes: 1e6, points: Array(40).fill(i % 100) } }));
	Object.assign(data.processes[7], { inuse_bytes: undefined, is_inuse_unknown: true });
	data.is_paused = false;
	const begin = performance.now();
	chosen.by = "none";
	show(data);
	const took = performance.now() - begin, all = rows().length, compared = document.querySelectorAll(".list .pick").length; // what is unknown is not
	chosen.sort = "name";
	chosen.up = false;
	draw();
	const names = rows().map((row) => row.querySelector("a").textContent), is_sorted = names.every((name, i) => !i || names[i - 1] <= name);
	const search = document.querySelector("input[type=search]");
	search.value = "name3";
	search.oninput();
	const found = rows().length;
	search.value = "";
	search.oninput();
	document.querySelectorAll("button.card")[0].click();
	const growing = rows().length;
	document.querySelectorAll("button.card")[0].click();
	chosen.by = "name";
	draw();
	const groups = rows().length;
	document.querySelector(".fold").click();
	const is_folded = rows().length > groups && document.querySelector(".fold").getAttribute("aria-expanded") === "true";
	return `drawn in ${took.toFixed(0)} ms rows ${all} found ${found} groups ${groups} growing ${growing} sorted ${is_sorted} folded ${is_folded} compared ${compared}`;
})()
