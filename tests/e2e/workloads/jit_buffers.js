// SPDX-License-Identifier: MIT
// Buffers that have memory of their own, asked for by a function.
'use strict';
const held = [];

function plantedBuffer(bytes) {
	held.push(Buffer.allocUnsafeSlow(bytes));
	if (held.length > 1000)
		held.shift();
}

function round(cnt) {
	for (let i = 0; i < cnt; i++)
		plantedBuffer(1000 + i % 1000);
}

for (let i = 0; i < 100; i++)
	round(100);
console.log('READY');
setInterval(() => round(50), 5);
