// SPDX-License-Identifier: MIT
// Direct buffers, asked for by a function that is compiled before the recording begins.

import java.nio.ByteBuffer;
import java.util.ArrayDeque;

public class JitDirect {
	static ArrayDeque<ByteBuffer> held = new ArrayDeque<>();

	static void plantedDirect(int bytes) {
		held.add(ByteBuffer.allocateDirect(bytes));
		if (held.size() > 1000)
			held.removeFirst();
	}

	static void round(int cnt) {
		for (int i = 0; i < cnt; i++)
			plantedDirect(1000 + i % 1000);
	}

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 100; i++)
			round(200);
		System.out.println("READY");
		for (;;) {
			round(50);
			Thread.sleep(5);
		}
	}
}
