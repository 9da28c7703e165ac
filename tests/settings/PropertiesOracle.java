import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;

/** Reads hex-encoded UTF-8 texts, one a line; prints what java.util.Properties makes of each. */
class PropertiesOracle {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            byte[] text = HexFormat.of().parseHex(lines.nextLine());
            Properties properties = new Properties();
            StringBuilder answer = new StringBuilder();
            try {
                properties.load(new StringReader(new String(text, StandardCharsets.UTF_8)));
                for (var entry : new TreeMap<>(properties).entrySet()) {
                    answer.append(hex(entry.getKey())).append('=').append(hex(entry.getValue()));
                    answer.append(' ');
                }
            } catch (IllegalArgumentException malformed) {
                answer.append("malformed");
            }
            System.out.println(answer.toString().trim());
        }
    }

    private static String hex(Object text) {
        return HexFormat.of().formatHex(text.toString().getBytes(StandardCharsets.UTF_8));
    }
}
