// SPDX-License-Identifier: MIT
// Drags over a part of the chart, as an expression for browser.py: "changed", the rows that it then shows, and the address.
(async () => {
	const wait = (ms) => new Promise((done) => setTimeout(done, ms));
	await wait(500);
	const chart = document.querySelector(".chart svg"), box = chart.getBoundingClientRect();
	if (!heaptap.chart.points.length) return "no chart yet";
	const event = (type, part) => chart.dispatchEvent(new PointerEvent(type, { clientX: box.left + part * box.width, clientY: box.top + 99, button: 0,
		pointerId: 1, pointerType: "touch", bubbles: true }));
	document.querySelector(".changed").replaceChildren();
	event("pointerdown", 0.09);
	event("pointermove", 0.5);
	event("pointermove", 0.98);
	event("pointerup", 0.98);
	for (let i = 0; i < 50 && !document.querySelector(".changed table"); i++) await wait(100);
	return `changed ${document.querySelector(".changed").innerText.replace(/\s+/g, " ")} ${location.hash}`;
})()
