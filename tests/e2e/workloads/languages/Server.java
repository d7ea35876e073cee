// SPDX-License-Identifier: MIT
// For the manual: direct buffers of 20 000 bytes, and as much on the Java heap, which is not seen.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

public class Server {
	static final List<Object> kept = new ArrayList<>();

	static void loadDocument() {
		kept.add(ByteBuffer.allocateDirect(20000));
	}

	static void parse() {
		kept.add(new byte[20000]);
	}

	public static void main(String[] args) throws Exception {
		System.out.println("READY");
		for (int i = 0;; i++) {
			loadDocument();
			parse();
			if (i > 3000) // compiled by now: its name is in the map
				Thread.sleep(2);
			if (kept.size() > 2000)
				kept.clear();
		}
	}
}
