// SPDX-License-Identifier: MIT
// The chart of the largest stacks, of made-up numbers, and the flame graph that a row of the table opens in the page, as an
// expression for browser.py.
(async () => {
	const wait = (ms) => new Promise((done) => setTimeout(done, ms)), numbers = (of) => Array.from({ length: 12 }, (_, i) => of(i)).join(" ");
	await wait(500);
	const table = document.querySelector(".growth.by-stack"), where = table && table.querySelector("td.where");
	if (!where) return "no table";
	const top = document.getElementById("top");
	delete table.dataset.ages;
	heaptap.drawTop();
	const is_hidden = top.hidden;
	table.dataset.ages = numbers((i) => 110 - 10 * i);
	where.parentElement.dataset.means = numbers((i) => (i + 1) << 20);
	heaptap.drawTop();
	const drawn = `hidden ${is_hidden} ${top.hidden} lines ${top.querySelectorAll("path").length} ${top.innerText.replace(/\s+/g, " ")}`;
	where.querySelector("a").click();
	const frame = heaptap.frame, said = () => frame.contentDocument?.getElementById("where")?.textContent || "";
	for (let i = 0; i < 200 && !/function/.test(said()); i++) await wait(100);
	return `${drawn} open ${frame.parentElement.open} says ${said()} nav ${frame.contentDocument.querySelector("nav")?.hidden}`;
})()
