// SPDX-License-Identifier: MIT
// What holds on every screen, as an expression for browser.py: a line for each fault, and "checked N" at the end.
(async () => {
	const faults = [], wait = (ms) => new Promise((done) => setTimeout(done, ms));
	const name = (node) => `${node.tagName}.${node.getAttribute("class") || ""} "${node.textContent.trim().slice(0, 30)}"`;
	await wait(600);
	if (document.documentElement.scrollWidth > innerWidth)
		faults.push(`overflow: ${document.documentElement.scrollWidth} of ${innerWidth} pixels`);

	// Contrast, as in WCAG 2: 4.5 for text, 3 for large text.
	const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (color) => {
		pixel.clearRect(0, 0, 1, 1);
		pixel.fillStyle = color;
		pixel.fillRect(0, 0, 1, 1);
		return pixel.getImageData(0, 0, 1, 1).data;
	};
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((all, v, i) => all + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (node) => {
		for (; node; node = node.parentElement) {
			const color = rgba(getComputedStyle(node).backgroundColor);
			if (color[3] > 250) return color;
		}
		return rgba("#fff");
	};
	let cnt = 0;
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text = walk.nextNode(); text; text = walk.nextNode()) {
		const node = text.parentElement, style = getComputedStyle(node), box = node.getBoundingClientRect();
		if (!text.data.trim() || !box.width || ["SCRIPT", "NOSCRIPT", "OPTION", "STYLE", "TITLE", "title"].includes(node.tagName)) continue;
		const is_svg = node instanceof SVGElement, a = light(rgba(is_svg ? style.fill : style.color)), b = light(ground(node));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), px = parseFloat(style.fontSize);
		const is_large = px >= 24 || (px >= 18.66 && +style.fontWeight >= 700);
		if (ratio < (is_large ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)}: ${name(node)}`);
		cnt++;
	}
	for (const node of document.querySelectorAll("td.num"))
		if (getComputedStyle(node).whiteSpace !== "nowrap") faults.push(`digits may wrap: ${name(node)}`);
	// What belongs together stands together: a column of digits is as wide as they are, and the head begins where the page does.
	const width = (node) => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect().width; };
	for (const table of innerWidth > 640 ? document.querySelectorAll(".wide-table table") : []) for (const th of table.querySelectorAll("th.num")) {
		const column = [...table.rows].map((row) => row.cells[th.cellIndex]).filter(Boolean);
		if (th.clientWidth > Math.max(...column.map(width)) + 60) faults.push(`far from its words: ${name(th)}`);
	}
	const brand = document.querySelector("header .brand"), first = document.querySelector("main > *");
	if (brand && first && Math.abs(brand.getBoundingClientRect().left - first.getBoundingClientRect().left) > 1) faults.push(`not in line: ${name(brand)}`);
	for (const node of document.querySelectorAll(".card *"))
		if (node.scrollWidth > node.clientWidth) faults.push(`cut: ${name(node)}`);
	// What can be clicked can be reached and named.
	for (const node of document.querySelectorAll("*")) {
		if (node.onclick && node.tabIndex < 0) faults.push(`not by keyboard: ${name(node)}`);
		if (["BUTTON", "A", "INPUT", "SELECT"].includes(node.tagName) && node.getClientRects().length &&
			!(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length)) faults.push(`without a name: ${name(node)}`);
	}
	if (document.images.length || document.querySelector("i[onload]")) faults.push("a name is markup");
	// A refresh moves nothing.
	let shift = 0;
	const observer = new PerformanceObserver((list) => { for (const one of list.getEntries()) shift += one.value; });
	observer.observe({ type: "layout-shift" });
	if (window.heaptap && heaptap.again) for (let i = 0; i < 2; i++) { await heaptap.again(); await wait(300); }
	observer.disconnect();
	if (shift > 0.001) faults.push(`a refresh moves the page: ${shift.toFixed(4)}`);
	const paint = performance.getEntriesByName("first-contentful-paint")[0];
	return [...faults.slice(0, 12), `checked ${cnt} texts, painted after ${paint ? paint.startTime.toFixed(0) : "?"} ms`].join("\n");
})()
