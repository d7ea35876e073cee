// SPDX-License-Identifier: MIT
// hold.cs - holds 80 MB of .NET's own objects when it is told to.
using System;
using System.Collections.Generic;

class Hold
{
	static void Main()
	{
		var keep = new List<object>();
		Console.WriteLine("READY");
		for (int lines = 0; Console.ReadLine() != null && lines == 0; lines++) {
			long before = GC.GetTotalMemory(true);
			for (int i = 0; i < 400000; i++)
				keep.Add(new int[42]);
			Console.WriteLine("EXPECT {0}", GC.GetTotalMemory(true) - before);
			Console.WriteLine("DONE");
		}
		GC.KeepAlive(keep);
	}
}
