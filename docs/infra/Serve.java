// Takes a lock from `leasehold serve`, renews it, and releases it: java Serve.java http://127.0.0.1:7070

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.regex.Pattern;

public class Serve {
    static final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static String post(String url, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url))
            .header("Content-Type", "application/json")
            .timeout(Duration.ofSeconds(60))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        var response = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IllegalStateException(response.statusCode() + " " + response.body());
        }
        return response.body();
    }

    // Use the JSON library of your project.
    static String field(String json, String name) {
        var found = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(json);
        if (!found.find()) throw new IllegalStateException("no " + name + " in " + json);
        return found.group(1);
    }

    public static void main(String[] args) throws Exception {
        var url = args[0] + "/v1";
        // Counted from the sending of the request, by the clock that does not jump.
        var sent = System.nanoTime();
        var lease = post(url + "/acquire", "{\"resource\": \"invoice/42\", \"ttl_ms\": 30000, \"wait_ms\": 10000}");
        var id = field(lease, "id");
        var validUntil = sent + Duration.ofMillis(Long.parseLong(field(lease, "valid_ms"))).toNanos();
        System.out.println("held with token " + field(lease, "token"));

        sent = System.nanoTime();
        var renewed = post(url + "/leases/" + id + "/renew", "{}");
        validUntil = sent + Duration.ofMillis(Long.parseLong(field(renewed, "valid_ms"))).toNanos();

        if (System.nanoTime() - validUntil < 0) {
            // Here the work writes, with the token.
        }
        post(url + "/leases/" + id + "/release", "{}");
        System.out.println("released");
    }
}
