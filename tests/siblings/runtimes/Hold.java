import java.util.*;
// objects in the JVM's own heap
public class Hold {
	public static void main(String[] a) throws Exception {
		List<byte[]> keep = new ArrayList<>();
		Scanner in = new Scanner(System.in);
		System.out.println("READY");
		in.nextLine();
		for (int i = 0; i < 30000; i++)
			keep.add(new byte[1000]);
		System.out.println("EXPECT " + keep.size() * 1000);
		System.out.println("DONE");
		in.nextLine();
	}
}
