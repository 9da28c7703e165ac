import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What Kafka's own client says of a cluster, a line for each question. */
class RemoteClusters {
    public static void main(String[] args) {
        try {
            ask(args);
        } catch (Throwable thrown) {
            thrown.printStackTrace();  // the launcher stumbles over a short stack trace
            System.exit(1);
        }
    }

    private static void ask(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        for (int i = 4; i < args.length; i += 2) {
            config.put(args[i], args[i + 1]);
        }
        print("heartbeats", new TreeSet<>(RemoteClusterUtils.heartbeatTopics(config)));
        print("checkpoints", new TreeSet<>(RemoteClusterUtils.checkpointTopics(config)));
        print("upstream", new TreeSet<>(RemoteClusterUtils.upstreamClusters(config)));
        for (String alias : args[1].split(",")) {
            print("hops " + alias, RemoteClusterUtils.replicationHops(config, alias));
        }
        for (String alias : args[2].split(",")) {  // a topic that is missing would be waited for
            for (String group : args[3].split(",")) {
                var offsets = new TreeMap<String, String>();
                RemoteClusterUtils.translateOffsets(config, alias, group, Duration.ofSeconds(10))
                    .forEach((tp, at) -> offsets.put(tp.toString(), at.offset() + "/" + at.metadata()));
                print("offsets " + alias + " " + group, offsets);
            }
        }
    }

    private static void print(String question, Object answer) {
        System.out.println(question + ": " + answer);
    }
}
