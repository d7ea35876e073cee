// SPDX-License-Identifier: MIT
// Chooses a process on the index to compare another one with, as an expression for browser.py: what the rows offer then.
(async () => {
	const wait = (ms) => new Promise((done) => setTimeout(done, ms));
	const offers = () => [...document.querySelectorAll(".list tbody .pick")].map((one) =>
		`${one.innerText}=${one.getAttribute("href") || one.getAttribute("aria-pressed")}`).join(" ");
	await wait(500);
	const before = offers();
	document.querySelector(".list tbody button.pick").click();
	await heaptap.again();
	const then = offers();
	document.querySelector(".list tbody button.pick").click();
	return `${before} / ${then} / ${offers()}`;
})()
