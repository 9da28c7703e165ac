import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.connect.mirror.MirrorCheckpointTaskConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceTaskConfig;

/** The metrics of MirrorMaker 2 under both names, a line for each, and what its key accepts. */
class MetricNames {
    private static final String PACKAGE = "org.apache.kafka.connect.mirror.";
    private static final TopicPartition PARTITION = new TopicPartition("A.orders", 0);

    public static void main(String[] args) throws Exception {
        Map<String, String> config = Map.of(
            "name", "MirrorSourceConnector",
            "connector.class", PACKAGE + "MirrorSourceConnector",
            "source.cluster.alias", "A",
            "target.cluster.alias", "B",
            "task.assigned.partitions", "orders-0",
            "task.assigned.groups", "readers");
        var source = new MirrorSourceTaskConfig(config);
        var checkpoints = new MirrorCheckpointTaskConfig(config);
        print("legacy", registryOf(make("MirrorSourceLegacyMetrics", source)));
        print("legacy", registryOf(measured(make("MirrorCheckpointLegacyMetrics", checkpoints))));

        var metrics = new Metrics();
        make("MirrorSourceMetrics", plugin(metrics, "MirrorSourceConnector"), source);
        print("new", metrics);
        metrics = new Metrics();
        var plugin = plugin(metrics, "MirrorCheckpointConnector");
        measured(make("MirrorCheckpointMetrics", plugin, checkpoints));
        print("new", metrics);

        Field definition = MirrorSourceConfig.class.getDeclaredField("CONNECTOR_CONFIG_DEF");
        definition.setAccessible(true);
        var key = ((ConfigDef) definition.get(null)).configKeys().get("metric.names.formats");
        System.out.println("default\t" + key.defaultValue);
        for (String text : args) {
            config = new HashMap<>(config);
            config.put("metric.names.formats", text);
            String answer = "accepted";
            try {
                new MirrorSourceTaskConfig(config);
            } catch (Exception exc) {
                answer = "refused";
            }
            System.out.println(answer + "\t" + text);
        }
    }

    private static PluginMetricsImpl plugin(Metrics metrics, String connector) {
        var tags = new LinkedHashMap<String, String>();
        tags.put("connector", connector);
        tags.put("task", "0");
        return new PluginMetricsImpl(metrics, tags);
    }

    private static Object make(String type, Object... arguments) throws Exception {
        Constructor<?> constructor = Class.forName(PACKAGE + type).getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        return constructor.newInstance(arguments);
    }

    /** The metrics of a group exist once its latency was measured. */
    private static Object measured(Object metrics) throws Exception {
        Method method = metrics.getClass().getDeclaredMethod(
            "checkpointLatency", TopicPartition.class, String.class, long.class);
        method.setAccessible(true);
        method.invoke(metrics, PARTITION, "readers", 1L);
        return metrics;
    }

    private static Metrics registryOf(Object metrics) throws Exception {
        Field field = metrics.getClass().getDeclaredField("metrics");
        field.setAccessible(true);
        return (Metrics) field.get(metrics);
    }

    private static void print(String format, Metrics metrics) {
        for (var name : metrics.metrics().keySet()) {
            if (!name.name().equals("count")) {  // of the registry itself
                System.out.println(String.join("\t",
                    format, name.group(), name.name(), String.join(",", name.tags().keySet()),
                    name.tags().getOrDefault("connector", "")));
            }
        }
    }
}
