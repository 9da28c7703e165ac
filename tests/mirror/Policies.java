import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;

/** What Kafka's replication policies make of names: a line for each line of the input. */
class Policies {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = lines.readLine()) != null) {
            String[] words = line.split("\t", -1);  // class, separator, internal one, alias, topic
            DefaultReplicationPolicy policy = words[0].equals("IdentityReplicationPolicy")
                ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
            policy.configure(Map.of(
                "replication.policy.separator", words[1],
                "replication.policy.internal.topic.separator.enabled", words[2],
                "source.cluster.alias", words[3]));
            String alias = words[3], topic = words[4];
            System.out.println(String.join("\t",
                policy.formatRemoteTopic(alias, topic),
                String.valueOf(policy.topicSource(topic)),
                String.valueOf(policy.upstreamTopic(topic)),
                policy.originalTopic(topic),
                policy.offsetSyncsTopic(alias),
                policy.checkpointsTopic(alias),
                String.valueOf(policy.isHeartbeatsTopic(topic)),
                String.valueOf(policy.isCheckpointsTopic(topic)),
                String.valueOf(policy.isMM2InternalTopic(topic)),
                String.valueOf(policy.isInternalTopic(topic))));
        }
    }
}
