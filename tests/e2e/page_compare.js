// SPDX-License-Identifier: MIT
// Compares with the first other process that the page of a process offers, as an expression for browser.py.
(async () => {
	const wait = (ms) => new Promise((done) => setTimeout(done, ms));
	await wait(500);
	const from = document.querySelector("select[aria-label=From]"), option = [...from.options].find((one) => one.value.startsWith("@"));
	if (!option) return "nothing to compare with";
	from.value = option.value;
	from.onchange();
	document.querySelector(".changed").replaceChildren();
	document.querySelector(".compare button.main").click();
	for (let i = 0; i < 50 && !document.querySelector(".changed table"); i++) await wait(100);
	return `with ${option.text}: ${document.querySelector(".changed").innerText.replace(/\s+/g, " ")} picture ${document.querySelector(".compare a").getAttribute("href")} ${location.hash}`;
})()
