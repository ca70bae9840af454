import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Calls a URL through a proxy with the JDK's own client: `java HttpClientCall.java PROXY_HOST PROXY_PORT URL BODY`. */
class HttpClientCall {
  public static void main(String[] args) throws Exception {
    var proxy = ProxySelector.of(new InetSocketAddress(args[0], Integer.parseInt(args[1])));
    var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).proxy(proxy).build();
    var request = HttpRequest.newBuilder(URI.create(args[2])).POST(HttpRequest.BodyPublishers.ofString(args[3])).build();
    System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
