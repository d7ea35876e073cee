// SPDX-License-Identifier: MIT
// What holds of a page on paper, as an expression for browser.py: a line for each fault, and "printed" at the end.
(async () => {
	const faults = [], pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const lightness = (color) => {
		pixel.clearRect(0, 0, 1, 1);
		pixel.fillStyle = color;
		pixel.fillRect(0, 0, 1, 1);
		const [r, g, b] = pixel.getImageData(0, 0, 1, 1).data;
		return (r + g + b) / 3;
	};
	await new Promise((done) => setTimeout(done, 600));
	if (document.documentElement.scrollWidth > innerWidth) faults.push(`cut: ${document.documentElement.scrollWidth} of ${innerWidth} pixels`);
	if (lightness(getComputedStyle(document.body).backgroundColor) < 255) faults.push("the ground is not white");
	for (const node of document.querySelectorAll("h1, h2, td, .card b"))
		if (node.getClientRects().length && lightness(getComputedStyle(node).color) > 140) faults.push(`pale: ${node.tagName} ${node.textContent.slice(0, 30)}`);
	for (const node of document.querySelectorAll(".legend i, #legend i, .list td.c-bar *"))
		if (getComputedStyle(node).printColorAdjust !== "exact") { faults.push("colours are left out"); break; }
	const picture = document.getElementById("picture");
	if (picture) { // a frame of the flame graph is light, and black on it is read
		const [r, g, b] = picture.getContext("2d").getImageData(picture.width / 2, 3, 1, 1).data;
		if (r + g + b < 3 * 150) faults.push("a dark flame graph");
	}
	return [...faults.slice(0, 8), "printed"].join("\n");
})()
