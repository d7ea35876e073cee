// SPDX-License-Identifier: MIT
// library.js NAME - like library.py, for add-ons of Node.
'use strict';
const fs = require('fs');
const keep = [];
const source = (n) => Array.from({ length: n }, (_, i) => `export function f${i}(a, b) { return a * ${i} + b; }`).join('\n');
const held = () => keep.reduce((sum, part) => sum + (part.length || 0), 0);

const kinds = {
	// its own counter: pages of the database, all from malloc
	'better-sqlite3': () => {
		const db = new (require('better-sqlite3'))(':memory:');
		db.exec('create table t (a integer primary key, b text)');
		const pages = () => db.pragma('page_count', { simple: true }) * db.pragma('page_size', { simple: true });
		return [() => {
			const put = db.prepare('insert into t (b) values (?)');
			db.transaction(() => { for (let i = 0; i < 60000; i++) put.run('text '.repeat(80) + i); })();
		}, pages];
	},
	// raw pictures, which libvips allocated
	sharp: () => {
		const sharp = require('sharp');
		sharp.cache(false);
		const one = (n) => sharp({ create: { width: 1500, height: 1000 + n, channels: 3, background: 'red' } }).raw().toBuffer();
		return [async () => { for (let i = 0; i < 10; i++) keep.push(await one(i)); }, held, () => one(0)];
	},
	// What these hold when they have answered is nothing: nobody counts it. Their answers are held.
	'@swc/core': () => {
		const swc = require('@swc/core');
		return [() => { for (let i = 0; i < 3; i++) keep.push(swc.transformSync(source(4000 + i)).code); }, () => -1];
	},
	'oxc-parser': () => {
		const oxc = require('oxc-parser');
		return [() => { for (let i = 0; i < 3; i++) keep.push(oxc.parseSync('a.js', source(4000 + i))); }, () => -1];
	},
	lightningcss: () => {
		const { transform } = require('lightningcss');
		// what a vector of Rust reserves: the next power of two
		const reserved = () => keep.reduce((sum, part) => sum + 2 ** Math.ceil(Math.log2(part.length)), 0);
		const css = (n) => Buffer.from(Array.from({ length: 6000 }, (_, i) => `.c${i} { width: ${i + n}px }`).join('\n'));
		return [() => { for (let i = 0; i < 60; i++) keep.push(transform({ filename: 'a.css', code: css(i % 3), minify: true }).code); },
			reserved, () => transform({ filename: 'a.css', code: css(0) })];
	},
	'@rspack/core': () => {
		const { rspack } = require('@rspack/core');
		const folder = process.argv[3];
		for (let i = 0; i < 200; i++) fs.writeFileSync(`${folder}/m${i}.js`, source(50));
		fs.writeFileSync(`${folder}/index.js`, Array.from({ length: 200 }, (_, i) => `import * as m${i} from './m${i}.js'; console.log(m${i});`).join('\n'));
		return [() => new Promise((done, failed) => {
			const c = rspack({ context: folder, entry: './index.js', mode: 'development', output: { path: folder + '/out' } });
			keep.push(c);
			c.run((err) => err ? failed(err) : done());
		}), () => -1];
	},
	// objects of V8 itself
	v8: () => [() => { for (let i = 0; i < 400000; i++) keep.push({ a: i, b: [i], length: 80 }); }, held],
};

(async () => {
	let work, count, warm;
	try {
		[work, count, warm] = kinds[process.argv[2]]();
	} catch (e) {
		console.error(String(e));
		process.exit(77);
	}
	if (warm) await warm();
	const before = count();
	let lines = 0;
	console.log('READY');
	process.stdin.on('data', async () => {
		if (lines++) process.exit(0);
		await work();
		console.log('EXPECT', count() < 0 ? -1 : count() - before);
		console.log('DONE');
	});
	process.stdin.on('end', () => process.exit(0));
})();
