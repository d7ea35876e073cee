// SPDX-License-Identifier: MIT
// For the manual: Buffers of 20 000 bytes, and objects on V8's heap, which are not seen.
'use strict';
const kept = [];

function loadDocument() {
	kept.push(Buffer.alloc(20000, 1));
}

function parse() {
	kept.push({ text: 'x'.repeat(100) + kept.length });
}

console.log('READY');
setInterval(() => {
	for (let i = 0; i < 10; i++) {
		loadDocument();
		parse();
	}
	if (kept.length > 4000)
		kept.length = 0;
}, 5);
