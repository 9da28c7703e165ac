import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** What MirrorMaker 1 was: a consumer, a producer, and a commit now and then. At least once. */
public class Loop {
    public static void main(String[] args) throws Exception {
        String source = args[0], target = args[1], topic = args[2], remote = args[3];
        long intervalMs = Long.parseLong(args[4]);
        Map<String, Object> reader = new HashMap<>(Map.of(
            "bootstrap.servers", source, "group.id", remote, "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "isolation.level", "read_committed",
            "max.poll.records", 10000, "fetch.max.bytes", 52428800));
        Map<String, Object> writer = new HashMap<>(Map.of(
            "bootstrap.servers", target, "acks", "all", "enable.idempotence", true,
            "linger.ms", 20, "batch.size", 900000, "buffer.memory", 134217728L,
            "compression.type", args[5]));
        var bytes = new ByteArrayDeserializer();
        var consumer = new KafkaConsumer<byte[], byte[]>(reader, bytes, bytes);
        var producer = new KafkaProducer<byte[], byte[]>(
            writer, new ByteArraySerializer(), new ByteArraySerializer());
        consumer.subscribe(List.of(topic));
        long next = System.currentTimeMillis() + intervalMs;
        while (true) {
            for (var one : consumer.poll(Duration.ofMillis(20)))
                producer.send(new ProducerRecord<>(
                    remote, one.partition(), one.timestamp(), one.key(), one.value(), one.headers()));
            if (System.currentTimeMillis() >= next) {
                producer.flush();
                consumer.commitSync();
                next = System.currentTimeMillis() + intervalMs;
            }
        }
    }
}
