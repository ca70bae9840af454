import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Gets a URL with a client of the JDK and prints the body: `java Call.java HttpClient|URLConnection URL`. */
class Call {
  public static void main(String[] args) throws Exception {
    var url = URI.create(args[1]);
    if (args[0].equals("URLConnection")) {
      try (var body = url.toURL().openStream()) {
        System.out.write(body.readAllBytes());
      }
      System.out.flush();
    } else {
      var client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
      System.out.print(client.send(HttpRequest.newBuilder(url).build(), HttpResponse.BodyHandlers.ofString()).body());
    }
  }
}
