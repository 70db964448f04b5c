// Clients of Java that send 100 MB and are refused read why: HttpClient, and HttpURLConnection, which reads nothing before
// it has sent everything. `java RefusedUploads.java http://127.0.0.1:9000`: the server's user is root, with the password pw.

import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Base64;

public class RefusedUploads {
  static final byte[] body = new byte[100_000_000];
  static int failures = 0;

  interface Ask {
    int status() throws Exception;
  }

  static void check(String name, int wanted, Ask ask) {
    String told;
    try {
      int status = ask.status();
      told = String.valueOf(status);
    } catch (Exception error) {
      told = error.toString();
    }
    boolean right = told.equals(String.valueOf(wanted));
    if (!right) failures++;
    System.out.println((right ? "ok     " : "FAILED ") + name + " " + told);
  }

  static int byClient(String url, String credentials) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).header("Content-Type", "application/json");
    if (credentials != null) request.header("Authorization", credentials);
    HttpRequest post = request.POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    return client.send(post, HttpResponse.BodyHandlers.ofString()).statusCode();
  }

  static int byConnection(String url, String credentials, boolean streaming) throws Exception {
    HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
    connection.setRequestMethod("POST");
    connection.setDoOutput(true);
    connection.setRequestProperty("Content-Type", "application/json");
    if (credentials != null) connection.setRequestProperty("Authorization", credentials);
    if (streaming) connection.setFixedLengthStreamingMode(body.length);
    OutputStream out = connection.getOutputStream();
    out.write(body);
    out.close();
    return connection.getResponseCode();
  }

  public static void main(String[] arguments) {
    Arrays.fill(body, (byte) 'x');
    String known = "Basic " + Base64.getEncoder().encodeToString("root:pw".getBytes());
    String[][] asks = {{"403", "/write", null}, {"413", "/exec", known}};
    for (String[] ask : asks) {
      int wanted = Integer.parseInt(ask[0]);
      String url = arguments[0] + ask[1];
      check("HttpClient", wanted, () -> byClient(url, ask[2]));
      check("HttpURLConnection", wanted, () -> byConnection(url, ask[2], false));
      check("HttpURLConnection, streaming", wanted, () -> byConnection(url, ask[2], true));
    }
    System.exit(failures == 0 ? 0 : 1);
  }
}
